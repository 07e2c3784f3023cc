// Moves the body of a version to a remote.
//
//   announce the keys (a task each that would delete them) ──► upload ──► verified by the remote's checksum, or read back
//     ──► stub in a segment, synced ──► one commit: version, new body, end of the announcements ──► local bytes are released
//
// Whatever ends this early, the announcements delete what may have arrived. The version is read from its old body until the
// commit, and from the new one afterwards; if it has changed meanwhile, the commit changes nothing.
import { randomBytes } from "node:crypto";
import { rewrapCipher } from "../blob/encryption.ts";
import type { BlobRecord, RemoteKey, RemotePlace } from "../model/blob.ts";
import { findGeoRefusal } from "../model/geo.ts";
import type { ObjectAddress } from "../model/object.ts";
import type { TierTarget } from "../model/remote.ts";
import { StoreError } from "../model/store-error.ts";
import type { TaskAddress } from "../model/task.ts";
import { parseChecksum, type VersionRow } from "../index/records.ts";
import type { FoundPart } from "../query/point-reader.ts";
import type { Remote } from "../remote/remote.ts";
import type { MovedBody } from "../transaction/tier-operations.ts";
import type { ManifestPart } from "../transaction/upload-rows.ts";
import type { AttributeColumns } from "./new-object.ts";
import { parseDetail, type ServiceEnvironment } from "./object-service.ts";
import type {
  ManifestDescription,
  ObjectDescription,
  PartDescription,
  RecordSummary,
} from "./record-description.ts";
import { StreamedRecord } from "./record-source.ts";

/** The result of a move. */
export type MoveOutcome =
  | { kind: "moved"; bytes: number }
  /** `reason` is one of a few texts. */
  | { kind: "skipped"; reason: string }
  | { kind: "failed"; reason: string };

/** An announced key becomes a deletion after this time at the latest; an upload takes less. */
const ANNOUNCED_MS = 24 * 3_600_000;

/** One body to move: the whole of an object, or one part. */
interface Piece {
  from: BlobRecord;
  id: number;
  key: RemoteKey;
  description: ObjectDescription | PartDescription;
  summary: RecordSummary;
}

/** Moves versions, and holds the keys that are being written. */
export class TierMover {
  readonly #env: ServiceEnvironment;
  readonly #writing = new Set<string>();
  // Buckets of remotes that have the marker of this store.
  readonly #marked = new Set<string>();

  constructor(environment: ServiceEnvironment) {
    this.#env = environment;
  }

  get #storeId(): string {
    return this.#env.blobs.remotes.storeId;
  }

  /** True while a key is being written: it must not be deleted, even if its announcement is due. */
  isWriting(key: RemoteKey): boolean {
    return this.#writing.has(nameKey(key));
  }

  /** Moves a version, unless it is no longer the one with the sequence number `seq`. Rejects only for faults of this store. */
  async move(
    address: ObjectAddress & { versionId: string },
    seq: number,
    target: TierTarget,
    signal: AbortSignal,
  ): Promise<MoveOutcome> {
    const endLease = this.#env.bodies.leases.begin();
    // Keys are wrapped before the first write.
    const endWrite = this.#env.blobs.writes.begin();
    try {
      return await this.#move(address, seq, target, signal);
    } catch (error) {
      const isGone = error instanceof StoreError && GONE.has(error.code);
      if (isGone) return { kind: "skipped", reason: "changed" };
      return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
    } finally {
      endWrite();
      endLease();
    }
  }

  async #move(
    address: ObjectAddress & { versionId: string },
    seq: number,
    target: TierTarget,
    signal: AbortSignal,
  ): Promise<MoveOutcome> {
    const { buckets, points, blobs } = this.#env;
    const remote = blobs.remotes.require(target.remote);
    if (this.#storeId === "") throw new StoreError("ServiceUnavailable", "The store has no id yet");
    const state = buckets.requireState(address.bucket);
    const { row, blob } = points.requireStored(state, address.key, address.versionId);
    if (row.seq !== seq || blob === undefined) return { kind: "skipped", reason: "changed" };
    if (row.class === target.storageClass) return { kind: "skipped", reason: "moved before" };
    const refusal = findGeoRefusal(parseDetail(row).geo, state.bucket.settings.geoPlacement, {
      exit: "tier",
      region: remote.settings.region,
    });
    if (refusal !== undefined) return { kind: "skipped", reason: refusal };
    const parts = blob.place.kind === "parts" ? points.findParts(blob.id, 0, blob.size) : undefined;
    const pieces =
      parts === undefined
        ? listWhole(this.#env, blob, row, address, target, (id) =>
            this.#nameNew(id, remote, target),
          )
        : this.#listParts(parts, row, address, remote, target);
    if (pieces.length === 0) return { kind: "skipped", reason: "in the index" };
    for (const { key } of pieces) this.#writing.add(nameKey(key));
    try {
      return await this.#moveAll({ address, row, blob, parts, pieces, remote, target, signal });
    } finally {
      for (const { key } of pieces) this.#writing.delete(nameKey(key));
    }
  }

  #listParts(
    parts: readonly FoundPart[],
    row: VersionRow,
    { bucket, key }: ObjectAddress,
    remote: Remote,
    target: TierTarget,
  ): Piece[] {
    const { blobs } = this.#env;
    return parts.flatMap(({ record, number, etag }) => {
      if (!isMovable(record)) return [];
      const id = blobs.takeId();
      const description: PartDescription = {
        bucket,
        key,
        at: row.modified,
        uploadId: "",
        partNumber: number,
        ...describeCipher(this.#env, record, id),
      };
      const place = this.#nameNew(id, remote, target);
      return [{ from: record, id, key: place, description, summary: { etag } }];
    });
  }

  #nameNew(id: number, remote: Remote, target: TierTarget): RemoteKey {
    const name = `${id.toString(16).padStart(14, "0")}-${randomBytes(8).toString("hex")}`;
    const key = `${remote.settings.prefix}${this.#storeId}/${name}`;
    return { remote: target.remote, bucket: target.bucket, key };
  }

  async #moveAll(move: Move): Promise<MoveOutcome> {
    const { writer, now, blobs } = this.#env;
    const { address, row, blob, pieces, target, remote, signal } = move;
    await this.#mark(remote, target.bucket, signal);
    const keys = pieces.map(({ key }) => key);
    const dueMs = now() + ANNOUNCED_MS;
    const { tasks } = await writer.submit({ type: "planRemoteKeys", keys, dueMs });
    const pinned: number[] = [];
    const endWrite = blobs.writes.begin();
    let isMoved = false;
    try {
      const moved = new Map<number, BlobRecord>();
      for (const piece of pieces) {
        const record = await this.#upload(piece, remote, signal);
        if (record.place.kind === "remote") pinned.push(record.place.stub.segment);
        moved.set(piece.from.id, record);
      }
      const body = await this.#compose(move, moved, pinned);
      ({ moved: isMoved } = await writer.submit({
        type: "transition",
        address,
        from: { seq: row.seq, blob: blob.id },
        body,
        storageClass: target.storageClass,
        keys: tasks,
        nowMs: now(),
      }));
      return isMoved ? { kind: "moved", bytes: row.size } : { kind: "skipped", reason: "changed" };
    } finally {
      if (!isMoved) await this.#giveUp(tasks);
      for (const segment of pinned) blobs.segments.unpin(segment);
      endWrite();
    }
  }

  // Announcements that still exist are due now: a commit whose outcome is unknown has ended them, or has not happened. If this
  // cannot be written, they are due later.
  async #giveUp(tasks: readonly TaskAddress[]): Promise<void> {
    const { writer, now } = this.#env;
    const operation = { type: "dropRemoteKeys", tasks, nowMs: now() } as const;
    await writer.submit(operation).catch(() => undefined);
  }

  async #upload(piece: Piece, remote: Remote, signal: AbortSignal): Promise<BlobRecord> {
    const { blobs } = this.#env;
    const { from, id, key, description, summary } = piece;
    const { stored, size } = from;
    const open = await blobs.open(from);
    const record = new StreamedRecord({ id, stored, description, summary }, open);
    try {
      await remote.write(key, record, signal);
    } finally {
      await record.close();
      open.close();
    }
    const at: RemotePlace = { ...key, bytes: record.bytes, position: record.position };
    const described = { ...description, size, remote: { ...at, stored } };
    const stub = await blobs.appendManifest(id, described, summary);
    const { segment, position, extent } = stub;
    return {
      id,
      size,
      stored,
      extent,
      place: { kind: "remote", stub: { segment, position }, at },
      ...(description.cipher === undefined ? {} : { cipher: description.cipher }),
    };
  }

  async #compose(
    { address, row, blob, parts, pieces }: Move,
    moved: ReadonlyMap<number, BlobRecord>,
    pinned: number[],
  ): Promise<MovedBody> {
    if (parts === undefined) return { blob: moved.get(pieces[0]!.from.id)! };
    const { blobs } = this.#env;
    const id = blobs.takeId();
    const list = parts.map((part): { part: ManifestPart; moved?: BlobRecord } => {
      const { number, size, etag, modified, checksum, record } = part;
      const to = moved.get(record.id);
      const own = { number, blob: to?.id ?? record.id, size, etag, modified, checksum };
      return { part: own, ...(to === undefined ? {} : { moved: to }) };
    });
    const manifest: ManifestDescription = {
      ...describeObject(row, address),
      parts: list.map(({ part }) => part),
    };
    const { segment, position, extent } = await blobs.appendManifest(id, manifest);
    pinned.push(segment);
    const place = { kind: "parts", manifest: { segment, position } } as const;
    const whole: BlobRecord = { id, size: blob.size, stored: blob.stored, extent, place };
    return { blob: whole, parts: list };
  }

  // People who look into the bucket see whose objects these are.
  async #mark(remote: Remote, bucket: string, signal: AbortSignal): Promise<void> {
    const name = `${remote.settings.name} ${bucket}`;
    if (this.#marked.has(name)) return;
    const key = `${remote.settings.prefix}${this.#storeId}/store.json`;
    const client = remote.client(bucket);
    if ((await client.head(key, { signal })) === undefined) {
      const text = JSON.stringify({ service: "platform-vaultd", store: this.#storeId });
      await client.put(key, Buffer.from(`${text}\n`), { signal });
    }
    this.#marked.add(name);
  }
}

interface Move {
  address: ObjectAddress & { versionId: string };
  row: VersionRow;
  blob: BlobRecord;
  parts: readonly FoundPart[] | undefined;
  pieces: readonly Piece[];
  remote: Remote;
  target: TierTarget;
  signal: AbortSignal;
}

const GONE: ReadonlySet<string> = new Set([
  "NoSuchBucket",
  "NoSuchKey",
  "NoSuchVersion",
  "MethodNotAllowed",
]);

function listWhole(
  environment: ServiceEnvironment,
  blob: BlobRecord,
  row: VersionRow,
  address: ObjectAddress,
  target: TierTarget,
  nameNew: (id: number) => RemoteKey,
): Piece[] {
  if (!isMovable(blob)) return [];
  const id = environment.blobs.takeId();
  const described = describeObject({ ...row, class: target.storageClass }, address);
  const description = { ...described, ...describeCipher(environment, blob, id) };
  const checksum = row.checksum === null ? {} : { checksum: parseChecksum(row.checksum) };
  return [
    { from: blob, id, key: nameNew(id), description, summary: { etag: row.etag, ...checksum } },
  ];
}

// Bodies in the index are smaller than what would stay of them.
function isMovable({ place }: BlobRecord): boolean {
  return place.kind !== "inline";
}

function describeCipher(
  { keys }: ServiceEnvironment,
  { id: from, size, cipher }: BlobRecord,
  to: number,
): Pick<ObjectDescription, "size" | "cipher"> {
  return cipher === undefined
    ? {}
    : { size, cipher: rewrapCipher(cipher, { from: keys, to: keys }, from, to) };
}

function describeObject(row: VersionRow, { bucket, key }: ObjectAddress): ObjectDescription {
  const columns: AttributeColumns = {
    class: row.class,
    owner: row.owner,
    tags: row.tags,
    hold: row.hold === 0 ? null : row.hold === 1,
    detail: row.detail,
    ...(row.retain_mode === null || row.retain_until === null
      ? {}
      : { retention: { mode: row.retain_mode, untilMs: row.retain_until } }),
  };
  const versioned = row.version !== "null";
  return { bucket, key, at: row.modified, versionId: row.version, versioned, columns };
}

function nameKey({ remote, bucket, key }: RemoteKey): string {
  return `${remote}/${bucket}/${key}`;
}
