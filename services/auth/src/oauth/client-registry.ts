// Clients as operators manage them: the same checks as for those that register themselves.
import { createIdSource } from "@platform/kernel/ids";
import { PlatformError } from "@platform/kernel/errors";
import { errors, type Provider } from "oidc-provider";
import type { ClientStore } from "./client-store.ts";
import type { CoreClients } from "./core-client.ts";
import type { Revoker } from "./revoker.ts";

const initialAccessSecondsMax = 30 * 24 * 3_600;
const chosenByService = new Set([
  "client_id",
  "client_secret",
  "client_secret_expires_at",
  "client_id_issued_at",
  "registration_access_token",
  "registration_client_uri",
]);

/** The clients. */
export class ClientRegistry {
  readonly #getProvider: () => Provider;
  readonly #clients: ClientStore;
  readonly #revoker: Revoker;
  readonly #ids = createIdSource();

  constructor(parts: { getProvider: () => Provider; clients: ClientStore; revoker: Revoker }) {
    this.#getProvider = parts.getProvider;
    this.#clients = parts.clients;
    this.#revoker = parts.revoker;
  }

  /** Registers one. Ids and secrets are made here, of `[A-Za-z0-9_-]`, so that no encoding can be got wrong. */
  async add(metadata: Record<string, unknown>): Promise<Record<string, unknown>> {
    const taken = Object.keys(metadata).find((name) => chosenByService.has(name));
    if (taken !== undefined) {
      throw new PlatformError("validation_failed", `${taken} is chosen by the service.`);
    }
    const Client = this.#getProvider().Client as unknown as CoreClients;
    const properties: Record<string, unknown> & { client_id: string } = {
      ...metadata,
      client_id: this.#ids.token(16),
      client_id_issued_at: Math.floor(Date.now() / 1_000),
    };
    if (Client.needsSecret(properties)) {
      properties["client_secret"] = this.#ids.token();
      properties["client_secret_expires_at"] = 0;
    }
    let registered: Record<string, unknown> & { client_id: string };
    try {
      await Client.validate(properties);
      registered = new Client(properties).metadata();
    } catch (error) {
      if (!(error instanceof errors.OIDCProviderError)) throw error;
      throw new PlatformError("validation_failed", error.error_description ?? error.message);
    }
    await this.#clients.save(properties.client_id, registered);
    return registered;
  }

  /** Deletes one with everything that was issued to it. */
  async delete(clientId: string): Promise<boolean> {
    const isGone = await this.#clients.delete(clientId);
    if (isGone) await this.#revoker.revokeClient(clientId);
    return isGone;
  }

  /** Lets its holder register clients (RFC 7591 section 3), for at most 30 days. */
  async createInitialAccessToken(expiresInSeconds: number): Promise<string> {
    if (!(expiresInSeconds >= 1 && expiresInSeconds <= initialAccessSecondsMax)) {
      throw new PlatformError("validation_failed", "A token lives for 1 second to 30 days.");
    }
    const provider = this.#getProvider();
    return new provider.InitialAccessToken({ expiresIn: Math.floor(expiresInSeconds) }).save();
  }
}
