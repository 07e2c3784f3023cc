// Vectors of versions, inside the writer. A version has one at most, and takes it with it.
import { sealVector } from "../index/seal.ts";
import { requireFittingVector } from "../model/vector.ts";
import type { BucketState, WriterContext } from "./writer-context.ts";

/** Sets the vector of a version, and replaces its former one. Throws if it does not fit the index of the bucket. */
export function setVector(
  context: WriterContext,
  { id: bucket, bucket: { settings } }: BucketState,
  key: Uint8Array,
  version: string,
  data: Uint8Array,
): void {
  requireFittingVector(settings.vectorIndex, data);
  removeVector(context, bucket, key, version);
  const row = { id: context.nextSequence(), bucket, key, version, data };
  context.bucketsWithVectors.set(bucket, true);
  context
    .sql("insert into vectors values (?, ?, ?, ?, ?, ?)")
    .run(row.id, bucket, key, version, data, sealVector(row));
  context.usage.edit(bucket).bytes += data.length;
}

/** Removes the vector of a version. Returns false if there was none. */
export function removeVector(
  context: WriterContext,
  bucket: number,
  key: Uint8Array,
  version: string,
): boolean {
  if (!mayHaveVectors(context, bucket)) return false;
  const found = context
    .sql(
      "delete from vectors where bucket = ? and key = ? and version = ? returning length(data) as bytes",
    )
    .get(bucket, key, version);
  if (found === undefined) return false;
  context.usage.edit(bucket).bytes -= Number(found["bytes"]);
  return true;
}

// Most buckets never have any: they are asked once, not at each removal of a version.
function mayHaveVectors(context: WriterContext, bucket: number): boolean {
  let known = context.bucketsWithVectors.get(bucket);
  if (known === undefined) {
    known = hasVectors(context, bucket);
    context.bucketsWithVectors.set(bucket, known);
  }
  return known;
}

/** True if a version has a vector. */
export function hasVector(
  context: WriterContext,
  bucket: number,
  key: Uint8Array,
  version: string,
): boolean {
  const text = "select 1 from vectors where bucket = ? and key = ? and version = ?";
  return context.sql(text).get(bucket, key, version) !== undefined;
}

/** True if a bucket has vectors, also those of an index that was deleted. */
export function hasVectors(context: WriterContext, bucket: number): boolean {
  return context.sql("select 1 from vectors where bucket = ? limit 1").get(bucket) !== undefined;
}
