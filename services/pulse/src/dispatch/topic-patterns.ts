// The topics that match patterns: found once for all subscriptions to a pattern, and kept up to date.
import type { PlatformError } from "@platform/kernel/errors";
import { compilePattern } from "../topic/pattern.ts";
import type { Tenant } from "../topic/name.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { FollowAccount } from "./followed-topics.ts";
import type { Turns } from "./turns.ts";

/** A subscription to a pattern. */
export interface PatternRequest {
  tenant: Tenant;
  pattern: string;
  /** Selects among the topics that match, for example those for which the client has the right. */
  selects: (name: string) => boolean;
  account: FollowAccount;
}

/** The receiver of a pattern's topics. */
export interface PatternFollower {
  /** `isNew`: the topic was created after the subscription. */
  add: (topic: Topic, isNew: boolean) => void;
  /** The topic was deleted, or the subscription was closed before: topics are removed in turns. Must not throw. */
  remove: (topic: Topic) => void;
  /** A new topic is not followed: there is no room for it. */
  exceed: (error: PlatformError) => void;
}

interface Watcher {
  created: (topic: Topic) => void;
  deleted: (topic: Topic) => void;
}

/** The topics of one pattern. */
interface Matched {
  matches: (name: string) => boolean;
  topics: Set<Topic>;
  watchers: Set<Watcher>;
  /** Resolves when all existing topics have been looked at. */
  complete: Promise<void>;
}

/** The patterns that have subscriptions. */
export class TopicPatterns {
  readonly #topics: Topics;
  readonly #turns: Turns;
  readonly #byTenant = new Map<Tenant, Map<string, Matched>>();

  constructor(topics: Topics, turns: Turns) {
    this.#topics = topics;
    this.#turns = turns;
    topics.watch({
      created: (topic) => {
        for (const matched of this.#byTenant.get(topic.tenant)?.values() ?? []) {
          if (!matched.matches(topic.name)) continue;
          matched.topics.add(topic);
          for (const watcher of matched.watchers) watcher.created(topic);
        }
      },
      deleted: (topic) => {
        for (const { topics: own, watchers } of this.#byTenant.get(topic.tenant)?.values() ?? []) {
          if (own.delete(topic)) for (const watcher of watchers) watcher.deleted(topic);
        }
      },
    });
  }

  /**
   * Adds the topics to a follower in turns, and later ones when they are created; resolves when it has the existing ones with
   * what ends it. Throws `validation_failed` for invalid patterns, and the error of the account if the topics have no room:
   * then none is followed.
   */
  async follow(request: PatternRequest, follower: PatternFollower): Promise<() => void> {
    const { tenant, pattern, selects, account } = request;
    const matched = this.#open(tenant, pattern);
    const followed = new Set<Topic>();
    let isClosed = false;
    const watcher: Watcher = {
      created: (topic) => {
        if (!selects(topic.name)) return;
        const error = account.explain(1);
        if (error !== undefined) {
          follower.exceed(error);
          return;
        }
        account.take(1);
        followed.add(topic);
        follower.add(topic, true);
      },
      deleted: (topic) => {
        if (!followed.delete(topic)) return;
        account.give(1);
        follower.remove(topic);
      },
    };
    matched.watchers.add(watcher);
    const close = (): void => {
      if (isClosed) return;
      isClosed = true;
      this.#close(tenant, pattern, matched, watcher);
      const leaving = Array.from(followed);
      followed.clear();
      account.give(leaving.length);
      void this.#turns.forEach(leaving, (topic) => follower.remove(topic));
    };
    try {
      await matched.complete;
      const chosen: Topic[] = [];
      await this.#turns.forEach(matched.topics, (topic) => {
        if (!followed.has(topic) && selects(topic.name)) chosen.push(topic);
      });
      // Counted before any is followed, so that a refused subscription costs nothing.
      account.take(chosen.length);
      for (const topic of chosen) followed.add(topic);
      await this.#turns.forEach(chosen, (topic) => {
        if (followed.has(topic)) follower.add(topic, false);
      });
    } catch (error) {
      close();
      throw error;
    }
    return close;
  }

  #open(tenant: Tenant, pattern: string): Matched {
    const own = this.#byTenant.get(tenant) ?? new Map<string, Matched>();
    const known = own.get(pattern);
    if (known !== undefined) return known;
    const matches = compilePattern(pattern);
    const topics = new Set<Topic>();
    const complete = this.#turns.forEach(this.#topics.list(tenant), (topic) => {
      if (matches(topic.name)) topics.add(topic);
    });
    const matched = { matches, topics, watchers: new Set<Watcher>(), complete };
    own.set(pattern, matched);
    this.#byTenant.set(tenant, own);
    return matched;
  }

  #close(tenant: Tenant, pattern: string, matched: Matched, watcher: Watcher): void {
    matched.watchers.delete(watcher);
    if (matched.watchers.size > 0) return;
    const own = this.#byTenant.get(tenant);
    if (own?.get(pattern) !== matched) return;
    own.delete(pattern);
    if (own.size === 0) this.#byTenant.delete(tenant);
  }
}
