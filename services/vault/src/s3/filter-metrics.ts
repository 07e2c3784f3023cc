// Metrics of the requests that the metrics configurations of buckets name.
// Source: "Amazon S3 request metrics in CloudWatch".
import type { Collector, MetricFamily, MetricRegistry } from "@platform/kernel/metrics";
import type { Bucket } from "../model/bucket.ts";
import type { MetricsFilter } from "../model/bucket-settings.ts";
import type { Store } from "../object-store.ts";
import type { FinishedRequest } from "./finished-request.ts";

/** Configurations with series, over all buckets; those of later buckets, by name, have none. */
const SERIES_MAX = 500;

/** Kinds of requests, as the reference has them. */
const KINDS = ["get", "put", "delete", "head", "post", "select", "list"] as const;
type Kind = (typeof KINDS)[number];

interface Counts {
  readonly requests: Record<Kind, number>;
  clientErrors: number;
  serverErrors: number;
  bytesDownloaded: number;
  bytesUploaded: number;
  seconds: number;
}

/** Counts requests by bucket and configuration. */
export class FilterMetrics implements Collector {
  readonly name = "vault-request-filters";
  readonly #store: Pick<Store, "buckets" | "objects">;
  /** By bucket, then by configuration. */
  readonly #counts = new Map<string, Map<string, Counts>>();
  #size = 0;

  constructor(registry: MetricRegistry, store: Pick<Store, "buckets" | "objects">) {
    this.#store = store;
    registry.collect(this);
  }

  /** Counts a request. Most buckets have no configuration. */
  onFinished(finished: FinishedRequest, durationMs: number): void {
    const bucket = this.#store.buckets.find(finished.bucketName);
    const configurations = bucket?.settings.metrics?.configurations;
    if (bucket === undefined || configurations === undefined) return;
    const kind = findKind(finished);
    if (kind === undefined) return;
    for (const configuration of configurations) {
      if (!mayMatch(configuration, finished.key)) continue;
      if (configuration.tags === undefined) {
        this.#add(bucket, configuration, kind, finished, durationMs);
        continue;
      }
      void this.#hasTags(finished, configuration.tags).then((isMatch) => {
        if (isMatch) this.#add(bucket, configuration, kind, finished, durationMs);
      });
    }
  }

  collect(): MetricFamily[] {
    this.#forget();
    const help = "By bucket and metrics configuration.";
    return [
      this.#collectRequests(help),
      this.#family("errors_total", `Requests with status 4xx or 5xx. ${help}`, (counts) => [
        ["class", "4xx", counts.clientErrors],
        ["class", "5xx", counts.serverErrors],
      ]),
      this.#family("bytes_total", `Bytes of bodies and answers. ${help}`, (counts) => [
        ["direction", "downloaded", counts.bytesDownloaded],
        ["direction", "uploaded", counts.bytesUploaded],
      ]),
      this.#family("seconds_total", `Time from head to end of answer. ${help}`, (counts) => [
        ["part", "total", counts.seconds],
      ]),
    ];
  }

  #collectRequests(help: string): MetricFamily {
    return this.#family("total", `Requests. ${help} At most ${SERIES_MAX} of these.`, (counts) =>
      KINDS.flatMap((kind) =>
        counts.requests[kind] > 0 ? [["kind", kind, counts.requests[kind]] as const] : [],
      ),
    );
  }

  #family(
    name: string,
    help: string,
    read: (counts: Counts) => readonly (readonly [label: string, text: string, value: number])[],
  ): MetricFamily {
    const samples = [...this.#counts].flatMap(([bucket, filters]) =>
      [...filters].flatMap(([filter, counts]) =>
        read(counts).map(([label, text, value]) => ({
          labels: [
            ["bucket", bucket],
            ["filter", filter],
            [label, text],
          ] as const,
          value,
        })),
      ),
    );
    return { type: "counter", name: `platform_vault_bucket_requests_${name}`, help, samples };
  }

  // The tags that the object has now; a deleted one has none.
  async #hasTags(
    { bucketName: bucket, key }: FinishedRequest,
    wanted: Readonly<Record<string, string>>,
  ): Promise<boolean> {
    if (key === "") return false;
    try {
      const { tags } = await this.#store.objects.describe({ bucket, key });
      return Object.entries(wanted).every(([name, value]) => tags[name] === value);
    } catch {
      return false;
    }
  }

  #add(
    { name }: Bucket,
    { id }: MetricsFilter,
    kind: Kind,
    { request, status }: FinishedRequest,
    durationMs: number,
  ): void {
    const counts = this.#require(name, id);
    if (counts === undefined) return;
    const { exchange, fields } = request;
    counts.requests[kind] += 1;
    counts.seconds += durationMs / 1_000;
    if (status >= 500) counts.serverErrors += 1;
    else if (status >= 400) counts.clientErrors += 1;
    if (exchange.sequence === request.sequence) counts.bytesDownloaded += exchange.bytesOut;
    if (kind !== "put" && kind !== "post") return;
    const declared = fields.get("x-amz-decoded-content-length") ?? fields.get("content-length");
    if (status < 300) counts.bytesUploaded += Number(declared ?? 0);
  }

  #require(bucket: string, filter: string): Counts | undefined {
    let filters = this.#counts.get(bucket);
    const known = filters?.get(filter);
    if (known !== undefined) return known;
    if (this.#size >= SERIES_MAX) this.#forget();
    if (this.#size >= SERIES_MAX) return undefined;
    if (filters === undefined) this.#counts.set(bucket, (filters = new Map()));
    const counts: Counts = {
      requests: { get: 0, put: 0, delete: 0, head: 0, post: 0, select: 0, list: 0 },
      clientErrors: 0,
      serverErrors: 0,
      bytesDownloaded: 0,
      bytesUploaded: 0,
      seconds: 0,
    };
    filters.set(filter, counts);
    this.#size += 1;
    return counts;
  }

  // Series of configurations that are gone.
  #forget(): void {
    for (const [bucket, filters] of this.#counts) {
      const settings = this.#store.buckets.find(bucket)?.settings;
      const ids = new Set(settings?.metrics?.configurations.map(({ id }) => id));
      for (const id of filters.keys()) {
        if (ids.has(id)) continue;
        filters.delete(id);
        this.#size -= 1;
      }
      if (filters.size === 0) this.#counts.delete(bucket);
    }
  }
}

// Requests for the bucket itself count only without a filter.
function mayMatch({ prefix, tags }: MetricsFilter, key: string): boolean {
  if (key === "") return prefix === undefined && tags === undefined;
  return prefix === undefined || key.startsWith(prefix);
}

function findKind({ operation, request: { method } }: FinishedRequest): Kind | undefined {
  if (operation.startsWith("List")) return "list";
  if (operation.startsWith("Select")) return "select";
  switch (method) {
    case "GET":
      return "get";
    case "PUT":
      return "put";
    case "DELETE":
      return "delete";
    case "HEAD":
      return "head";
    case "POST":
      return "post";
    default:
      return undefined;
  }
}
