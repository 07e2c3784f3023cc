// Upkeep of blobs inside the writer: collected garbage, and records that compaction has moved.
import type { BlobRow } from "../index/records.ts";
import { sealBlob } from "../index/seal.ts";
import type { WriterContext } from "./writer-context.ts";
import type { BlobId } from "../model/blob.ts";

/** The files of these blobs are deleted. */
export interface ForgetGarbageOperation {
  type: "forgetGarbage";
  blobs: readonly BlobId[];
  /** Segments whose files are deleted. */
  segments: readonly number[];
}

/** A record was copied: the blob moves to its copy, unless its location has changed since. */
export interface MoveBlobOperation {
  type: "moveBlob";
  blob: BlobId;
  from: { segment: number; position: number };
  to: { segment: number; position: number };
  /** The cipher that the head of the copy has, instead of the one that it was written for. */
  cipher?: { from: string; to: string };
}

/** Applies the removal of garbage. */
export function applyForgetGarbage(
  context: WriterContext,
  { blobs, segments }: ForgetGarbageOperation,
): null {
  for (const id of blobs) context.sql("delete from garbage where blob = ?").run(id);
  for (const id of segments) {
    context.sql("delete from segments where id = ? and live = 0").run(id);
  }
  return null;
}

export function applyMoveBlob(
  context: WriterContext,
  { blob, from, to, cipher }: MoveBlobOperation,
): { moved: boolean } {
  const row = context
    .sql(
      "update blobs set segment = ?1, position = ?2, cipher = coalesce(?6, cipher) " +
        "where id = ?3 and segment = ?4 and position = ?5 and (?7 is null or cipher = ?7) " +
        "returning id, kind, size, stored, segment, position, extent, cipher, data",
    )
    .get(
      to.segment,
      to.position,
      blob,
      from.segment,
      from.position,
      cipher?.to ?? null,
      cipher?.from ?? null,
    ) as unknown as BlobRow | undefined;
  if (row === undefined) return { moved: false };
  const { extent } = row;
  context.sql("update blobs set seal = ? where id = ?").run(sealBlob(row), blob);
  context.sql("update segments set live = live - ? where id = ?").run(extent, from.segment);
  context
    .sql(
      "insert into segments values (?, ?, ?) on conflict (id) do update set " +
        "bytes = max(bytes, excluded.bytes), live = live + excluded.live",
    )
    .run(to.segment, to.position + extent, extent);
  return { moved: true };
}
