// The manifest: what segments hold, as of the last checkpoint. Journal entries after it come on top.
import {
  decodeFileHeader,
  encodeFileHeader,
  encodeFrame,
  fileHeaderBytes,
  scanFrames,
  type FileHeader,
} from "../frame/frame.ts";
import type { Disk, DiskFile } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import type { JournalPlace } from "../journal/journal.ts";
import type { EpochStart, TopicConfig } from "../types.ts";
import type { Extent, Partition } from "./partition.ts";
import type { Topic } from "./catalogue.ts";
import type { ProducerSnapshot } from "./producers.ts";

/*
 * manifest/<number>.manifest, in frames (see frame.ts). Each entry is one JSON document: a topic, a
 * removed topic, a partition, or a checkpoint, which says that the journal before `journal` is
 * covered. A later document about the same thing replaces the earlier one. When a file has grown
 * to several times what it says, a new one with everything is written, synced and renamed.
 */
const manifestFolder = "manifest";
/** Bytes of documents in one frame, about. */
const frameBytes = 256 * 1024;
/** A manifest smaller than this is never rewritten. */
const rewriteBytesMin = 1024 * 1024;

/** A topic as the manifest keeps it. */
export type TopicDocument = {
  kind: "topic";
  id: string;
  name: string;
  config: TopicConfig;
  uids: number[];
};

/** A partition as the manifest keeps it; extents and epochs as tuples, as there are many. */
export type PartitionDocument = {
  kind: "partition";
  uid: number;
  logStart: number;
  flushedEnd: number;
  cleanedEnd: number;
  epochs: [number, number][];
  extents: ExtentTuple[];
  producers?: ProducerSnapshot[];
};

/** A checkpoint: from where on the journal has to be read, and files that may go. */
export type CheckpointDocument = {
  kind: "checkpoint";
  journal: JournalPlace;
  leaderEpoch: number;
  nextUid: number;
  sharedNumber: number;
  garbage: string[];
};

/** Everything that a manifest can say. */
export type ManifestDocument =
  | TopicDocument
  | { kind: "topic-removed"; id: string }
  | PartitionDocument
  | CheckpointDocument;

/** shared 0/1, file, generation, position, length, base offset, next offset, max time. */
type ExtentTuple = [number, number, number, number, number, number, number, number];

/** Describes a topic. */
export function topicDocument(topic: Topic): TopicDocument {
  return {
    kind: "topic",
    id: topic.id.toString("hex"),
    name: topic.name,
    config: topic.config,
    uids: topic.partitions.map((partition) => partition.uid),
  };
}

/** Describes a partition as far as it is in segments. */
export function partitionDocument(partition: Partition): PartitionDocument {
  const document: PartitionDocument = {
    kind: "partition",
    uid: partition.uid,
    logStart: partition.logStart,
    flushedEnd: partition.flushedEnd,
    cleanedEnd: partition.cleanedEnd,
    epochs: partition.epochs.map(({ epoch, startOffset }) => [epoch, startOffset]),
    extents: partition.extents.map((extent) => [
      extent.shared ? 1 : 0,
      extent.file,
      extent.generation,
      extent.position,
      extent.length,
      extent.baseOffset,
      extent.nextOffset,
      extent.maxTimestamp,
    ]),
  };
  const producers = partition.producers?.snapshot() ?? [];
  if (producers.length > 0) document.producers = producers;
  return document;
}

/** The extents of a partition document. */
export function extentsOf(document: PartitionDocument): Extent[] {
  return document.extents.map(
    ([shared, file, generation, position, length, baseOffset, nextOffset, maxTimestamp]) => ({
      shared: shared === 1,
      file,
      generation,
      position,
      length,
      baseOffset,
      nextOffset,
      maxTimestamp,
    }),
  );
}

/** The epochs of a partition document. */
export function epochsOf(document: PartitionDocument): EpochStart[] {
  return document.epochs.map(([epoch, startOffset]) => ({ epoch, startOffset }));
}

/** What reading the newest manifest gave. */
export type LoadedManifest = {
  number: number;
  documents: ManifestDocument[];
  damaged: { file: string; position: number; length: number }[];
};

/** Reads the newest manifest; undefined if there is none, as in a new folder. */
export async function loadManifest(disk: Disk): Promise<LoadedManifest | undefined> {
  const number = (await listManifests(disk)).at(-1);
  if (number === undefined) return undefined;
  const path = manifestPath(number);
  const file = await disk.open(path, "read");
  let bytes: Buffer;
  try {
    bytes = Buffer.allocUnsafe(await file.size());
    await file.read(bytes, 0, bytes.length, 0);
  } finally {
    await file.close();
  }
  const header = decodeFileHeader("manifest", bytes);
  if (header === undefined) throw new LogError("corrupt", `${path} has no valid header`);
  const documents: ManifestDocument[] = [];
  const scan = await scanFrames(bytes, header, fileHeaderBytes, 0, {
    async accept(entries) {
      for (const entry of entries) {
        for (const document of JSON.parse(entry.toString("utf8")) as ManifestDocument[]) {
          documents.push(document);
        }
      }
    },
  });
  const damaged = scan.damaged.map(({ position, length }) => ({ file: path, position, length }));
  return { number, documents, damaged };
}

/** Writes manifests. */
export class Manifest {
  readonly #disk: Disk;
  readonly #salt: () => Buffer;
  #number: number;
  #file: DiskFile | undefined;
  #header: FileHeader | undefined;
  #end = 0;
  #wholeBytes = 0;

  /** `number` is the newest manifest that exists, 0 if none; the next write begins a new one. */
  constructor(disk: Disk, salt: () => Buffer, number: number) {
    this.#disk = disk;
    this.#salt = salt;
    this.#number = number;
  }

  /** Whether it is time for `rewrite` instead of `append`. */
  get wantsRewrite(): boolean {
    return this.#file === undefined || this.#end > Math.max(rewriteBytesMin, this.#wholeBytes * 4);
  }

  /**
   * Adds documents durably; `syncData` is awaited after they were made and before they count.
   * If it fails with a full disk, nothing counts and it may be repeated.
   */
  async append(
    documents: Iterable<ManifestDocument>,
    syncData: () => Promise<void>,
  ): Promise<void> {
    if (this.#file === undefined || this.#header === undefined) {
      throw new LogError("closed", "the manifest was not begun");
    }
    const durableEnd = this.#end;
    let end = this.#end;
    for (const entry of packDocuments(documents)) {
      const frame = encodeFrame(this.#header.salt, end, durableEnd, [[entry]]);
      await this.#file.write(frame.pieces, end);
      end += frame.bytes;
    }
    await syncData();
    await this.#file.sync();
    this.#end = end;
  }

  /** Begins a new file that says everything; it counts from the rename on. */
  async rewrite(
    documents: Iterable<ManifestDocument>,
    syncData: () => Promise<void>,
  ): Promise<void> {
    const number = this.#number + 1;
    const header: FileHeader = {
      kind: "manifest",
      number,
      salt: this.#salt(),
      previousEnd: 0,
    };
    const path = manifestPath(number);
    const file = await this.#disk.open(`${path}.new`, "create");
    let end = fileHeaderBytes;
    try {
      await file.write([encodeFileHeader(header)], 0);
      for (const entry of packDocuments(documents)) {
        const frame = encodeFrame(header.salt, end, fileHeaderBytes, [[entry]]);
        await file.write(frame.pieces, end);
        end += frame.bytes;
      }
      await syncData();
      await file.sync();
      await this.#disk.rename(`${path}.new`, path);
      await this.#disk.syncFolder(manifestFolder);
    } catch (error) {
      await file.close();
      throw error;
    }
    await this.#file?.close();
    this.#file = file;
    this.#header = header;
    this.#number = number;
    this.#end = end;
    this.#wholeBytes = end;
    for (const older of await listManifests(this.#disk)) {
      if (older < number) await this.#disk.remove(manifestPath(older));
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }
}

/** Makes the folder of the manifest. */
export async function prepareManifest(disk: Disk): Promise<void> {
  await disk.makeFolder(manifestFolder);
}

function manifestPath(number: number): string {
  return `${manifestFolder}/${String(number).padStart(16, "0")}.manifest`;
}

async function listManifests(disk: Disk): Promise<number[]> {
  const numbers = (await disk.list(manifestFolder)).flatMap((name) => {
    const match = /^(\d{16})\.manifest$/.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
  return numbers.sort((a, b) => a - b);
}

// Many small documents in one entry: a checksum and a parse for each would cost more than they do.
function* packDocuments(documents: Iterable<ManifestDocument>): Generator<Buffer> {
  let texts: string[] = [];
  let length = 0;
  for (const document of documents) {
    const text = JSON.stringify(document);
    texts.push(text);
    length += text.length;
    if (length >= frameBytes) {
      yield Buffer.from(`[${texts.join(",")}]`);
      texts = [];
      length = 0;
    }
  }
  if (texts.length > 0) yield Buffer.from(`[${texts.join(",")}]`);
}
