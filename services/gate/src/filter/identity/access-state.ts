// API keys, revocations and the global policy of a worker, as the control plane last sent them.
import type { Revocation, RevocationSet } from "@platform/kernel/identity";
import {
  type AccessChange,
  type ApiKeySpec,
  EndedSessionSet,
  POLICY_DEFAULT,
  type PolicySpec,
  REVOKED_USERS_MAX,
  type UserRevocation,
} from "../../shared-state/index.ts";
import { ApiKeyTable } from "./api-keys.ts";
import type { TokenClaims } from "../../exchange/caller.ts";
import { Policy } from "./policy.ts";

/** The access state of one worker. */
export class AccessState {
  readonly keys = new ApiKeyTable();
  /** Rises with every change: verdicts on credentials hold for one revision. */
  revision = 0;
  /** The global policy. */
  policy: PolicySpec = POLICY_DEFAULT;
  /** Compiled; undefined if it does not restrict any request. */
  globalPolicy: Policy | undefined;
  readonly #feed: RevocationSet | undefined;
  /** Browser sessions that their identity provider has ended. */
  readonly endedSessions = new EndedSessionSet();
  readonly #revokedUsers = new Map<string, number>();

  /** `feed` contains the revocations of an issuer; undefined if none is followed. */
  constructor(feed: RevocationSet | undefined) {
    this.#feed = feed;
  }

  /** Takes over a change; true if credentials were revoked by it. */
  apply(change: AccessChange): boolean {
    this.revision++;
    for (const key of change.keys ?? []) this.keys.set(key);
    for (const id of change.removedKeys ?? []) this.keys.remove(id);
    this.#revokeUsers(change.revokedUsers ?? []);
    if (change.policy !== undefined) this.#setPolicy(change.policy);
    this.endedSessions.add(change.endedSessions ?? []);
    return [change.removedKeys, change.revokedUsers, change.endedSessions].some(
      (list) => list !== undefined,
    );
  }

  /** Adds revocations of the followed issuer, and takes over its policy version. */
  revoke(entries: readonly Revocation[], policyVersion: number | undefined): void {
    this.revision++;
    if (this.#feed === undefined) return;
    this.#feed.add(entries);
    this.#feed.policyVersion = policyVersion;
  }

  /** Drops revocations of tokens that have expired. */
  sweep(nowSeconds: number): void {
    this.#feed?.sweep(nowSeconds);
  }

  /** True if the token was revoked by its issuer, or its user here. Called at each use of a token. */
  isRevoked(claims: TokenClaims): boolean {
    if (this.#feed?.hasClaims(claims) === true) return true;
    if (this.#revokedUsers.size === 0) return false;
    const bySubject = claims.sub === undefined ? undefined : this.#revokedUsers.get(claims.sub);
    const byName =
      claims.username === undefined ? undefined : this.#revokedUsers.get(claims.username);
    const revokedAt = Math.max(bySubject ?? 0, byName ?? 0);
    // A token without `iat` may have been issued before.
    return revokedAt > 0 && (claims.iat === undefined || claims.iat <= revokedAt);
  }

  /** True if the key of an admitted request is no longer valid. */
  isRevokedKey(key: ApiKeySpec): boolean {
    return !this.keys.has(key.id);
  }

  /**
   * True if a valid token was issued under an older policy version. Tokens of the followed issuer have versions of their
   * own, which are compared with the version in its feed, not with the gateway's.
   */
  isStale(claims: TokenClaims): boolean {
    const { version, reloadedAt } = this.policy;
    if (this.#feed?.covers(claims.iss) === true) {
      return (claims.policy_version ?? Infinity) < (this.#feed.policyVersion ?? 0);
    }
    if (claims.policy_version !== undefined) return claims.policy_version < version;
    return reloadedAt > 0 && (claims.iat === undefined || claims.iat < reloadedAt);
  }

  #setPolicy(policy: PolicySpec): void {
    this.policy = policy;
    const isOpen = policy.rules.length === 0 && policy.default === "allow";
    this.globalPolicy = isOpen ? undefined : new Policy(policy.rules);
  }

  #revokeUsers(entries: readonly UserRevocation[]): void {
    const revoked = this.#revokedUsers;
    for (const { user, revokedAt } of entries) {
      const known = revoked.get(user) ?? 0;
      revoked.delete(user);
      revoked.set(user, Math.max(known, revokedAt));
    }
    for (const user of revoked.keys()) {
      if (revoked.size <= REVOKED_USERS_MAX) return;
      revoked.delete(user);
    }
  }
}
