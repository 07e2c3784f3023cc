// Limits the topics that subscriptions follow: pairs of a subscription and a topic, of all protocols together.
import { createRetryLaterError, type PlatformError } from "@platform/kernel/errors";
import type { Tenant } from "../topic/name.ts";
import { ownerOf, type Principal } from "../user/principal.ts";

/** Maximum numbers of pairs; each costs about 1 KiB. */
export interface FollowedTopicsLimits {
  perUserMax: number;
  perTenantMax: number;
  /** Of all tenants. */
  max: number;
}

/** The scope of a limit. */
type Scope = "user" | "tenant" | "broker";

const RETRY_SECONDS = 5;

/** The counts. */
export class FollowedTopics {
  readonly #limits: FollowedTopicsLimits;
  readonly #users = new Map<string, number>();
  readonly #tenants = new Map<Tenant, number>();
  #count = 0;

  constructor(limits: FollowedTopicsLimits) {
    this.#limits = limits;
  }

  get count(): number {
    return this.#count;
  }

  /** The account of a user, for any number of its subscriptions. */
  account(tenant: Tenant, owner: string): FollowAccount {
    return new FollowAccount(this, tenant, JSON.stringify([tenant, owner]));
  }

  /** The limit that this many more pairs would exceed. */
  findLimit(tenant: Tenant, user: string, more: number): Scope | undefined {
    const { perUserMax, perTenantMax, max } = this.#limits;
    if ((this.#users.get(user) ?? 0) + more > perUserMax) return "user";
    if ((this.#tenants.get(tenant) ?? 0) + more > perTenantMax) return "tenant";
    return this.#count + more > max ? "broker" : undefined;
  }

  /** Changes the counts. */
  change(tenant: Tenant, user: string, more: number): void {
    this.#count += more;
    add(this.#users, user, more);
    add(this.#tenants, tenant, more);
  }
}

function add(counts: Map<string, number>, key: string, more: number): void {
  const count = (counts.get(key) ?? 0) + more;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

/** The pairs of one user. */
export class FollowAccount {
  readonly #all: FollowedTopics;
  readonly #tenant: Tenant;
  readonly #user: string;

  constructor(all: FollowedTopics, tenant: Tenant, user: string) {
    this.#all = all;
    this.#tenant = tenant;
    this.#user = user;
  }

  /** The error of this many more pairs; undefined if there is room. */
  explain(more: number): PlatformError | undefined {
    const limit = this.#all.findLimit(this.#tenant, this.#user, more);
    return limit === undefined ? undefined : createFollowError(limit);
  }

  /** Counts pairs until `give`; throws if there is no room. */
  take(count: number): void {
    const error = this.explain(count);
    if (error !== undefined) throw error;
    this.#all.change(this.#tenant, this.#user, count);
  }

  give(count: number): void {
    if (count > 0) this.#all.change(this.#tenant, this.#user, -count);
  }
}

/** The account of an authenticated client. */
export function accountOf(
  followed: FollowedTopics,
  principal: Pick<Principal, "tenant" | "name" | "token">,
): FollowAccount {
  return followed.account(principal.tenant, ownerOf(principal));
}

function createFollowError(limit: Scope): PlatformError {
  const isOwn = limit !== "broker";
  return createRetryLaterError(
    isOwn ? "too_many_requests" : "overloaded",
    `The subscriptions of the ${limit} follow too many topics.`,
    RETRY_SECONDS,
  );
}
