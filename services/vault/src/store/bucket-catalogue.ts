// The buckets in memory: every request looks one up; a committed change replaces the entry.
import type { BucketSettingKind, BucketSettings } from "../model/bucket-settings.ts";
import {
  ACCESS_LOG_BUCKET,
  type Bucket,
  type CreateBucketRequest,
  isHiddenBucket,
  JOB_BUCKET,
  MODULE_BUCKET,
} from "../model/bucket.ts";
import type { NotificationRule } from "../model/event.ts";
import { StoreError } from "../model/store-error.ts";
import type { ConfigureBucketOperation } from "../transaction/bucket-operations.ts";
import type { BucketState } from "../transaction/writer-context.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import type { BucketsFile } from "./buckets-file.ts";

// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
const NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const ADDRESS = /^\d+\.\d+\.\d+\.\d+$/;
const RESERVED = /^(?:xn--|sthree-|amzn-s3-demo-)|(?:-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$/;
/** Labels begin and end with a letter or digit, as in host names. */
const LABEL_BROKEN = /\.\.|\.-|-\./;

/** Throws `InvalidBucketName` for a name that no new bucket can have. */
export function requireBucketName(bucket: string): void {
  const isName = NAME.test(bucket) && !ADDRESS.test(bucket) && !LABEL_BROKEN.test(bucket);
  if (isName && !RESERVED.test(bucket)) return;
  throw new StoreError("InvalidBucketName", "The specified bucket is not valid.", { bucket });
}

/** The buckets of a store. */
export class BucketCatalogue {
  readonly #writer: IndexWriter;
  readonly #now: () => number;
  readonly #file: BucketsFile;
  readonly #states = new Map<string, BucketState>();
  /** Names of buckets that are being restored. */
  readonly #hidden = new Set<string>();
  #sorted: readonly Bucket[] | undefined;

  constructor(writer: IndexWriter, file: BucketsFile, now: () => number) {
    this.#writer = writer;
    this.#file = file;
    this.#now = now;
    for (const state of writer.ready.buckets) {
      const { name } = state.bucket;
      if (isHiddenBucket(name)) this.#hidden.add(name);
      else this.#states.set(name, state);
    }
    file.refresh(this.list());
  }

  get count(): number {
    return this.#states.size;
  }

  /** Buckets of users: all but those that storage makes itself. */
  get usersCount(): number {
    const own = [ACCESS_LOG_BUCKET, MODULE_BUCKET, JOB_BUCKET];
    return this.count - own.filter((name) => this.#states.has(name)).length;
  }

  /** From memory: cheap enough for each request. */
  find(name: string): Bucket | undefined {
    return this.#states.get(name)?.bucket;
  }

  /** As `find`, but throws `NoSuchBucket`. */
  require(name: string): Bucket {
    return this.requireState(name).bucket;
  }

  /** The bucket with its number in the index. */
  findState(name: string): BucketState | undefined {
    return this.#states.get(name);
  }

  /** As `findState`, but throws `NoSuchBucket`. */
  requireState(name: string): BucketState {
    const state = this.#states.get(name);
    if (state !== undefined) return state;
    throw new StoreError("NoSuchBucket", "The specified bucket does not exist", { bucket: name });
  }

  /** All buckets, sorted by name. */
  list(): readonly Bucket[] {
    this.#sorted ??= [...this.#states.values()]
      .map(({ bucket }) => bucket)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#sorted;
  }

  /** The names of buckets that are being restored, which nothing else shows. */
  get hiddenNames(): readonly string[] {
    return [...this.#hidden];
  }

  /** Creates the hidden bucket of an import, unless it exists. */
  async beginImport(bucket: Bucket): Promise<void> {
    await this.#writer.submit({ type: "importBucket", bucket });
    this.#hidden.add(bucket.name);
  }

  /** An import has ended, by a commit that gave the bucket its name. */
  endImport(hidden: string, published: BucketState): void {
    this.#hidden.delete(hidden);
    this.#replace(published);
  }

  /** Removes a hidden bucket with everything in it. */
  async dropImport(hidden: string): Promise<void> {
    const operation = { type: "dropImport", bucket: hidden, versionsMax: 500 } as const;
    for (let isGone = false; !isGone;) ({ isGone } = await this.#writer.submit(operation));
    this.#hidden.delete(hidden);
  }

  /** Waits for the copy on disk. */
  async close(): Promise<void> {
    await this.#file.close();
  }

  /** Throws `BucketAlreadyOwnedByYou` or `BucketAlreadyExists`, depending on the owner's id. */
  async create(request: CreateBucketRequest): Promise<Bucket> {
    requireBucketName(request.bucket);
    const nowMs = this.#now();
    return this.#replace(await this.#writer.submit({ type: "createBucket", request, nowMs }));
  }

  /** Throws `BucketNotEmpty` if it has an object, a version or a delete marker. Aborts open uploads. */
  async delete(bucket: string): Promise<void> {
    await this.#writer.submit({ type: "deleteBucket", bucket });
    this.#states.delete(bucket);
    this.#sorted = undefined;
    this.#file.save(this.list());
  }

  /**
   * Throws `InvalidBucketState` when it would suspend versioning in a bucket with object lock, and `PreconditionFailed` if
   * the bucket is no longer as `expected`, as the next two do.
   */
  setVersioning(
    bucket: string,
    versioning: "Enabled" | "Suspended",
    expected?: Bucket,
  ): Promise<void> {
    return this.#configure({ bucket, versioning, expected });
  }

  /** Replaces a setting. `objectLock` enables object lock and requires versioning. */
  setSetting<Kind extends BucketSettingKind>(
    bucket: string,
    kind: Kind,
    document: BucketSettings[Kind],
    expected?: Bucket,
  ): Promise<void> {
    return this.#configure({ bucket, setting: { kind, document }, expected });
  }

  /** Removes a setting, if it exists. */
  deleteSetting(bucket: string, kind: BucketSettingKind, expected?: Bucket): Promise<void> {
    return this.#configure({ bucket, setting: { kind }, nowMs: this.#now(), expected });
  }

  /** Adds a rule to the `notification` setting; replaces a rule with the same id. `InvalidBucketState` beyond 100 rules. */
  addSubscription(bucket: string, subscription: NotificationRule): Promise<void> {
    return this.#configure({ bucket, subscription });
  }

  /** Removes a rule from the `notification` setting, if it exists. */
  removeSubscription(bucket: string, id: string): Promise<void> {
    return this.#configure({ bucket, removedSubscription: id });
  }

  /** False if the subscription was deleted. A deleted bucket has none, but its last events are still wanted. */
  wantsEvents(bucket: string, subscription: string): boolean {
    const found = this.find(bucket);
    const rules = found?.settings.notification?.rules ?? [];
    return found === undefined || rules.some(({ id }) => id === subscription);
  }

  async #configure(change: Omit<ConfigureBucketOperation, "type">): Promise<void> {
    this.#replace(await this.#writer.submit({ type: "configureBucket", ...change }));
  }

  #replace(state: BucketState): Bucket {
    this.#states.set(state.bucket.name, state);
    this.#sorted = undefined;
    this.#file.save(this.list());
    return state.bucket;
  }
}
