// Revokes everything issued to a session, a user or a client or signed by a key, on all nodes immediately.
import type { Clock } from "@platform/kernel/time";
import type { Kysely } from "kysely";
import type { AdapterPayload, Provider } from "oidc-provider";
import type { AuthTables } from "../../database/schema.ts";
import { findCoreClient } from "../core/core-client.ts";
import type { ItemStore } from "./item-store.ts";
import type { LogoutNotices } from "./logout-notices.ts";
import type { RevocationList } from "./revocation-list.ts";

// Much longer than the lifetime of access tokens. Refresh tokens are deleted.
const DENY_MS = 24 * 3_600_000;

/** Options of the revoker. */
export interface RevokerOptions {
  getProvider: () => Provider;
  items: ItemStore;
  revocations: RevocationList;
  clock: Clock;
  notices: LogoutNotices;
}

/** Revokes grants and tokens. */
export class Revoker {
  readonly #options: RevokerOptions;

  constructor(options: RevokerOptions) {
    this.#options = options;
  }

  /** Ends a session's grants and tokens. Notifies clients unless the core has done so during a logout. */
  async revokeSession(sid: string, options: { isToldByCore?: boolean } = {}): Promise<void> {
    const { items, revocations } = this.#options;
    await revocations.add([{ kind: "sid", value: sid, expiresAt: this.#denyUntil() }]);
    const session = await items.readSession(sid);
    await this.#endGrants(session);
    await items.deleteAll("sid", sid);
    if (session !== undefined && options.isToldByCore !== true) this.#notifyClients(session);
  }

  /**
   * Revokes everything of a user in the transaction that has raised their epoch, which voids tokens of earlier epochs, or
   * deleted them. The result is to be called after the commit: it notifies clients.
   */
  async revokeUser(userId: string, trx: Kysely<AuthTables>): Promise<() => void> {
    const { items, revocations } = this.#options;
    const account = await trx
      .selectFrom("auth_users")
      .select("epoch")
      .where("id", "=", userId)
      .executeTakeFirst();
    const epoch = account?.epoch ?? Number.MAX_SAFE_INTEGER;
    const expiresAt = this.#denyUntil();
    await revocations.insert(trx, [{ kind: "sub", value: userId, epoch, expiresAt }]);
    const sessions = await items.readSessionsOf(userId, trx);
    await items.deleteAll("account_id", userId, trx);
    return () => {
      for (const session of sessions) this.#notifyClients(session);
    };
  }

  /** Revokes a user's grants to a client; false if there were none. */
  async revokeGrantsTo(clientId: string, userId: string): Promise<boolean> {
    const { items } = this.#options;
    const sessions = await items.readSessionsOf(userId);
    const named = sessions.flatMap(
      ({ authorizations = {} }) => authorizations[clientId]?.grantId ?? [],
    );
    return items.revokeGrantsTo(clientId, userId, named);
  }

  /** Revokes everything of a client. */
  async revokeClient(clientId: string): Promise<void> {
    const { items, revocations } = this.#options;
    await revocations.add([{ kind: "client", value: clientId, expiresAt: this.#denyUntil() }]);
    await items.deleteAll("client_id", clientId);
  }

  /** Revokes everything that a key has signed. */
  async revokeKey(kid: string): Promise<void> {
    await this.#options.revocations.add([
      { kind: "kid", value: kid, expiresAt: this.#denyUntil() },
    ]);
  }

  #denyUntil(): number {
    return this.#options.clock.now() + DENY_MS;
  }

  // A grant of this session whose tokens are all used has no item left that names the session.
  async #endGrants(session: AdapterPayload | undefined): Promise<void> {
    for (const { grantId } of Object.values(session?.authorizations ?? {})) {
      if (grantId !== undefined) await this.#options.items.revokeGrant(grantId);
    }
  }

  #notifyClients({ accountId, authorizations = {} }: AdapterPayload): void {
    if (accountId === undefined) return;
    for (const [clientId, { sid }] of Object.entries(authorizations)) {
      // The client's own method retries; this delivery covers finding the client.
      void this.#options.notices.tell(clientId, async () => {
        const client = await findCoreClient(this.#options.getProvider(), clientId);
        if (client?.backchannelLogoutUri !== undefined)
          await client.backchannelLogout(accountId, sid);
      });
    }
  }
}
