// The store: buckets, objects, uploads, events and upkeep, independent of HTTP.
import type { Snapshot } from "@platform/kernel/backup";
import type { StoreFolders } from "./disk/files.ts";
import type { FreeSpace } from "./disk/free-space.ts";
import { FailoverIndex } from "./index/failover-index.ts";
import {
  clearQuestionSnapshots,
  type QuestionSnapshot,
  takeQuestionSnapshot,
} from "./index/question-snapshot.ts";
import type { IndexConnection } from "./index/schema.ts";
import type { EventOutbox } from "./model/event.ts";
import type { GeoMark } from "./model/geo.ts";
import { StoreError } from "./model/store-error.ts";
import type { BucketUsage } from "./model/usage.ts";
import type { DriveMonitor, DriveState } from "./upkeep/drive-monitor.ts";
import type { IndexCopyState } from "./upkeep/index-copier.ts";
import { clearSnapshot, takeStoreSnapshot } from "./upkeep/store-snapshot.ts";
import { Maintenance, type MaintenanceOptions } from "./upkeep/maintenance.ts";
import type { QuarantineTotals } from "./blob/quarantine.ts";
import type { MarkPosition } from "./query/list-geo-marks.ts";
import type { BucketCatalogue } from "./store/bucket-catalogue.ts";
import { CopyService } from "./store/copy-service.ts";
import { ImportService } from "./store/import-service.ts";
import { JobService } from "./store/job-service.ts";
import { KeyService } from "./store/key-service.ts";
import { MultipartService } from "./store/multipart-service.ts";
import { ObjectService, type ServiceEnvironment } from "./store/object-service.ts";
import { StoredOutbox } from "./store/outbox.ts";
import type { RemoteService } from "./store/remote-service.ts";
import { FederationService } from "./store/federation-service.ts";
import { ReplicationService } from "./store/replication-service.ts";
import type { TierService } from "./store/tier-service.ts";
import type { Sweeps } from "./upkeep/sweeps.ts";
import type { Embedder } from "./model/vector.ts";
import { createVersionEmbedder } from "./task/embed-version.ts";
import { createVectorDropper } from "./task/drop-vectors.ts";
import { createEmbeddingPlanner } from "./task/embed-existing.ts";
import { TaskQueue } from "./task/task-queue.ts";
import type { DeadTask, DeadTaskFilter, TaskAddress, TriggerRun } from "./model/task.ts";

/** Totals since the start, and current values. */
export interface StoreStats {
  buckets: number;
  /** Live objects, without noncurrent versions. */
  objects: number;
  /** Bytes of all versions and parts, as sent by clients. */
  storageBytes: number;
  /** Group commits, their operations, and the seconds that they took. */
  commits: number;
  committedOperations: number;
  commitSeconds: number;
  /** Memory of incoming bodies. */
  stagingBytes: number;
  /** Bodies waiting for memory, and writes waiting for their commit. */
  waitingUploads: number;
  waitingWriters: number;
  openFiles: number;
  pendingEvents: number;
  droppedEvents: number;
  /** Blocks that did not match their checksum. */
  corruptBlocks: number;
  /** Unreferenced bytes in segments. */
  garbageBytes: number;
  /** Unreferenced files, kept for inspection. */
  quarantine: QuarantineTotals;
  /** Index rows that did not match their checksum when they were read. */
  damagedRows: number;
  /** The copy of the index of a single drive. */
  indexCopy: IndexCopyState;
  freeBytes: number;
  /** Free space at which writing stops. */
  reserveBytes: number;
}

/** The parts that a store is made of. */
export interface StoreParts {
  environment: ServiceEnvironment;
  index: IndexConnection;
  freeSpace: FreeSpace;
  unlock: () => void;
  maintenance: MaintenanceOptions;
  monitor: DriveMonitor | undefined;
  embedder: Embedder;
  remotes: RemoteService;
  tiers: TierService;
  sweeps: Sweeps;
}

/**
 * An object store on local disks with the semantics of the object API. A resolved promise means that the data is on disk;
 * refused calls reject, or throw if they are synchronous, with a `StoreError`.
 *
 * Keys are text of 1 to 1 024 bytes in UTF-8 and opaque: `..`, `//` and a trailing `/` have no meaning.
 */
export class Store {
  readonly buckets: BucketCatalogue;
  readonly objects: ObjectService;
  readonly copies: CopyService;
  readonly uploads: MultipartService;
  /** Events of buckets with a `notification` setting. */
  readonly events: EventOutbox;
  readonly maintenance: Maintenance;
  readonly tasks: TaskQueue;
  readonly jobs: JobService;
  readonly imports: ImportService;
  readonly keys: KeyService;
  readonly remotes: RemoteService;
  readonly replication: ReplicationService;
  readonly federation: FederationService;
  readonly tiers: TierService;
  readonly sweeps: Sweeps;
  readonly #env: ServiceEnvironment;
  readonly #outbox: StoredOutbox;
  readonly #monitor: DriveMonitor | undefined;
  readonly #index: IndexConnection;
  readonly #freeSpace: FreeSpace;
  readonly #unlock: () => void;
  readonly #folders: StoreFolders;
  readonly #logBytesMax: number;
  readonly #stopping = new AbortController();
  #questions = 0;
  #closing: Promise<void> | undefined;

  constructor(parts: StoreParts) {
    const { environment, index, freeSpace, unlock, maintenance, monitor, embedder } = parts;
    this.#monitor = monitor;
    this.#env = environment;
    this.#index = index;
    this.#freeSpace = freeSpace;
    this.#unlock = unlock;
    this.#folders = maintenance.folders;
    this.#logBytesMax = maintenance.logBytesMax;
    clearSnapshot([
      this.#folders,
      ...environment.blobs.drives.present.map((drive) => drive.folders),
    ]);
    clearQuestionSnapshots(this.indexPath);
    this.#outbox = new StoredOutbox(index, environment.writer);
    this.events = this.#outbox;
    this.buckets = environment.buckets;
    this.objects = new ObjectService(environment);
    this.copies = new CopyService(environment, this.objects);
    this.uploads = new MultipartService(environment, this.copies, index);
    this.maintenance = new Maintenance(environment, index, maintenance, monitor);
    this.maintenance.start();
    this.jobs = new JobService(environment, index);
    this.imports = new ImportService(environment);
    this.keys = new KeyService(environment, index);
    this.tasks = new TaskQueue({ ...environment, index, log: maintenance.log });
    this.remotes = parts.remotes;
    const { writer, now, takeVersionId: takeId } = environment;
    const { remotes } = this;
    this.federation = new FederationService({ index, writer, remotes, now, takeId });
    this.replication = new ReplicationService(environment, this.objects, index);
    this.tiers = parts.tiers;
    this.sweeps = parts.sweeps;
    this.#handleTasks(embedder);
  }

  #handleTasks(embedder: Embedder): void {
    const { writer } = this.#env;
    this.tasks.handle("drop-vectors", createVectorDropper(writer));
    const parts = { index: this.#index, writer, embedder };
    const { buckets, objects } = this;
    const { tiers } = this;
    this.tasks.handle("delete-remote", (task, signal) => tiers.deleteKey(task, signal));
    this.tasks.handle("restore", (task, signal) => tiers.restore(task, signal));
    this.tasks.handle("end-restore", (task) => tiers.endRestore(task));
    this.tasks.handle("embed-existing", createEmbeddingPlanner(writer, this.#env.now));
    this.tasks.handle("embed", createVersionEmbedder({ ...parts, buckets, objects }));
  }

  /** Dead tasks with numbers above `afterId`, at most `tasksMax`. */
  listDeadTasks(
    filter: Omit<DeadTaskFilter, "ids">,
    afterId: number,
    tasksMax: number,
  ): Promise<DeadTask[]> {
    return this.#env.readers.query("listDeadTasks", filter, afterId, tasksMax);
  }

  /** The last runs of the triggers of a bucket, newest first. */
  listTriggerRuns(bucket: string): TriggerRun[] {
    const { id } = this.buckets.requireState(bucket);
    return this.#index
      .sql("select document from trigger_runs where bucket = ? order by id desc")
      .all(id)
      .map((row) => JSON.parse(String(row["document"])) as TriggerRun);
  }

  /** The rules of residency under which versions were written, each once. Reads all rows of versions, off the event loop. */
  async listGeoMarks(): Promise<GeoMark[]> {
    const found = new Map<string, GeoMark>();
    for (const table of ["current", "versions"] as const) {
      let after: MarkPosition | undefined;
      do {
        const page: { marks: GeoMark[]; next: MarkPosition | undefined } =
          await this.#env.readers.query("listGeoMarks", table, after);
        for (const mark of page.marks) found.set(JSON.stringify(mark), mark);
        after = page.next;
      } while (after !== undefined);
    }
    return [...found.values()];
  }

  /** The name of a bucket by its number; `undefined` if it was deleted. */
  findBucketName(id: number): string | undefined {
    const row = this.#index.sql("select name from buckets where id = ?").get(id);
    return row === undefined ? undefined : String(row["name"]);
  }

  /** Ends a task without an effect. */
  async endTask(task: TaskAddress, run?: TriggerRun): Promise<void> {
    const operation = { type: "endTask", task, ...(run === undefined ? {} : { run }) } as const;
    await this.#env.writer.submit(operation);
  }

  /** Starts dead tasks again, or discards them. Returns their number. */
  async settleDeadTasks(action: "retry" | "discard", filter: DeadTaskFilter): Promise<number> {
    const { writer, now } = this.#env;
    const operation = { type: "settleDeadTasks", action, filter, tasksMax: 1_000 } as const;
    let tasks = 0;
    for (let afterId: number | undefined = 0; afterId !== undefined;) {
      const nowMs = now();
      const settled: { tasks: number; lastId: number | undefined } = await writer.submit({
        ...operation,
        afterId,
        nowMs,
      });
      tasks += settled.tasks;
      afterId = settled.lastId;
    }
    return tasks;
  }

  /** The usage of a bucket as of the last commit. Reads a single row: cheap enough for the event loop. */
  readUsage(bucket: string): BucketUsage {
    return this.#env.points.readUsage(this.buckets.requireState(bucket).id);
  }

  /** Totals and gauges for metrics. */
  readStats(): StoreStats {
    const { writer, blobs } = this.#env;
    const { totals } = writer;
    return {
      buckets: this.buckets.count,
      objects: totals.objects,
      storageBytes: totals.storageBytes,
      commits: writer.commits,
      committedOperations: writer.committedOperations,
      commitSeconds: writer.commitMs / 1000,
      stagingBytes: blobs.budget.taken,
      waitingUploads: blobs.budget.waiting,
      waitingWriters: writer.waiting,
      openFiles: blobs.openFiles,
      pendingEvents: totals.pendingEvents,
      droppedEvents: totals.droppedEvents,
      corruptBlocks: blobs.corruptBlocks,
      garbageBytes: this.maintenance.readGarbageBytes(),
      quarantine: blobs.quarantine.totals,
      damagedRows: this.#env.points.damagedRows,
      indexCopy: this.maintenance.readIndexCopy(),
      freeBytes: this.#freeSpace.freeBytes,
      reserveBytes: this.#freeSpace.reserveBytes,
    };
  }

  /**
   * Takes a snapshot for a backup: everything acknowledged before the call. Until its release no files are removed.
   * Rejects with a PlatformError if the index is damaged.
   */
  snapshot(): Promise<Snapshot> {
    return takeStoreSnapshot({
      environment: this.#env,
      folders: this.#folders,
      index: this.indexPath,
      freeSpace: this.#freeSpace,
      holdKeys: () => this.#env.keys?.hold?.(),
      logBytesMax: this.#logBytesMax,
      stopping: this.#stopping.signal,
    });
  }

  /**
   * Takes a state of the index that another process can read, with everything acknowledged before the call. Until its release
   * the log of the index grows with each write.
   */
  async snapshotIndex(): Promise<QuestionSnapshot> {
    const take = (): Promise<QuestionSnapshot> => {
      this.#questions += 1;
      return takeQuestionSnapshot(this.indexPath, this.#questions, this.#logBytesMax);
    };
    try {
      return await take();
    } catch (error) {
      if (error instanceof StoreError || !this.#index.leaveDamaged()) throw error;
      return take();
    }
  }

  /** The state of each drive, by slot; empty if the store is a single folder. */
  listDrives(): DriveState[] {
    return this.#monitor?.list() ?? [];
  }

  /** The drives that are lost, and why, for people who watch the store; `undefined` if there are none. */
  describeLostDrives(): string | undefined {
    const lost = this.listDrives().filter(({ state }) => state === "absent");
    if (lost.length === 0) return undefined;
    const names = lost.map(({ folder, reason }) => `${folder} (${reason ?? "absent"})`);
    return `drives are lost: ${names.join(", ")}`;
  }

  /** A health check: the fault in a few words, `undefined` if the store is healthy. */
  check(): string | undefined {
    if (this.#closing !== undefined) return "the store is closed";
    if (this.#env.writer.stopped !== undefined) return this.#env.writer.stopped;
    if (this.#env.blobs.segments.stopped !== undefined) return "the disk failed to sync";
    const [finding] = this.maintenance.readIndexCopy().findings;
    if (finding !== undefined) return `the index is damaged: ${finding}`;
    return this.#freeSpace.isFull ? "disk_full: writing is refused, deleting is not" : undefined;
  }

  /** Waits for running calls and closes. Later calls reject with `ServiceUnavailable`. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** The copy of the index that has every acknowledged commit. */
  get indexPath(): string {
    return this.#index instanceof FailoverIndex ? this.#index.path : this.#folders.index;
  }

  async #close(): Promise<void> {
    this.#stopping.abort();
    this.#outbox.close();
    await this.sweeps.stop();
    await this.tasks.stop();
    await this.#monitor?.stop();
    await this.maintenance.stop();
    await this.buckets.close();
    await this.#env.blobs.close();
    this.#env.blobs.remotes.close();
    await this.#env.hashers.close();
    await this.#env.writer.close();
    await this.#env.readers.close();
    this.#index.close();
    this.#unlock();
  }
}
