// Clients as operators manage them: the same checks as for those that register themselves.
import { createIdSource } from "@platform/kernel/ids";
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { errors, type Provider } from "oidc-provider";
import { EVERY_PERMISSION, requireAdministrator, type Grantor } from "../../rbac/grant.ts";
import type { Rbac } from "../../rbac/rights.ts";
import { listConveyed, requireClientGrantable } from "./client-grant.ts";
import { findMetadataProblem, FIRST_PARTY, PLATFORM_AUDIENCE } from "../core/client-metadata.ts";
import type { ClientGrantor, ClientRecord, ClientStore } from "./client-store.ts";
import { GRANTED_MEMBER, type CoreClients } from "../core/core-client.ts";
import type { TokenPolicy } from "../token/policy.ts";
import { PLATFORM_CLIENT_ID } from "../core/lifetimes.ts";

/** The longest that an initial access token lives. */
export const INITIAL_ACCESS_SECONDS_MAX = 30 * 24 * 3_600;
// Members that say whose a client is and which services its tokens are for: an administrator decides by setting one.
const DECISIVE_MEMBERS = [FIRST_PARTY, PLATFORM_AUDIENCE];
const RESERVED_MEMBERS = new Set([
  "client_id",
  "client_secret",
  "client_secret_expires_at",
  "client_id_issued_at",
  "registration_access_token",
  "registration_client_uri",
]);

type Metadata = Record<string, unknown>;
type ClientProperties = Metadata & { client_id: string };

/** What the registry works with. */
export interface ClientRegistryOptions {
  getProvider: () => Provider;
  clients: ClientStore;
  policy: TokenPolicy;
  rbac: Rbac;
}

/** The clients. Nobody registers, changes or deletes one that can do more than they may themselves. */
export class ClientRegistry {
  readonly #options: ClientRegistryOptions;
  readonly #ids = createIdSource();

  constructor(options: ClientRegistryOptions) {
    this.#options = options;
  }

  /** Registers one. Ids and secrets are made here, of `[A-Za-z0-9_-]`, so that no encoding can be got wrong. */
  async add(metadata: Metadata, grantor: Grantor): Promise<Metadata> {
    refuseChosen(metadata);
    this.#refuseProblem(metadata);
    const properties = {
      ...metadata,
      client_id: this.#ids.token(16),
      client_id_issued_at: Math.floor(Date.now() / 1_000),
    };
    await this.#requireGrantable(properties, grantor);
    return this.#save(properties, { granted: readPermissions(grantor) });
  }

  /** One without its secret; undefined if there is none. */
  async find(clientId: string): Promise<Metadata | undefined> {
    const record = await this.#options.clients.findRecord(clientId);
    if (record === undefined) return undefined;
    const { client_secret: _, ...metadata } = record.payload;
    return metadata;
  }

  /** Clients without their secrets, by id, after `after`. */
  list(after: string, limit: number): Promise<Metadata[]> {
    return this.#options.clients.list(after, limit);
  }

  /** Changes members of its metadata; null removes one. The answer holds a secret only if it is a new one. */
  async change(clientId: string, changes: Metadata, grantor: Grantor): Promise<Metadata> {
    refuseChosen(changes);
    const { payload, granted, isDynamic } = await this.#findManageable(clientId, grantor);
    const decided = DECISIVE_MEMBERS.filter((name) => Object.hasOwn(changes, name));
    if (decided.length > 0) {
      requireAdministrator(grantor, `set ${decided.join(" and ")}`);
      if (isDynamic && decided.some((name) => changes[name] !== null && changes[name] !== false)) {
        throw new PlatformError("conflict", "The client registered itself and manages itself.");
      }
    }
    const changed = Object.fromEntries(
      Object.entries({ ...payload, ...changes }).filter(([, value]) => value !== null),
    ) as ClientProperties;
    this.#refuseProblem(changed);
    await this.#requireGrantable(changed, grantor);
    const saved = await this.#save(changed, {
      // A client that can change its own metadata gets no more room for that than the change itself needs.
      granted: isDynamic
        ? [
            ...new Set([
              ...granted,
              ...listConveyed(changed, this.#options.policy.scopePermissions),
            ]),
          ]
        : readPermissions(grantor),
      ...(decided.length > 0 ? { keepsAudience: false } : {}),
    });
    if (saved["client_secret"] === payload["client_secret"]) delete saved["client_secret"];
    return saved;
  }

  /** Replaces its secret, which is void from here on, and returns the client with the new one. */
  async rotateSecret(clientId: string, grantor: Grantor): Promise<Metadata> {
    const { payload, granted } = await this.#findManageable(clientId, grantor);
    if (payload["client_secret"] === undefined)
      throw new PlatformError("conflict", "The client has no secret.");
    const { client_secret: _, ...metadata } = payload;
    return this.#save(metadata as ClientProperties, { granted });
  }

  /**
   * Throws 403 unless the grantor has all that the client can have, which for the service's own login is everything;
   * nothing for one that does not exist.
   */
  async requireManageable(clientId: string, grantor: Grantor): Promise<void> {
    if (clientId === PLATFORM_CLIENT_ID)
      requireAdministrator(grantor, "manage the service's login");
    if ((await this.#options.clients.findRecord(clientId)) === undefined) return;
    await this.#findManageable(clientId, grantor);
  }

  /** Deletes one with everything that was issued to it; false if there is none. */
  async delete(clientId: string, grantor: Grantor): Promise<boolean> {
    const { clients } = this.#options;
    if ((await clients.findRecord(clientId)) === undefined) return false;
    await this.#findManageable(clientId, grantor);
    return clients.delete(clientId);
  }

  /**
   * Lets its holder register clients (RFC 7591 section 3), for at most 30 days, which convey no more than the grantor has
   * now.
   */
  async createInitialAccessToken(expiresInSeconds: number, grantor: Grantor): Promise<string> {
    if (!(expiresInSeconds >= 1 && expiresInSeconds <= INITIAL_ACCESS_SECONDS_MAX)) {
      throw new PlatformError("validation_failed", "A token lives for 1 second to 30 days.");
    }
    const { InitialAccessToken } = this.#options.getProvider();
    const token = new InitialAccessToken({ expiresIn: Math.floor(expiresInSeconds) });
    return Object.assign(token, { [GRANTED_MEMBER]: readPermissions(grantor) }).save();
  }

  /**
   * Logs the clients whose tokens are good for all services because they were registered before audiences were told apart,
   * and no administrator has decided about them since.
   */
  async reportKeptAudiences(log: Logger): Promise<void> {
    const { ids, count } = await this.#options.clients.listKeepingAudience();
    if (count === 0) return;
    log.warn(
      "tokens of clients from before the upgrade are good for all services until an administrator sets first_party or platform_audience",
      { count, clients: ids },
    );
  }

  async #findManageable(clientId: string, grantor: Grantor): Promise<ClientRecord> {
    const record = await this.#options.clients.findRecord(clientId);
    if (record === undefined) throw new PlatformError("not_found", "There is no such client.");
    await this.#requireGrantable(record.payload as ClientProperties, grantor);
    return record;
  }

  #refuseProblem(metadata: Metadata): void {
    const problem = findMetadataProblem(metadata, this.#options.policy.scopePermissions);
    if (problem !== undefined) throw new PlatformError("validation_failed", problem);
  }

  async #requireGrantable(metadata: ClientProperties, grantor: Grantor): Promise<void> {
    if (grantor === undefined) return;
    const { rbac, policy } = this.#options;
    const { permissions } = await rbac.findRights({ kind: "client", id: metadata.client_id });
    requireClientGrantable(metadata, permissions, policy.scopePermissions, grantor);
  }

  async #save(metadata: ClientProperties, by: ClientGrantor): Promise<Metadata> {
    const Client = this.#options.getProvider().Client as unknown as CoreClients;
    const properties: ClientProperties = { ...metadata };
    if (!Client.needsSecret(properties)) {
      delete properties["client_secret"];
      delete properties["client_secret_expires_at"];
    } else if (properties["client_secret"] === undefined) {
      properties["client_secret"] = this.#ids.token();
      properties["client_secret_expires_at"] = 0;
    }
    let registered: ClientProperties;
    try {
      await Client.validate(properties);
      registered = new Client(properties).metadata();
    } catch (error) {
      if (!(error instanceof errors.OIDCProviderError)) throw error;
      throw new PlatformError("validation_failed", error.error_description ?? error.message);
    }
    await this.#options.clients.save(properties.client_id, registered, by);
    return registered;
  }
}

function refuseChosen(metadata: Metadata): void {
  const taken = Object.keys(metadata).find((name) => RESERVED_MEMBERS.has(name));
  if (taken !== undefined) {
    throw new PlatformError("validation_failed", `${taken} is chosen by the service.`);
  }
}

function readPermissions(grantor: Grantor): readonly string[] {
  return grantor?.permissions ?? [EVERY_PERMISSION];
}
