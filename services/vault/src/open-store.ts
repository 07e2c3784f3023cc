// Opens the store on local disks: creates its parts and connects them.
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DiskReserve } from "@platform/kernel/files";
import { randomBytes } from "node:crypto";
import { createEgressGuard } from "@platform/kernel/egress";
import { StoreError } from "./model/store-error.ts";
import { describeFullDisk } from "@platform/kernel/health";
import { createIdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import { systemClock, type Clock } from "@platform/kernel/time";
import { BlobStore, type BlobStoreOptions, clearStaging } from "./blob/blob-store.ts";
import { StoreFolders } from "./disk/files.ts";
import type { KeyProvider } from "./blob/encryption.ts";
import { FrameMemory } from "./blob/frame-memory.ts";
import { FreeSpace, readDiskSpace, type DiskSpace } from "./disk/free-space.ts";
import { BucketsFile } from "./store/buckets-file.ts";
import { BucketCatalogue } from "./store/bucket-catalogue.ts";
import { Drive } from "./blob/drive/drive.ts";
import { DriveSet } from "./blob/drive/drive-set.ts";
import { LexicalEmbedder } from "./embed/lexical.ts";
import type { Embedder } from "./model/vector.ts";
import { Healer } from "./upkeep/healer.ts";
import { DriveMonitor } from "./upkeep/drive-monitor.ts";
import { openDrives, type DriveOptions, type OpenedDrives } from "./blob/drive/open-drives.ts";
import { BodyHashers } from "./hash/body-hashers.ts";
import { FailoverIndex } from "./index/failover-index.ts";
import { ReaderPool } from "./query/reader-pool.ts";
import { type IndexConnection, LOG_BYTES_MAX, openIndexReader } from "./index/schema.ts";
import { findLastGeneration, requireWholeIndex } from "./index/start-check.ts";
import { lockStore } from "./index/store-lock.ts";
import { IndexWriter } from "./transaction/writer.ts";
import { BodyOpener } from "./store/body.ts";
import { type ServiceEnvironment } from "./store/object-service.ts";
import { PointReader } from "./query/point-reader.ts";
import { RecentRows } from "./query/recent-rows.ts";
import { Remotes } from "./remote/remotes.ts";
import { RemoteService } from "./store/remote-service.ts";
import { TierService } from "./store/tier-service.ts";
import { Sweeps } from "./upkeep/sweeps.ts";
import { TransitionEngine } from "./upkeep/transition-engine.ts";
import type { SecretSealer } from "./model/remote.ts";
import { Store } from "./object-store.ts";

/** Options of a store; all but the folder have defaults. */
export interface StoreOptions {
  /** The data folder, created if it is missing. With several drives it contains only a copy of the buckets. */
  dataDir: string;
  /** Several drives instead of the one folder: their contents survive the loss of some of them. */
  drives?: DriveOptions;
  /** Keys of `SSE-S3`, which is refused without them. */
  keys?: KeyProvider;
  clock?: Clock;
  /** Receives lost and returned drives, and damage. */
  log?: Logger;
  /** Reads the space of the disk. Tests pass their own. */
  readSpace?: () => DiskSpace;
  /** Bytes that stay free. Default: the larger of 1 GiB and 1 % of the disk. */
  reserveBytes?: number;
  /** Stored bytes up to which a body is kept in the index. Default 16 KiB. */
  inlineBytesMax?: number;
  /** Stored bytes up to which a body shares a segment. Default 1 MiB. */
  segmentRecordBytesMax?: number;
  /** Size of a segment after which the next one begins. Default 64 MiB. */
  segmentBytesMax?: number;
  /** Memory for incoming bodies. Default 128 MiB. */
  stagingBytesMax?: number;
  /** Uploads that may wait for that memory; more are refused with `SlowDown`. Default 1 000. */
  stagingWaitersMax?: number;
  /** Open files. Default 1 000. */
  openFilesMax?: number;
  /** Limit of buckets. Default 10 000. */
  bucketsMax?: number;
  /** Events that may wait for delivery. Default 100 000. */
  pendingEventsMax?: number;
  /** Minimum size of every part except the last. Default 5 MiB. */
  partBytesMin?: number;
  /** Speed of scrubbing. Default 16 MiB/s. */
  scrubBytesPerSecond?: number;
  /** Interval of checking and copying the index of a single drive, in ms; 0 disables it. Default 1 h. */
  indexCopyEveryMs?: number;
  /** Bytes of unreferenced files in quarantine on each drive. Default 10 GiB. */
  quarantineBytesMax?: number;
  /** Size of an index with its WAL up to which it is checked as a whole at startup. Default 64 MiB. */
  inspectedBytesMax?: number;
  /** Size of the index's log at which copies of the index, which keep it from restarting, begin again. Default 1 GiB. */
  logBytesMax?: number;
  /** Computes vectors. Default: the lexical embedding. */
  embedder?: Embedder;
  /** Seals the secret keys of remotes, which are refused without it. */
  secrets?: SecretSealer;
  /** Private addresses and ranges that remotes may have. Default: public addresses only. */
  remoteNetworks?: readonly string[];
  /** Speed of healing a drive. Default 64 MiB/s. */
  healBytesPerSecond?: number;
}

const MIB = 1024 * 1024;
/** Writes that may wait for their commit. */
const WAITING_WRITES_MAX = 10_000;
/** Listings that may wait. */
const WAITING_READS_MAX = 1_000;
/** Threads for listings. */
const READER_THREADS = 1;
/** Reading an index of this size takes about a second. */
const INSPECTED_BYTES_MAX = 64 * MIB;

/** Space beside each index that is given up on a full disk: without it, the index cannot be opened to delete anything. */
const START_RESERVE_BYTES = 4 * MIB;

/** Opens the store in a folder. Rejects if another process has it open, or if its format is newer. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const clock = options.clock ?? systemClock;
  const ids = createIdSource({ clock });
  const memory = new FrameMemory();
  const opened = await takeDrives(options, () => ids.token(24), memory);
  const { drives, locks, current } = opened;
  for (const damage of opened.damaged) {
    options.log?.error("a copy of the index is damaged and is replaced from another drive", {
      ...damage,
    });
  }
  try {
    const { logBytesMax = LOG_BYTES_MAX, embedder = new LexicalEmbedder() } = options;
    const toReplica = (slot: number) => ({ slot, path: drives.all[slot]!.folders.index });
    const startReserves = current.map((slot) => openStartReserve(toReplica(slot).path));
    const recent = new RecentRows();
    const writer = await IndexWriter.open({
      replicas: current.map(toReplica),
      ...(drives.isErasureCoded ? { replicasMin: drives.parity + 1 } : {}),
      waitingMax: WAITING_WRITES_MAX,
      watcher: recent,
      limits: {
        pendingEventsMax: options.pendingEventsMax ?? 100_000,
        bucketsMax: options.bucketsMax ?? 10_000,
        partBytesMin: options.partBytesMin ?? 5 * MIB,
        generationMin: opened.generation,
        isReplicated: drives.isErasureCoded,
        logBytesMax,
      },
    });
    for (const reserve of startReserves) reserve.take();
    const { path } = toReplica(writer.slots[0]!);
    const index = drives.isErasureCoded ? new FailoverIndex(path) : openIndexReader(path);
    const readers = new ReaderPool(path, READER_THREADS, WAITING_READS_MAX);
    const freeSpace = new FreeSpace(
      options.readSpace ?? (() => readSpaceOfDrives(drives)),
      () => clock.monotonicMs(),
      options.reserveBytes,
    );
    const secrets = options.secrets ?? NO_SECRETS;
    const { generation } = writer.ready;
    const blobs = openBlobs(options, { drives, memory, freeSpace, generation }, secrets, clock);
    for (const drive of drives.present) clearStaging(drive);
    const points = new PointReader(index, recent);
    const bodies = new BodyOpener(blobs, points, options.keys);
    const bucketsFile = new BucketsFile(new StoreFolders(options.dataDir).buckets);
    const environment: ServiceEnvironment = {
      blobs,
      hashers: new BodyHashers(),
      keys: options.keys,
      buckets: new BucketCatalogue(writer, bucketsFile, () => clock.now()),
      writer,
      readers,
      points,
      bodies,
      now: () => clock.now(),
      takeVersionId: () => ids.token(24),
    };
    const { service, ...tiering } = await openTiers(environment, index, secrets, options.log);
    const monitor =
      index instanceof FailoverIndex
        ? new DriveMonitor({
            blobs,
            writer,
            index,
            readers,
            healer: new Healer(environment, index, options.healBytesPerSecond ?? 64 * MIB),
            identity: opened.identity,
            locks,
            checkEveryMs: options.drives?.checkEveryMs ?? 1_000,
            log: options.log,
          })
        : undefined;
    await monitor?.start();
    const maintenance = {
      scrubBytesPerSecond: options.scrubBytesPerSecond ?? 16 * MIB,
      indexCopyEveryMs: drives.isErasureCoded ? 0 : (options.indexCopyEveryMs ?? 3_600_000),
      folders: new StoreFolders(options.dataDir),
      freeSpace,
      transitions: tiering.engine,
      logBytesMax,
      clock,
      log: options.log,
    };
    const unlock = () => releaseAll(locks);
    const parts = { environment, index, freeSpace, unlock, maintenance, monitor, embedder };
    return new Store({ ...parts, ...tiering, remotes: service });
  } catch (error) {
    releaseAll(locks);
    throw error;
  }
}

function openBlobs(
  options: StoreOptions,
  parts: Pick<BlobStoreOptions, "drives" | "memory" | "freeSpace" | "generation">,
  secrets: SecretSealer,
  clock: Clock,
): BlobStore {
  const guard = createEgressGuard({ allowedNetworks: options.remoteNetworks ?? [] });
  return new BlobStore({
    ...parts,
    remotes: new Remotes({ secrets, guard, clock }),
    inlineBytesMax: options.inlineBytesMax ?? 16 * 1024,
    segmentRecordBytesMax: options.segmentRecordBytesMax ?? MIB,
    segmentBytesMax: options.segmentBytesMax ?? 64 * MIB,
    stagingBytesMax: options.stagingBytesMax ?? 128 * MIB,
    stagingWaitersMax: options.stagingWaitersMax ?? 1_000,
    quarantineBytesMax: options.quarantineBytesMax ?? 10 * 1024 * MIB,
  });
}

/** Opens the registered remotes, and what moves objects to them. */
async function openTiers(
  environment: ServiceEnvironment,
  index: IndexConnection,
  secrets: SecretSealer,
  log: Logger | undefined,
) {
  const { writer, now, blobs, takeVersionId: takeId } = environment;
  const takeStoreId = (): string => randomBytes(16).toString("hex");
  const registry = { writer, index, remotes: blobs.remotes, secrets, takeStoreId, now };
  const service = await RemoteService.open(registry);
  const tiers = new TierService(environment, index);
  const engine = new TransitionEngine({
    ...environment,
    mover: tiers.mover,
    remotes: service,
    log,
  });
  return { service, tiers, engine, sweeps: new Sweeps({ engine, now, takeId }) };
}

const NO_SECRETS: SecretSealer = {
  seal: () => {
    throw new StoreError("InvalidRequest", "Remotes need a master key");
  },
  open: () => {
    throw new StoreError("InternalError", "Remotes need a master key");
  },
};

function releaseAll(locks: OpenedDrives["locks"]): void {
  for (const release of locks.values()) release();
}

function openStartReserve(indexPath: string): DiskReserve {
  const reserve = new DiskReserve(indexPath, START_RESERVE_BYTES);
  if (describeFullDisk(dirname(indexPath)) !== undefined) reserve.release();
  return reserve;
}

// A single folder is a drive without an identity file.
async function takeDrives(
  options: StoreOptions,
  takeId: () => string,
  memory: FrameMemory,
): Promise<OpenedDrives> {
  const openFilesMax = options.openFilesMax ?? 1_000;
  if (options.drives !== undefined) {
    mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
    const { inspectedBytesMax } = options;
    const drives = { ...(inspectedBytesMax && { inspectedBytesMax }), ...options.drives };
    return openDrives(drives, takeId, openFilesMax, memory);
  }
  const drive = new Drive(0, new StoreFolders(options.dataDir), openFilesMax, memory);
  const toSync = drive.folders.make();
  const locks = new Map([[0, lockStore(drive.folders.lock)]]);
  try {
    // An index with a log is read by way of a file beside it, for which a full disk has no room.
    openStartReserve(drive.folders.index);
    requireWholeIndex(drive.folders, options.inspectedBytesMax ?? INSPECTED_BYTES_MAX);
  } catch (error) {
    releaseAll(locks);
    throw error;
  }
  for (const folder of toSync) await drive.folderSync.sync(folder);
  return {
    drives: new DriveSet([drive], 1, 0),
    identity: { format: 1, store: "", drives: 1, data: 1, parity: 0 },
    locks,
    current: [0],
    generation: findLastGeneration(drive.folders),
    damaged: [],
  };
}

// A body needs room on all drives: the fullest one decides.
function readSpaceOfDrives(drives: DriveSet): DiskSpace {
  const spaces = drives.present.flatMap(({ folders }) => {
    try {
      return [readDiskSpace(folders.root)];
    } catch {
      // The drive has just disappeared; the drive monitor notices that.
      return [];
    }
  });
  const none = { freeBytes: 0, totalBytes: 0 };
  return spaces.reduce(
    (least, space) => (space.freeBytes < least.freeBytes ? space : least),
    spaces[0] ?? none,
  );
}
