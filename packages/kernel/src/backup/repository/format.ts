// The files of a repository: one head, a manifest for each snapshot, and objects that snapshots share.
//
//   repository.json       the head: a manifest without files
//   snapshots/<id>.json   the manifest of a snapshot, written last; its files are pages of the list of its files
//   data/<aa>/<sha256>    objects by the SHA-256 of their stored bytes: pages of lists, and pieces of files
//
// All are manifests of the format of backups. A file is a list of pieces, which later snapshots name again. A file that
// changes in pages (a database) has a map instead: for each page its hash and its place in a pack of pages.
import { hash as digest } from "node:crypto";
import { z } from "zod";
import { BackupError } from "../error.ts";
import type { BackupManifest } from "../manifest.ts";
import { OBJECT_BYTES_MAX, PIECE_BYTES_MAX } from "./object-names.ts";

/** The name of the head. */
export const HEAD_NAME = "repository.json";
/** The folder of manifests. */
export const SNAPSHOT_FOLDER = "snapshots";
/** Entries of a page of a list, at most. */
export const LIST_ENTRIES_MAX = 4_096;
/** Bytes of the hash of a page in a map. */
export const PAGE_HASH_BYTES = 20;
/** Bytes of a page in a map: hash, number of its pack u16, place in it u32. */
export const MAP_ENTRY_BYTES = PAGE_HASH_BYTES + 6;
/** Packs that a map refers to, at most. */
export const PACKS_MAX = 16_384;

const SNAPSHOT_ID = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z-[0-9a-f]{8}$/;
const hash = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);

const pieceSchema = z.strictObject({
  bytes: count.max(PIECE_BYTES_MAX),
  sha256: hash,
  /** Stored bytes, and the hash of the plain ones; only of encrypted pieces. */
  stored: count.max(OBJECT_BYTES_MAX).exactOptional(),
  plain: hash.exactOptional(),
});

const pagesSchema = z.strictObject({
  page_bytes: count.min(512).max(65_536),
  packs: z.array(pieceSchema).max(PACKS_MAX),
  map: z.array(pieceSchema),
});

const entrySchema = z.strictObject({
  path: z.string().min(1).max(1_024),
  bytes: count,
  stamp: z.string().max(128).exactOptional(),
  pieces: z.array(pieceSchema).exactOptional(),
  pages: pagesSchema.exactOptional(),
});

const headMark = z.strictObject({ repository: z.string().min(1), owner: z.string() });
const snapshotMark = z.strictObject({
  repository: z.string().min(1),
  files: count,
  bytes: count,
  added: count,
  point: z.json(),
});

/** A stored piece: its plain bytes, and the object that contains it. */
export type Piece = z.infer<typeof pieceSchema>;

/** A file of a snapshot: pieces in sequence, or pages. With the same `stamp` its contents are the same. */
export type FileEntry = z.infer<typeof entrySchema>;

/** The mark of the head: a random id, and whose data it has. */
export type HeadMark = z.infer<typeof headMark>;

/** The mark of a snapshot: that of the service (`point`), and totals in bytes; `added` are those that the snapshot wrote. */
export type SnapshotMark = z.infer<typeof snapshotMark>;

/** The name of the manifest of a snapshot. */
export function nameSnapshot(id: string): string {
  return `${SNAPSHOT_FOLDER}/${id}.json`;
}

/** The id in the name of a manifest; `undefined` for other names. */
export function readSnapshotId(name: string): string | undefined {
  const id = name.slice(SNAPSHOT_FOLDER.length + 1, -".json".length);
  return nameSnapshot(id) === name && SNAPSHOT_ID.test(id) ? id : undefined;
}

/** A new id, which begins with the time, so that ids sort by it. */
export function makeSnapshotId(nowMs: number, random: string): string {
  const time = new Date(nowMs).toISOString().replaceAll(/[-:.]/g, "");
  return `${time}-${random}`;
}

/** The time in an id, epoch ms. */
export function readSnapshotTime(id: string): number {
  const [, year, month, day, hour, minute, second, ms] = SNAPSHOT_ID.exec(id) ?? [];
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`);
}

/** Encodes a page of a list. */
export function encodeList(entries: readonly FileEntry[]): Buffer {
  return Buffer.from(JSON.stringify(entries));
}

/** Decodes a page of a list. */
export function decodeList(bytes: Buffer, place: string): FileEntry[] {
  return parse(z.array(entrySchema), bytes, place);
}

/** The mark of a head. */
export function readHeadMark({ mark }: BackupManifest, place: string): HeadMark {
  const parsed = headMark.safeParse(mark);
  if (parsed.success) return parsed.data;
  throw new BackupError(`${place}: not the head of a repository`);
}

/** The mark of a snapshot. */
export function readSnapshotMark({ mark }: BackupManifest, place: string): SnapshotMark {
  const parsed = snapshotMark.safeParse(mark);
  if (parsed.success) return parsed.data;
  throw new BackupError(`${place}: not the manifest of a snapshot`);
}

/** The hash of a page. */
export function digestPage(page: Uint8Array): Buffer {
  return digest("sha256", page, "buffer").subarray(0, PAGE_HASH_BYTES);
}

function parse<Schema extends z.ZodType>(
  schema: Schema,
  bytes: Buffer,
  place: string,
): z.infer<Schema> {
  let document: unknown;
  try {
    document = JSON.parse(bytes.toString("utf8"));
  } catch {
    throw new BackupError(`${place}: not JSON`);
  }
  const parsed = schema.safeParse(document);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new BackupError(`${place}: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`);
}
