// Rules of federation: which buckets are those of a remote.
import type { IndexConnection } from "../index/schema.ts";
import { FEDERATION_REMOTE, type FederationRule } from "../model/federation.ts";
import { StoreError } from "../model/store-error.ts";
import { listFederation } from "../transaction/federation-operations.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import type { RemoteService } from "./remote-service.ts";

/** Options of the service. */
export interface FederationServiceOptions {
  readonly index: IndexConnection;
  readonly writer: IndexWriter;
  readonly remotes: RemoteService;
  readonly now: () => number;
  readonly takeId: () => string;
}

/** A store to register with a rule. */
export interface OwnEndpoint {
  readonly endpoint: string;
  readonly region: string;
  readonly access_key: string;
  readonly secret_key: string;
}

/** Keeps the rules in memory: each request asks them. */
export class FederationService {
  readonly #options: FederationServiceOptions;
  #rules: readonly FederationRule[];

  constructor(options: FederationServiceOptions) {
    this.#options = options;
    this.#rules = sort(listFederation(options.index));
  }

  /** Rules, the longest prefix first. */
  list(): readonly FederationRule[] {
    return this.#rules;
  }

  /** The rule of a bucket: that with the longest prefix. */
  find(bucket: string): FederationRule | undefined {
    return this.#rules.find(({ prefix }) => bucket.startsWith(prefix));
  }

  /** Adds a rule for a registered remote, or for one that is registered with it. Throws OperationAborted or InvalidArgument. */
  async add(prefix: string, place: { remote: string } | OwnEndpoint): Promise<FederationRule> {
    const { writer, remotes, now, takeId } = this.#options;
    const id = takeId();
    const remote = "remote" in place ? place.remote : `${FEDERATION_REMOTE}${id.toLowerCase()}`;
    if (!("remote" in place)) {
      const { endpoint, region, access_key, secret_key } = place;
      const own = { name: remote, endpoint, region, access_key, path_style: true, prefix: "" };
      await remotes.add({ ...own, allow: [], rate_bytes: 0, classes: [] }, secret_key);
    }
    const found = remotes.find(remote);
    if (found === undefined)
      throw new StoreError("InvalidArgument", `remote: there is no remote ${remote}`);
    // Keys of its buckets would be others there.
    if (found.settings.prefix !== "")
      throw new StoreError("InvalidArgument", `remote: ${remote} has a prefix`);
    const rule: FederationRule = { id, prefix, remote, createdMs: now() };
    try {
      await writer.submit({ type: "addFederation", rule });
    } catch (error) {
      await this.#removeOwn(remote);
      throw error;
    }
    this.#rules = sort([...this.#rules, rule]);
    return rule;
  }

  /** Removes a rule, and the remote that was registered with it. Throws NoSuchConfiguration. */
  async remove(id: string): Promise<void> {
    const rule = this.#rules.find((one) => one.id === id);
    if (rule === undefined)
      throw new StoreError("NoSuchConfiguration", "The rule of federation does not exist.");
    await this.#options.writer.submit({ type: "removeFederation", id });
    this.#rules = this.#rules.filter((one) => one.id !== id);
    await this.#removeOwn(rule.remote);
  }

  async #removeOwn(remote: string): Promise<void> {
    if (remote.startsWith(FEDERATION_REMOTE)) await this.#options.remotes.remove(remote);
  }
}

function sort(rules: readonly FederationRule[]): FederationRule[] {
  return rules.toSorted((a, b) => b.prefix.length - a.prefix.length);
}
