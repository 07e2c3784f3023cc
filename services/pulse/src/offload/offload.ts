// The offload of a broker: which object store, probed and stored, and the passes of the log.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { createEgressGuard } from "@platform/kernel/egress";
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { every, systemClock, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import { openNodeDisk, type ColdOptions, type Log, type OffloadStatus } from "@platform/log";
import { S3ClientError } from "@platform/s3";
import type { PulseConfig } from "../config.ts";
import { findLoop } from "./notification-loop.ts";
import { S3ColdStore } from "./s3-cold-store.ts";
import { OffloadFile, type StoredOffload } from "./settings-file.ts";
import { isSamePlace, type OffloadTarget } from "../offload-target.ts";
import { UploadRate } from "./upload-rate.ts";

const PASS_MS = 1_000;
/** The figures look at all segments. */
const STATUS_MS = 1_000;
const PARALLEL_HEADS = 16;

/** Options of `Offload.open`. */
export interface OffloadOptions {
  config: PulseConfig;
  clock: Clock;
  log: Logger;
}

interface Active {
  target: OffloadTarget;
  isUploading: boolean;
  source: "config" | "api";
  store: S3ColdStore;
}

/** The state of the offload as the API shows it, without the log's figures. */
export interface OffloadSetting {
  target: Omit<OffloadTarget, "token"> | undefined;
  isUploading: boolean;
  source: "config" | "api" | undefined;
}

/** The object store in use. Errors of its changes are PlatformErrors. */
export class Offload {
  readonly #options: OffloadOptions;
  readonly #file: OffloadFile;
  readonly #rate: UploadRate;
  #active: Active | undefined;
  #journal: Log | undefined;
  #timer: RepeatingTimer | undefined;
  #changing: Promise<unknown> = Promise.resolve();
  #status: { value: OffloadStatus; atMs: number } | undefined;

  private constructor(options: OffloadOptions) {
    this.#options = options;
    this.#file = new OffloadFile(options.config.data_dir);
    this.#rate = new UploadRate(options.config.offload_bytes_rate, options.clock);
  }

  /** Reads the store from the configuration, or from the data folder. */
  static async open(options: OffloadOptions): Promise<Offload> {
    const offload = new Offload(options);
    const found = await findTarget(options.config, offload.#file);
    if (found !== undefined) {
      offload.#active = offload.#activate(found.target, found.isUploading, found.source);
    }
    return offload;
  }

  /** The store for the log; undefined without one. */
  get cold(): ColdOptions | undefined {
    return this.#active && this.#toCold(this.#active);
  }

  /** Starts the passes of a log that was opened with `cold`. */
  start(journal: Log): void {
    this.#journal = journal;
    if (this.#active !== undefined) void this.#warnOfLoop(this.#active);
    this.#timer = every(
      PASS_MS,
      () => journal.offload(),
      (error) => this.#options.log.error("offload failed", { error }),
    );
  }

  /** Does now what is due: the settings of a topic have changed. */
  wake(): void {
    void this.#timer?.run();
  }

  async #warnOfLoop(active: Active): Promise<void> {
    const { log } = this.#options;
    try {
      const notification = await this.#findLoop(active);
      if (notification === undefined) return;
      log.error("a notification of the bucket sends uploads of this broker to itself", {
        notification,
      });
    } catch (error) {
      log.warn("the notifications of the bucket could not be read", { error });
    }
  }

  get setting(): OffloadSetting {
    if (this.#active === undefined) {
      return { target: undefined, isUploading: false, source: undefined };
    }
    const { isUploading, source } = this.#active;
    const { token: _token, ...target } = this.#active.target;
    return { target, isUploading, source };
  }

  /** The log's figures, at most a second old. */
  get status(): OffloadStatus {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#status === undefined || nowMs - this.#status.atMs >= STATUS_MS) {
      this.#status = { value: this.#requireJournal().offloadStatus(), atMs: nowMs };
    }
    return this.#status.value;
  }

  /** True if there are remote segments and no store to read them from. */
  get isUnconfigured(): boolean {
    return this.#active === undefined && this.status.remoteSegments > 0;
  }

  /**
   * Probes a store, stores it and uses it from then on. `moved`: the objects were copied there; each is looked for.
   * Errors: `configured`, `offload_unreachable`, `remote_segments_exist`.
   */
  set(target: OffloadTarget, isUploading: boolean, moved: boolean): Promise<void> {
    return this.#change(async () => {
      this.#requireUnconfigured();
      const next = this.#activate(target, isUploading, "api");
      try {
        await probe(next.store);
        await this.#refuseLoop(next);
        await this.#requireObjects(next, moved);
        await this.#file.write({ ...target, enabled: isUploading });
      } catch (error) {
        next.store.close();
        throw error;
      }
      await this.#use(next);
    });
  }

  /**
   * Stops uploads. While there are remote segments, `isForced` is required, and reads go on; otherwise the store is
   * forgotten.
   */
  stop(isForced: boolean): Promise<void> {
    return this.#change(async () => {
      this.#requireUnconfigured();
      const active = this.#active;
      if (active === undefined) return;
      const { remoteSegments } = this.#requireJournal().offloadStatus();
      if (remoteSegments > 0 && !isForced) throw createSegmentsError(remoteSegments);
      if (remoteSegments > 0) {
        const stored: StoredOffload = { ...active.target, enabled: false };
        await this.#file.write(stored);
        await this.#use({ ...active, isUploading: false });
      } else {
        await this.#file.remove();
        await this.#use(undefined);
      }
    });
  }

  /** Stops the passes; what is being uploaded is finished or given up by the log's own close. */
  async close(): Promise<void> {
    this.#active?.store.close();
    await this.#timer?.stop();
  }

  // Only notifications about segments matter: the bucket may serve other purposes as well.
  async #findLoop({ store, target }: Active): Promise<string | undefined> {
    const document = await store.readNotifications();
    if (document === undefined) return undefined;
    return findLoop(document, `${target.prefix}log/`, this.#options.config);
  }

  async #refuseLoop(next: Active): Promise<void> {
    const id = await this.#findLoop(next);
    if (id === undefined) return;
    const detail = `The notification ${id} of the bucket sends uploads below ${next.target.prefix}log/ to this broker: each would cause the next one. Give it another prefix.`;
    throw new PlatformError("offload_loop", detail, { fields: { notification: id } });
  }

  #activate(target: OffloadTarget, isUploading: boolean, source: Active["source"]): Active {
    const { config, clock } = this.#options;
    const store = openStore(config, { target, source }, this.#rate, clock);
    return { target, isUploading, source, store };
  }

  #toCold({ store, isUploading }: Active): ColdOptions {
    const { config } = this.#options;
    return {
      store,
      cache: openNodeDisk(join(config.data_dir, "offload-cache")),
      cacheBytesMax: config.offload_cache_bytes,
      isUploading,
      rollMs: config.offload_roll_ms,
    };
  }

  async #use(next: Active | undefined): Promise<void> {
    const before = this.#active;
    this.#active = next;
    this.#status = undefined;
    await this.#requireJournal().setColdStore(next && this.#toCold(next));
    if (before !== undefined && before.store !== next?.store) before.store.close();
  }

  // One after another: each compares with the state before it.
  #change(work: () => Promise<void>): Promise<void> {
    const run = this.#changing.then(work);
    this.#changing = run.catch(() => undefined);
    return run;
  }

  #requireUnconfigured(): void {
    if (this.#active?.source !== "config") return;
    const detail = "The object store comes from the configuration: change it there.";
    throw new PlatformError("configured", detail);
  }

  async #requireObjects(next: Active, moved: boolean): Promise<void> {
    const journal = this.#requireJournal();
    const { remoteSegments } = journal.offloadStatus();
    const before = this.#active?.target;
    if (remoteSegments === 0) return;
    if (before !== undefined && isSamePlace(before, next.target)) return;
    if (!moved && before !== undefined) throw createSegmentsError(remoteSegments);
    // Without a store so far, for example after a lost data folder, the new one must have the objects as well.
    await findObjects(journal, next.store);
  }

  #requireJournal(): Log {
    if (this.#journal === undefined) throw new Error("the offload has not been started");
    return this.#journal;
  }
}

/** The object store of a stopped broker, for its commands; undefined without one. Its caller closes it. */
export async function openObjectStore(config: PulseConfig): Promise<S3ColdStore | undefined> {
  const found = await findTarget(config, new OffloadFile(config.data_dir));
  if (found === undefined) return undefined;
  return openStore(config, found, new UploadRate(0, systemClock), systemClock);
}

async function findTarget(
  config: PulseConfig,
  file: OffloadFile,
): Promise<Omit<Active, "store"> | undefined> {
  const configured = readConfig(config);
  if (configured !== undefined) return { target: configured, isUploading: true, source: "config" };
  const stored = await file.read();
  if (stored === undefined) return undefined;
  const { enabled, ...target } = stored;
  return { target, isUploading: enabled, source: "api" };
}

function openStore(
  { egress_networks: allowedNetworks }: PulseConfig,
  { target, source }: Pick<Active, "target" | "source">,
  rate: UploadRate,
  clock: Clock,
): S3ColdStore {
  const guard = source === "api" ? createEgressGuard({ allowedNetworks }) : undefined;
  return new S3ColdStore({ target, rate, guard, clock });
}

function readConfig(config: PulseConfig): OffloadTarget | undefined {
  const { s3_endpoint: endpoint, s3_bucket: bucket, s3_token: token } = config;
  if (endpoint === undefined && bucket === undefined && token === undefined) return undefined;
  if (endpoint === undefined || bucket === undefined || token === undefined) {
    throw new Error("s3_endpoint, s3_bucket and s3_token belong together: one of them is missing");
  }
  return { endpoint, bucket, token, region: config.s3_region, prefix: config.s3_prefix };
}

async function probe(store: S3ColdStore): Promise<void> {
  try {
    await store.probe(`probe-${randomBytes(8).toString("hex")}`);
  } catch (error) {
    if (!(error instanceof S3ClientError)) throw error;
    const { code, serverCode, operation, message } = error;
    const detail = `The object store cannot be used: ${operation} fails with ${serverCode ?? code} (${message}).`;
    const fields = { operation, store_code: serverCode ?? code };
    throw new PlatformError("offload_unreachable", detail, { fields, cause: error });
  }
}

async function findObjects(journal: Log, store: S3ColdStore): Promise<void> {
  const queue = journal.objects();
  const lane = async (): Promise<void> => {
    for (const { object, bytes } of queue) {
      const found = await store.head(object).catch((cause: unknown) => {
        const detail = `The object store fails while ${object} is looked for.`;
        throw new PlatformError("offload_unreachable", detail, { cause });
      });
      if (found === bytes) continue;
      const what = found === undefined ? "is missing" : `has ${found} bytes instead of ${bytes}`;
      throw new PlatformError("remote_segments_exist", `${object} ${what} in the new place.`);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_HEADS }, lane));
}

function createSegmentsError(count: number): PlatformError {
  const detail = `${count} segments are in the object store in use.`;
  return new PlatformError("remote_segments_exist", detail, { fields: { remote_segments: count } });
}
