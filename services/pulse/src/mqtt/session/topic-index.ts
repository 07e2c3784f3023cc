// Finds the topics that match a filter, and the subscriptions that match a topic.
import type { DeadLetterWriter } from "../../deadletter/dead-letter-writer.ts";
import type { Tenant } from "../../topic/name.ts";
import type { Topic, Topics } from "../../topic/topics.ts";
import { toMqttTopic } from "../message-form.ts";
import type { TopicFilter } from "../topic/filter.ts";
import { FilterTree, NameTree } from "../topic/level-trees.ts";
import type { SessionSubscription } from "./topic-reader.ts";

interface TenantIndex {
  topics: NameTree<Topic>;
  filters: FilterTree<SessionSubscription>;
  count: number;
}

/** An index per tenant, made when one of its clients subscribes first. */
export class TopicIndex {
  readonly #topics: Topics;
  readonly #deadLetters: DeadLetterWriter;
  readonly #byTenant = new Map<Tenant, TenantIndex>();

  constructor(topics: Topics, deadLetters: DeadLetterWriter) {
    this.#topics = topics;
    this.#deadLetters = deadLetters;
    topics.watch({
      created: (topic) => this.#add(topic),
      // Sessions follow the partitions that they do not follow yet.
      grown: (topic) => this.#note(topic),
      deleted: ({ tenant, name }) => {
        const own = this.#byTenant.get(tenant);
        const levels = toMqttTopic({ tenant, name } as Topic).split("/");
        own?.topics.delete(levels);
      },
    });
  }

  /** Number of subscriptions of all tenants. */
  get count(): number {
    let count = 0;
    for (const own of this.#byTenant.values()) count += own.count;
    return count;
  }

  /** The existing topics that match a filter. Wildcards do not match dead letter topics. */
  match(tenant: Tenant, filter: TopicFilter): Topic[] {
    const found = this.#of(tenant).topics.match(filter.levels);
    if (!filter.isWildcard) return found;
    return found.filter(({ name }) => !this.#deadLetters.isDeadLetterName(tenant, name));
  }

  /** The subscriptions of all sessions that match a topic. */
  matchTopic(topic: Topic): SessionSubscription[] {
    const own = this.#byTenant.get(topic.tenant);
    return own?.filters.match(toMqttTopic(topic).split("/")) ?? [];
  }

  add(tenant: Tenant, subscription: SessionSubscription): void {
    const own = this.#of(tenant);
    own.filters.add(subscription.filter.levels, subscription);
    own.count++;
  }

  remove(tenant: Tenant, subscription: SessionSubscription): void {
    const own = this.#byTenant.get(tenant);
    if (own === undefined) return;
    own.filters.remove(subscription.filter.levels, subscription);
    if (--own.count === 0) this.#byTenant.delete(tenant);
  }

  #of(tenant: Tenant): TenantIndex {
    const known = this.#byTenant.get(tenant);
    if (known !== undefined) return known;
    const own = {
      topics: new NameTree<Topic>(),
      filters: new FilterTree<SessionSubscription>(),
      count: 0,
    };
    for (const topic of this.#topics.list(tenant))
      own.topics.set(toMqttTopic(topic).split("/"), topic);
    this.#byTenant.set(tenant, own);
    return own;
  }

  #add(topic: Topic): void {
    const own = this.#byTenant.get(topic.tenant);
    if (own === undefined) return;
    own.topics.set(toMqttTopic(topic).split("/"), topic);
    this.#note(topic);
  }

  #note(topic: Topic): void {
    const isDeadLetter = this.#deadLetters.isDeadLetterName(topic.tenant, topic.name);
    for (const subscription of this.matchTopic(topic)) {
      if (isDeadLetter && subscription.filter.isWildcard) continue;
      subscription.session.noteTopic(topic, subscription);
    }
  }
}
