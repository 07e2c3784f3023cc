// The buckets of remotes that rules of federation have, for listings.
import type { Clock } from "@platform/kernel/time";
import type { Logger } from "@platform/kernel/log";
import { S3ClientError } from "@platform/s3";
import type { FederationRule } from "../model/federation.ts";
import { S3Error } from "../model/s3-error.ts";
import type { Store } from "../object-store.ts";
import type { FederatedBucket } from "../s3/context.ts";
import { parseXml } from "../s3/wire/xml.ts";
import type { Forwarder } from "./forwarder.ts";

/** Names of a remote that does not answer are kept for this time. */
const KEPT_MS = 30_000;
/** Names are asked for again after this time. */
const FRESH_MS = 1_000;
const LIST_MS_MAX = 5_000;
const BUCKETS_MAX = 10_000;

interface Known {
  readonly buckets: readonly FederatedBucket[];
  readonly atMs: number;
}

/** Options of {@link FarBuckets}. */
export interface FarBucketsOptions {
  readonly store: Store;
  readonly forwarder: Forwarder;
  readonly clock: Clock;
  readonly log: Logger;
}

export class FarBuckets {
  readonly #options: FarBucketsOptions;
  readonly #known = new Map<string, Known>();
  /** Listings without the names of a remote that did not answer. */
  leftOut = 0;

  constructor(options: FarBucketsOptions) {
    this.#options = options;
  }

  /** The buckets of all rules, by name. A remote that does not answer delays a listing by 5 s at most. */
  async list(): Promise<readonly FederatedBucket[]> {
    const { store } = this.#options;
    const rules = store.federation.list();
    for (const remote of this.#known.keys())
      if (!rules.some((rule) => rule.remote === remote)) this.#known.delete(remote);
    const remotes = [...new Set(rules.map(({ remote }) => remote))];
    const found = await Promise.all(
      remotes.map((remote) => this.#listRemote(rules.find((rule) => rule.remote === remote)!)),
    );
    return remotes.flatMap((remote, index) =>
      found[index]!.filter(
        ({ name }) =>
          store.federation.find(name)?.remote === remote && store.buckets.find(name) === undefined,
      ),
    );
  }

  async #listRemote(rule: FederationRule): Promise<readonly FederatedBucket[]> {
    const { forwarder, clock, log } = this.#options;
    const { remote: name } = rule;
    const known = this.#known.get(name);
    const ageMs = known === undefined ? Infinity : clock.monotonicMs() - known.atMs;
    if (known !== undefined && ageMs < FRESH_MS) return known.buckets;
    try {
      const { text } = await forwarder
        .requireRemote(rule)
        .forwarder("")
        .request(
          { operation: "list", method: "GET" },
          { signal: AbortSignal.timeout(LIST_MS_MAX), attemptsMax: 1 },
        );
      const buckets = parseBuckets(text);
      this.#known.set(name, { buckets, atMs: clock.monotonicMs() });
      return buckets;
    } catch (error) {
      if (!(error instanceof S3ClientError) && !(error instanceof S3Error)) throw error;
      if (known !== undefined && ageMs < KEPT_MS) return known.buckets;
      this.leftOut += 1;
      log.warn("the buckets of a remote are left out of a listing", {
        remote: name,
        reason: error.message,
      });
      return [];
    }
  }
}

function parseBuckets(text: string): FederatedBucket[] {
  const root = parseXml(Buffer.from(text), "ListAllMyBucketsResult", {
    elementsMax: BUCKETS_MAX * 5,
  });
  const list = root.find("Buckets")?.list("Bucket") ?? [];
  return list.slice(0, BUCKETS_MAX).map((item) => ({
    name: item.getText("Name"),
    createdMs: Date.parse(item.findText("CreationDate") ?? "") || 0,
    region: item.findText("BucketRegion"),
  }));
}
