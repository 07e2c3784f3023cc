// Share links: stored in the database, kept in memory for the check of each request.
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import type { ShareRow, TunnelDatabase } from "../database/schema.ts";
import { signToken, verifyToken } from "./share-token.ts";

/** Options of {@link ShareLinks}. */
export interface ShareLinksOptions {
  database: TunnelDatabase;
  clock: Clock;
  ids: IdSource;
  /** Signs the tokens; must survive restarts. */
  secret: Buffer;
}

/** The decision about a link's token. */
export type LinkVerdict =
  /** Not signed by this relay for this tunnel. */
  | { readonly kind: "forged" }
  /** Expired, revoked or used. */
  | { readonly kind: "gone" }
  | { readonly kind: "valid"; readonly share: Readonly<ShareRow> };

const SHARES_PER_TUNNEL_MAX = 200;

/** All share links that have not expired. */
export class ShareLinks {
  readonly #options: ShareLinksOptions;
  /** By link, while the database is asked. */
  readonly #spending = new Map<string, Promise<boolean>>();
  readonly #byId = new Map<string, ShareRow>();

  constructor(options: ShareLinksOptions) {
    this.#options = options;
  }

  /** Reads the links into memory and deletes expired ones. */
  async load(): Promise<void> {
    await this.sweep();
    const rows = await this.#options.database.db.selectFrom("tunnel_shares").selectAll().execute();
    for (const row of rows) this.#byId.set(row.id, row);
  }

  /** Creates a link. Throws 409 if the tunnel has too many. */
  async create(
    tunnelId: string,
    { expiresInMs, isOneTime }: { expiresInMs: number; isOneTime: boolean },
  ): Promise<{ share: Readonly<ShareRow>; token: string }> {
    const { database, clock, ids, secret } = this.#options;
    if (this.list(tunnelId).length >= SHARES_PER_TUNNEL_MAX) {
      throw new PlatformError(
        "conflict",
        `A tunnel can have ${SHARES_PER_TUNNEL_MAX} share links: wait until some have expired.`,
      );
    }
    const nowMs = clock.now();
    const share: ShareRow = {
      id: ids.uuid(),
      tunnel_id: tunnelId,
      one_time: isOneTime ? 1 : 0,
      created_at: nowMs,
      expires_at: nowMs + expiresInMs,
      used_at: null,
      revoked_at: null,
    };
    // In memory first: links that are being created count as well.
    this.#byId.set(share.id, share);
    try {
      await database.db.insertInto("tunnel_shares").values(share).execute();
    } catch (error) {
      this.#byId.delete(share.id);
      throw error;
    }
    return { share, token: signToken(secret, "link", tunnelId, claimsOf(share)) };
  }

  /** Links of a tunnel that have not expired, oldest first. */
  list(tunnelId: string): Readonly<ShareRow>[] {
    const nowMs = this.#options.clock.now();
    return [...this.#byId.values()]
      .filter((share) => share.tunnel_id === tunnelId && share.expires_at > nowMs)
      .sort((one, other) => one.created_at - other.created_at);
  }

  /** Revokes a link and the cookies that it has handed out; undefined if there is none. */
  async revoke(tunnelId: string, id: string): Promise<Readonly<ShareRow> | undefined> {
    const share = this.#byId.get(id);
    if (share === undefined || share.tunnel_id !== tunnelId) return undefined;
    if (share.revoked_at !== null) return share;
    const revokedAt = this.#options.clock.now();
    await this.#options.database.db
      .updateTable("tunnel_shares")
      .set({ revoked_at: revokedAt })
      .where("id", "=", id)
      .execute();
    share.revoked_at = revokedAt;
    return share;
  }

  /** Judges the token of a link. */
  judge(tunnelId: string, token: string): LinkVerdict {
    const claims = verifyToken(this.#options.secret, "link", tunnelId, token);
    if (claims === undefined) return { kind: "forged" };
    const share = this.#findOpen(tunnelId, claims.id);
    const isSpent = share?.one_time === 1 && share.used_at !== null;
    return share === undefined || isSpent ? { kind: "gone" } : { kind: "valid", share };
  }

  /** Spends a one-time link; false if another request was faster. */
  async spend({ id }: Pick<ShareRow, "id">): Promise<boolean> {
    // A request that fails, with its database, has not spent the link: the next one tries.
    for (let other = this.#spending.get(id); other !== undefined; other = this.#spending.get(id))
      await other.catch(() => false);
    const share = this.#byId.get(id);
    if (share === undefined || share.used_at !== null) return false;
    const spending = this.#spend(share);
    this.#spending.set(id, spending);
    try {
      return await spending;
    } finally {
      this.#spending.delete(id);
    }
  }

  async #spend(share: ShareRow): Promise<boolean> {
    const { id } = share;
    const usedAt = this.#options.clock.now();
    const result = await this.#options.database.db
      .updateTable("tunnel_shares")
      .set({ used_at: usedAt })
      .where("id", "=", id)
      .where("used_at", "is", null)
      .executeTakeFirst();
    share.used_at = usedAt;
    return result.numUpdatedRows === 1n;
  }

  /** Value of the cookie for a browser that has opened the link. */
  issueCookie(share: Readonly<ShareRow>): string {
    return signToken(this.#options.secret, "cookie", share.tunnel_id, claimsOf(share));
  }

  /** True if a cookie's value was issued for this tunnel and its link is neither expired nor revoked. */
  admitsCookie(tunnelId: string, value: string): boolean {
    const claims = verifyToken(this.#options.secret, "cookie", tunnelId, value);
    return claims !== undefined && this.#findOpen(tunnelId, claims.id) !== undefined;
  }

  /** The tunnel was deleted, and its links with it. */
  forget(tunnelId: string): void {
    for (const share of this.#byId.values()) {
      if (share.tunnel_id === tunnelId) this.#byId.delete(share.id);
    }
  }

  /** Deletes expired links. */
  async sweep(): Promise<void> {
    const { database, clock } = this.#options;
    const nowMs = clock.now();
    for (const share of this.#byId.values()) {
      if (share.expires_at <= nowMs) this.#byId.delete(share.id);
    }
    await database.db.deleteFrom("tunnel_shares").where("expires_at", "<=", nowMs).execute();
  }

  #findOpen(tunnelId: string, id: string): ShareRow | undefined {
    const share = this.#byId.get(id);
    if (share === undefined || share.tunnel_id !== tunnelId || share.revoked_at !== null) {
      return undefined;
    }
    return share.expires_at > this.#options.clock.now() ? share : undefined;
  }
}

function claimsOf({ id, expires_at: expiresAt }: Readonly<ShareRow>) {
  return { id, expiresAt };
}
