// Rules that give the holders of a role rights for some topics of their tenant. They are durable.
import { PlatformError } from "@platform/kernel/errors";
import { includesScope, type Claims } from "@platform/kernel/identity";
import { readJson, type StateTable } from "../store/state.ts";
import type { Store } from "../store/store.ts";
import { compilePattern } from "../topic/pattern.ts";
import { ADMIN_SCOPE, scopeOf, type Right, type Rights } from "../topic/rights.ts";

const ROLES_MAX = 10_000;
/** Rules of a role. */
export const RULES_MAX = 100;
/** The form of a role's name. */
export const ROLE_FORM = /^[a-z0-9][a-z0-9_.-]{0,62}$/;

/** A rule: rights for the topics of a name or pattern. */
export interface TopicRule {
  topics: string;
  allow: Right[];
}

/** The rules of a role. */
export interface RoleRules {
  role: string;
  rules: readonly TopicRule[];
}

interface CompiledRule extends TopicRule {
  matches: (topic: string) => boolean;
}

/** Rules by role. A change applies to the next request of each caller, and ends subscriptions that have lost their right. */
export class TopicRules {
  readonly #store: Store;
  readonly #state: StateTable;
  readonly #byRole = new Map<string, readonly CompiledRule[]>();
  readonly #watchers: (() => void)[] = [];
  /** Changes take turns. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(store: Store, state: StateTable) {
    this.#store = store;
    this.#state = state;
    for (const { key, value } of state.take("topic-rules")) {
      const rules = readJson(value) as TopicRule[] | undefined;
      if (rules !== undefined) this.#byRole.set(String(key[1]), rules.map(compileRule));
    }
  }

  /** Calls `onChanged` after each change. */
  watch(onChanged: () => void): void {
    this.#watchers.push(onChanged);
  }

  /** All rules, by role. */
  list(): RoleRules[] {
    return [...this.#byRole.keys()].sort().map((role) => this.find(role)!);
  }

  /** The rules of a role; undefined if it has none. */
  find(role: string): RoleRules | undefined {
    const rules = this.#byRole.get(role);
    return rules === undefined
      ? undefined
      : { role, rules: rules.map(({ topics, allow }) => ({ topics, allow })) };
  }

  /** Replaces the rules of a role durably. Throws `validation_failed` for an invalid pattern. */
  set(role: string, rules: readonly TopicRule[]): Promise<void> {
    return this.#takeTurn(() => this.#set(role, rules));
  }

  /** Changes the rules of a role durably, without another change in between. */
  change(role: string, change: (rules: readonly TopicRule[]) => TopicRule[]): Promise<void> {
    return this.#takeTurn(async () => {
      const rules = change(this.find(role)?.rules ?? []);
      if (rules.length === 0) await this.#delete(role);
      else await this.#set(role, rules);
    });
  }

  /** Deletes the rules of a role durably; false if it has none. */
  delete(role: string): Promise<boolean> {
    return this.#takeTurn(() => this.#delete(role));
  }

  /** The rights of a token: of all topics by its scopes, of others by the rules of its roles. */
  rightsOf({ scope, roles }: Pick<Claims, "scope" | "roles">): Rights {
    const list = (): CompiledRule[] => roles.flatMap((role) => this.#byRole.get(role) ?? []);
    const isScoped = (right: Right): boolean => includesScope(scope, scopeOf(right), ADMIN_SCOPE);
    return {
      has: (right) => isScoped(right) || list().some(({ allow }) => allow.includes(right)),
      covers: (right, topic) =>
        isScoped(right) ||
        list().some(({ allow, matches }) => allow.includes(right) && matches(topic)),
    };
  }

  #takeTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #set(role: string, rules: readonly TopicRule[]): Promise<void> {
    if (rules.length > RULES_MAX) {
      throw new PlatformError("validation_failed", `A role has ${RULES_MAX} rules at most.`);
    }
    const compiled = rules.map(compileRule);
    if (!this.#byRole.has(role) && this.#byRole.size >= ROLES_MAX)
      throw new PlatformError("conflict", `There are rules for ${ROLES_MAX} roles already.`);
    await this.#store.append([this.#state.toPendingJson(["topic-rules", role], rules)]);
    this.#byRole.set(role, compiled);
    for (const onChanged of this.#watchers) onChanged();
  }

  async #delete(role: string): Promise<boolean> {
    if (!this.#byRole.has(role)) return false;
    await this.#store.append([this.#state.toPending(["topic-rules", role], null)]);
    const isDeleted = this.#byRole.delete(role);
    for (const onChanged of this.#watchers) onChanged();
    return isDeleted;
  }
}

function compileRule(rule: TopicRule): CompiledRule {
  return { ...rule, matches: compilePattern(rule.topics) };
}
