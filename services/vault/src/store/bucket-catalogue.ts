// Buckets in memory: what every request looks up, replaced whenever a change of one was committed.
import type { BucketSettingKind, BucketSettings } from "../model/bucket-settings.ts";
import type { Bucket, CreateBucketRequest } from "../model/bucket.ts";
import type { NotificationRule } from "../model/event.ts";
import { StoreError } from "../model/store-error.ts";
import type { BucketState } from "../transaction/writer-context.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import type { BucketsFile } from "./buckets-file.ts";

// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
const NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const ADDRESS = /^\d+\.\d+\.\d+\.\d+$/;
const RESERVED = /^(?:xn--|sthree-|amzn-s3-demo-)|(?:-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$/;
/** Labels of a name begin and end with a letter or digit, as those of hosts do. */
const LABEL_BROKEN = /\.\.|\.-|-\./;

/** The buckets of a store. */
export class BucketCatalogue {
  readonly #writer: IndexWriter;
  readonly #now: () => number;
  readonly #file: BucketsFile;
  readonly #states = new Map<string, BucketState>();
  #sorted: readonly Bucket[] | undefined;

  constructor(writer: IndexWriter, file: BucketsFile, now: () => number) {
    this.#writer = writer;
    this.#file = file;
    this.#now = now;
    for (const state of writer.ready.buckets) this.#states.set(state.bucket.name, state);
    file.refresh(this.list());
  }

  get count(): number {
    return this.#states.size;
  }

  find(name: string): BucketState | undefined {
    return this.#states.get(name);
  }

  /** The bucket, or `NoSuchBucket`. */
  require(name: string): BucketState {
    const state = this.#states.get(name);
    if (state !== undefined) return state;
    throw new StoreError("NoSuchBucket", "The specified bucket does not exist", { bucket: name });
  }

  /** By name. */
  list(): readonly Bucket[] {
    this.#sorted ??= [...this.#states.values()]
      .map(({ bucket }) => bucket)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#sorted;
  }

  /** Waits for the copy on the disk. */
  async close(): Promise<void> {
    await this.#file.close();
  }

  async create(request: CreateBucketRequest): Promise<Bucket> {
    const { bucket } = request;
    const isName = NAME.test(bucket) && !ADDRESS.test(bucket) && !LABEL_BROKEN.test(bucket);
    if (!isName || RESERVED.test(bucket)) {
      throw new StoreError("InvalidBucketName", "The specified bucket is not valid.", { bucket });
    }
    const nowMs = this.#now();
    return this.#replace(await this.#writer.submit({ type: "createBucket", request, nowMs }));
  }

  async remove(bucket: string): Promise<void> {
    await this.#writer.submit({ type: "deleteBucket", bucket });
    this.#states.delete(bucket);
    this.#sorted = undefined;
    this.#file.save(this.list());
  }

  async setVersioning(bucket: string, versioning: "Enabled" | "Suspended"): Promise<void> {
    this.#replace(await this.#writer.submit({ type: "configureBucket", bucket, versioning }));
  }

  async setSetting<Kind extends BucketSettingKind>(
    bucket: string,
    kind: Kind,
    document: BucketSettings[Kind] | undefined,
  ): Promise<void> {
    const setting = { kind, ...(document === undefined ? {} : { document }) };
    this.#replace(await this.#writer.submit({ type: "configureBucket", bucket, setting }));
  }

  async addSubscription(bucket: string, subscription: NotificationRule): Promise<void> {
    this.#replace(await this.#writer.submit({ type: "configureBucket", bucket, subscription }));
  }

  #replace(state: BucketState): Bucket {
    this.#states.set(state.bucket.name, state);
    this.#sorted = undefined;
    this.#file.save(this.list());
    return state.bucket;
  }
}
