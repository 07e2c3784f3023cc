// Client management for operators, with the checks of dynamic registration.
import { PlatformError } from "@platform/kernel/errors";
import { createIdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import { errors, type Provider } from "oidc-provider";
import { EVERY_PERMISSION, requireAdministrator, type Grantor } from "../../rbac/grant.ts";
import type { Rbac } from "../../rbac/rights.ts";
import { DECISIVE_MEMBERS, findMetadataProblem, readActingRoles } from "../core/client-metadata.ts";
import { GRANTED_MEMBER, type CoreClients } from "../core/core-client.ts";
import { PLATFORM_CLIENT_ID } from "../core/lifetimes.ts";
import type { TokenPolicy } from "../token/policy.ts";
import { listConveyed, requireClientGrantable } from "./client-grant.ts";
import type { ClientGrantor, ClientRecord, ClientStore } from "./client-store.ts";

/** Longest time for which a former secret is accepted. */
export const SECRET_OVERLAP_SECONDS_MAX = 30 * 24 * 3_600;
/** Maximum lifetime of an initial access token. */
export const INITIAL_ACCESS_SECONDS_MAX = 30 * 24 * 3_600;
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

/** Options of the registry. */
export interface ClientRegistryOptions {
  getProvider: () => Provider;
  clients: ClientStore;
  policy: TokenPolicy;
  rbac: Rbac;
}

/** Registered clients. Registering, changing or deleting one requires all permissions that it can convey. */
export class ClientRegistry {
  readonly #options: ClientRegistryOptions;
  readonly #ids = createIdSource();

  constructor(options: ClientRegistryOptions) {
    this.#options = options;
  }

  /** Registers a client. Id and secret are generated from `[A-Za-z0-9_-]`, so that they need no encoding. */
  async add(metadata: Metadata, grantor: Grantor): Promise<Metadata> {
    refuseChosen(metadata);
    this.#refuseProblem(metadata);
    await this.#refuseMissingRole(metadata);
    const properties = {
      ...metadata,
      client_id: this.#ids.token(16),
      client_id_issued_at: Math.floor(Date.now() / 1_000),
    };
    await this.#requireGrantable(properties, grantor);
    return this.#save(properties, { granted: readPermissions(grantor) });
  }

  /**
   * Creates or replaces a client of the installation with a given id and secret, which may convey every permission.
   * True if it is new or its secret has changed.
   */
  async provide(clientId: string, secret: string, metadata: Metadata): Promise<boolean> {
    const before = await this.#options.clients.findRecord(clientId);
    const { scope } = metadata;
    const properties = {
      ...metadata,
      ...(typeof scope === "string" ? { scope: this.#keepExisting(scope) } : {}),
      client_id: clientId,
      client_secret: secret,
      client_secret_expires_at: 0,
    };
    await this.#save(properties, { granted: [EVERY_PERMISSION] });
    return before?.payload["client_secret"] !== secret;
  }

  // The operator may have deleted scopes, which would make the client invalid.
  #keepExisting(scope: string): string {
    const { scopeNames } = this.#options.policy;
    return scope
      .split(" ")
      .filter((name) => scopeNames.has(name))
      .join(" ");
  }

  /** The client's metadata without its secret; `undefined` if the client does not exist. */
  async find(clientId: string): Promise<Metadata | undefined> {
    const record = await this.#options.clients.findRecord(clientId);
    if (record === undefined) return undefined;
    const { client_secret: _, ...metadata } = record.payload;
    return metadata;
  }

  /** At most `limit` clients with ids after `after`, in the order of their ids, without secrets. */
  list(after: string, limit: number): Promise<Metadata[]> {
    return this.#options.clients.list(after, limit);
  }

  /** Changes members of the metadata; null removes one. The result contains the secret only if it is new. */
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
    await this.#refuseMissingRole(changes);
    await this.#requireGrantable(changed, grantor);
    const saved = await this.#save(changed, {
      // A client that can change its own metadata gets no more permissions than the change requires.
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

  /**
   * Replaces the secret; the result contains the new one. The former one is accepted for `overlapMs`, and one before it no
   * longer.
   */
  async rotateSecret(clientId: string, grantor: Grantor, overlapMs: number): Promise<Metadata> {
    const { payload, granted } = await this.#findManageable(clientId, grantor);
    const { client_secret: secret, ...metadata } = payload;
    if (typeof secret !== "string")
      throw new PlatformError("conflict", "The client has no secret.");
    const former = overlapMs === 0 ? null : { secret, endsAtMs: Date.now() + overlapMs };
    return this.#save(metadata as ClientProperties, { granted, former });
  }

  /**
   * Throws 403 unless the grantor holds all permissions of the client; the built-in client requires an administrator.
   * Unknown clients pass.
   */
  async requireManageable(clientId: string, grantor: Grantor): Promise<void> {
    if (clientId === PLATFORM_CLIENT_ID)
      requireAdministrator(grantor, "manage the service's login");
    if ((await this.#options.clients.findRecord(clientId)) === undefined) return;
    await this.#findManageable(clientId, grantor);
  }

  /** Deletes a client with everything that was issued to it; false if there is none. */
  async delete(clientId: string, grantor: Grantor): Promise<boolean> {
    const { clients } = this.#options;
    if ((await clients.findRecord(clientId)) === undefined) return false;
    await this.#findManageable(clientId, grantor);
    return clients.delete(clientId);
  }

  /**
   * Creates a token that lets its holder register clients (RFC 7591 section 3) for at most 30 days, limited to the
   * grantor's current permissions.
   */
  async createInitialAccessToken(expiresInSeconds: number, grantor: Grantor): Promise<string> {
    if (!(expiresInSeconds >= 1 && expiresInSeconds <= INITIAL_ACCESS_SECONDS_MAX)) {
      throw new PlatformError("validation_failed", "The lifetime must be 1 second to 30 days.");
    }
    const { InitialAccessToken } = this.#options.getProvider();
    const token = new InitialAccessToken({ expiresIn: Math.floor(expiresInSeconds) });
    return Object.assign(token, { [GRANTED_MEMBER]: readPermissions(grantor) }).save();
  }

  /**
   * Logs the clients that still get the platform's audience because they were registered before audiences were
   * separated and no administrator has decided since.
   */
  async reportKeptAudiences(log: Logger): Promise<void> {
    const { ids, count } = await this.#options.clients.listKeepingAudience();
    if (count === 0) return;
    log.warn(
      "tokens of clients registered before the upgrade are valid for all services until an administrator sets first_party or platform_audience",
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

  async #refuseMissingRole(metadata: Metadata): Promise<void> {
    const missing = await this.#options.rbac.findMissingRole(readActingRoles(metadata));
    if (missing === undefined) return;
    throw new PlatformError("validation_failed", `acting_roles: there is no role ${missing}.`);
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
    throw new PlatformError("validation_failed", `${taken} is assigned by the service.`);
  }
}

function readPermissions(grantor: Grantor): readonly string[] {
  return grantor?.permissions ?? [EVERY_PERMISSION];
}
