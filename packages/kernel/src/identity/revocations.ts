// Revoked tokens of one issuer, as its feed reports them: a bounded set that verifiers consult at each use of a token.
import type { Claims } from "./caller.ts";

/** Members of a token that a revocation can name. `sub` revokes the tokens of a user that have a lower epoch. */
const KINDS = ["jti", "sid", "client", "kid", "sub"] as const;

/** The member that a revocation names. */
export type RevocationKind = (typeof KINDS)[number];

/** An entry of the feed. */
export interface Revocation {
  readonly kind: RevocationKind;
  readonly value: string;
  /** Of `sub`: tokens with a lower epoch are revoked. */
  readonly epoch?: number;
  /** Seconds since 1970 after which no affected token is valid. */
  readonly expires_at: number;
}

/** The members of a token that revocations can match; plain data that may be stored with credentials derived from it. */
export interface RevocableToken {
  readonly iss?: string | undefined;
  readonly jti?: string | undefined;
  readonly sid?: string | undefined;
  readonly client?: string | undefined;
  readonly kid?: string | undefined;
  readonly sub?: string | undefined;
  readonly epoch?: number | undefined;
}

interface Entry {
  /** 0 except for `sub`. */
  epoch: number;
  expiresAt: number;
}

/** 100 000 entries need about 15 MB; at 15 minutes per token they cover 110 revocations per second. */
const ENTRIES_MAX = 100_000;

/** Returns true if `value` is a kind of revocation. */
export function isRevocationKind(value: unknown): value is RevocationKind {
  return KINDS.includes(value as RevocationKind);
}

/** The claims that revocations can match; `all` contains the client and the epoch. */
export type RevocableClaims = Pick<Claims, "iss" | "jti" | "sid" | "sub" | "kid"> &
  Partial<Pick<Claims, "all">>;

/** Returns the members of verified claims that revocations can match. */
export function toRevocable({ iss, jti, sid, sub, kid, all }: RevocableClaims): RevocableToken {
  const { client_id: client, epoch } = all ?? {};
  return {
    ...(iss === undefined ? {} : { iss }),
    ...(jti === undefined ? {} : { jti }),
    ...(sid === undefined ? {} : { sid }),
    ...(sub === undefined ? {} : { sub }),
    ...(kid === undefined ? {} : { kid }),
    ...(typeof client === "string" ? { client } : {}),
    ...(typeof epoch === "number" ? { epoch } : {}),
  };
}

/** The revocations of an issuer. Bounded: beyond the maximum, the entries that arrived first are dropped. */
export class RevocationSet {
  /** Issuer of the affected tokens; tokens of other issuers never match. */
  readonly #issuer: string;
  readonly #entriesMax: number;
  readonly #entries: Readonly<Record<RevocationKind, Map<string, Entry>>> = {
    jti: new Map(),
    sid: new Map(),
    client: new Map(),
    kid: new Map(),
    sub: new Map(),
  };
  #size = 0;
  /** Current policy version of the issuer: tokens with a lower one are stale. Undefined if the issuer does not report it. */
  policyVersion: number | undefined;
  /** Entries dropped before their expiry because the set was full. */
  dropped = 0;

  constructor(issuer: string, entriesMax = ENTRIES_MAX) {
    this.#issuer = issuer;
    this.#entriesMax = entriesMax;
  }

  /** True if this is the issuer of the affected tokens. */
  covers(issuer: string | undefined): boolean {
    return issuer === this.#issuer;
  }

  /** Number of entries. */
  get size(): number {
    return this.#size;
  }

  /** Adds entries, also expired ones: a stream may outlive the token that opened it. */
  add(revocations: readonly Revocation[]): void {
    for (const { kind, value, epoch = 0, expires_at: expiresAt } of revocations) {
      const entries = this.#entries[kind];
      const known = entries.get(value);
      if (known === undefined) this.#makeRoom();
      // Deleted first: the order of a map is that of insertion, and dropping begins with the oldest.
      else entries.delete(value);
      entries.set(value, {
        epoch: Math.max(epoch, known?.epoch ?? 0),
        expiresAt: Math.max(expiresAt, known?.expiresAt ?? 0),
      });
      if (known === undefined) this.#size++;
    }
  }

  /** Returns true if the token was revoked. */
  has(token: RevocableToken): boolean {
    if (this.#size === 0 || token.iss !== this.#issuer) return false;
    const { jti, sid, client, kid, sub } = this.#entries;
    if (token.jti !== undefined && jti.has(token.jti)) return true;
    if (token.sid !== undefined && sid.has(token.sid)) return true;
    if (token.client !== undefined && client.has(token.client)) return true;
    if (token.kid !== undefined && kid.has(token.kid)) return true;
    const voidBelow = token.sub === undefined ? undefined : sub.get(token.sub)?.epoch;
    return voidBelow !== undefined && (token.epoch ?? 0) < voidBelow;
  }

  /** As `has`, for verified claims. */
  hasClaims(claims: RevocableClaims): boolean {
    return this.#size > 0 && this.has(toRevocable(claims));
  }

  /** Drops entries whose tokens have expired. */
  sweep(nowSeconds: number): void {
    for (const entries of Object.values(this.#entries)) {
      for (const [value, { expiresAt }] of entries) {
        if (expiresAt > nowSeconds) continue;
        entries.delete(value);
        this.#size--;
      }
    }
  }

  /** All entries, for another thread. */
  list(): Revocation[] {
    return KINDS.flatMap((kind) =>
      Array.from(this.#entries[kind], ([value, { epoch, expiresAt }]) => ({
        kind,
        value,
        ...(kind === "sub" ? { epoch } : {}),
        expires_at: expiresAt,
      })),
    );
  }

  #makeRoom(): void {
    if (this.#size < this.#entriesMax) return;
    const largest = Object.values(this.#entries).reduce((a, b) => (b.size > a.size ? b : a));
    const oldest = largest.keys().next();
    if (oldest.done === true) return;
    largest.delete(oldest.value);
    this.#size--;
    this.dropped++;
  }
}
