// Ends what was issued to a session, a user, a client or under a key, on every node at once.
import type { Clock } from "@platform/kernel/time";
import type { AdapterPayload, Provider } from "oidc-provider";
import type { Users } from "../../user/users.ts";
import { findCoreClient } from "../core/core-client.ts";
import type { ItemStore } from "./item-store.ts";
import type { LogoutNotices } from "./logout-notices.ts";
import type { RevocationList } from "./revocation-list.ts";

// Far longer than any access token lives; refresh tokens are deleted, not denied.
const DENY_MS = 24 * 3_600_000;

/** What it works with. */
export interface RevokerOptions {
  getProvider: () => Provider;
  items: ItemStore;
  revocations: RevocationList;
  users: Users;
  clock: Clock;
  notices: LogoutNotices;
}

/** Revokes. */
export class Revoker {
  readonly #options: RevokerOptions;

  constructor(options: RevokerOptions) {
    this.#options = options;
  }

  /** Ends one session. Clients are told unless the core has done so itself while the user signed out there. */
  async revokeSession(sid: string, options: { isToldByCore?: boolean } = {}): Promise<void> {
    const { items, revocations } = this.#options;
    await revocations.add([{ kind: "sid", value: sid, expiresAt: this.#denyUntil() }]);
    const session = await items.readSession(sid);
    await this.#endGrants(session);
    await items.deleteAll("sid", sid);
    if (session !== undefined && options.isToldByCore !== true) this.#notifyClients(session);
  }

  /** Ends everything of a user: tokens of an epoch before the user's present one are void. */
  async revokeUser(userId: string): Promise<void> {
    const { items, revocations, users } = this.#options;
    const account = await users.find(userId);
    const epoch = account?.epoch ?? Number.MAX_SAFE_INTEGER;
    await revocations.add([{ kind: "sub", value: userId, epoch, expiresAt: this.#denyUntil() }]);
    const sessions = await items.readSessionsOf(userId);
    await items.deleteAll("account_id", userId);
    for (const session of sessions) this.#notifyClients(session);
  }

  /** Ends what a user has granted to a client; whether there was anything. */
  async revokeGrantsTo(clientId: string, userId: string): Promise<boolean> {
    const { items } = this.#options;
    const sessions = await items.readSessionsOf(userId);
    const named = sessions.flatMap(
      ({ authorizations = {} }) => authorizations[clientId]?.grantId ?? [],
    );
    return items.revokeGrantsTo(clientId, userId, named);
  }

  /** Ends everything of a client. */
  async revokeClient(clientId: string): Promise<void> {
    const { items, revocations } = this.#options;
    await revocations.add([{ kind: "client", value: clientId, expiresAt: this.#denyUntil() }]);
    await items.deleteAll("client_id", clientId);
  }

  /** Voids what a key has signed. */
  async revokeKey(kid: string): Promise<void> {
    await this.#options.revocations.add([
      { kind: "kid", value: kid, expiresAt: this.#denyUntil() },
    ]);
  }

  #denyUntil(): number {
    return this.#options.clock.now() + DENY_MS;
  }

  // A grant of this session whose tokens are all used up has nothing left that would name the session.
  async #endGrants(session: AdapterPayload | undefined): Promise<void> {
    for (const { grantId } of Object.values(session?.authorizations ?? {})) {
      if (grantId !== undefined) await this.#options.items.revokeGrant(grantId);
    }
  }

  #notifyClients({ accountId, authorizations = {} }: AdapterPayload): void {
    if (accountId === undefined) return;
    for (const [clientId, { sid }] of Object.entries(authorizations)) {
      // The client's own method tries again where it has to; here it is about finding the client.
      void this.#options.notices.tell(clientId, async () => {
        const client = await findCoreClient(this.#options.getProvider(), clientId);
        if (client?.backchannelLogoutUri !== undefined)
          await client.backchannelLogout(accountId, sid);
      });
    }
  }
}
