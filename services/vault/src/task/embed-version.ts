// Computes the vector of a version from its body, its key or its metadata.
import type { IndexConnection } from "../index/schema.ts";
import { decodeKey } from "../index/records.ts";
import type { ObjectAddress, ObjectInfo } from "../model/object.ts";
import { StoreError } from "../model/store-error.ts";
import { type Embedder, type EmbedSource, RefusedTextError } from "../model/vector.ts";
import type { BucketCatalogue } from "../store/bucket-catalogue.ts";
import type { ObjectService } from "../store/object-service.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import type { Task } from "./due-tasks.ts";
import type { TaskHandler } from "./task-queue.ts";

const BODY_BYTES_DEFAULT = 65_536;
const METADATA = "metadata.";
/** The version, its bucket or its index has gone. */
const GONE: ReadonlySet<string> = new Set([
  "NoSuchBucket",
  "NoSuchKey",
  "NoSuchVersion",
  "MethodNotAllowed",
  "InvalidBucketState",
]);

/** Options of {@link createVersionEmbedder}. */
export interface VersionEmbedderOptions {
  readonly index: IndexConnection;
  readonly writer: IndexWriter;
  readonly buckets: BucketCatalogue;
  readonly objects: ObjectService;
  readonly embedder: Embedder;
}

/** Creates the handler of `embed`. The vector and the end of the task are one commit. */
export function createVersionEmbedder(options: VersionEmbedderOptions): TaskHandler {
  const { writer, embedder } = options;
  return async (task) => {
    const { id, seq } = task;
    const end = (): Promise<unknown> => writer.submit({ type: "endTask", task: { id, seq } });
    try {
      const found = await readText(options, task);
      if (found === undefined) {
        await end();
        return;
      }
      const { address, text, dimension } = found;
      const vector = await embedder.embed(text, dimension);
      await writer.submit({ type: "setVector", address, vector, task: { id, seq } });
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (GONE.has(error.code)) await end();
      else if (error.code === "InternalError" || error.code === "SlowDown") throw error;
      else throw new RefusedTextError(error.message, { cause: error });
    }
  };
}

interface FoundText {
  readonly address: ObjectAddress;
  readonly text: string;
  readonly dimension: number;
}

// Undefined if the version has no text, or needs no vector.
async function readText(
  { index, buckets, objects }: VersionEmbedderOptions,
  task: Task,
): Promise<FoundText | undefined> {
  const name = index.sql("select name from buckets where id = ?").get(task.bucket)?.["name"];
  const { vectorIndex } = buckets.find(String(name ?? ""))?.settings ?? {};
  if (vectorIndex?.embed === undefined) return undefined;
  const address = { bucket: String(name), key: decodeKey(task.key), versionId: task.version };
  const object = await objects.describe(address);
  if (!matchesType(vectorIndex.embed, object)) return undefined;
  const text = await readSource(objects, address, object, vectorIndex.embed);
  if (text === undefined || text.trim() === "") return undefined;
  return { address, text, dimension: vectorIndex.dimension };
}

function matchesType({ types }: EmbedSource, { headers }: ObjectInfo): boolean {
  if (types === undefined) return true;
  const [type = ""] = (headers.contentType ?? "binary/octet-stream").toLowerCase().split(";");
  const own = type.trim();
  return types.some((wanted) =>
    wanted.endsWith("*") ? own.startsWith(wanted.slice(0, -1)) : own === wanted,
  );
}

async function readSource(
  objects: ObjectService,
  address: ObjectAddress,
  { key, metadata, sizeBytes }: ObjectInfo,
  { from, max_bytes: bytesMax = BODY_BYTES_DEFAULT }: EmbedSource,
): Promise<string | undefined> {
  if (from === "key") return key;
  if (from.startsWith(METADATA)) return metadata[from.slice(METADATA.length)];
  if (sizeBytes === 0) return undefined;
  const range = { start: 0, end: Math.min(bytesMax, sizeBytes) - 1 };
  const { body } = await objects.get({ ...address, range });
  const pieces: Buffer[] = [];
  // Its memory may be used again.
  for await (const chunk of body.chunks()) pieces.push(Buffer.from(chunk));
  return new TextDecoder().decode(Buffer.concat(pieces));
}
