// The tables of an index for salvaging: the order in which they are read, and the check of their rows.
import type { BlobRow, VersionRow } from "../index/records.ts";
import {
  matchesSeal,
  sealBlob,
  sealBucket,
  type RemoteBlobRow,
  sealPart,
  sealRemote,
  sealRemoteBlob,
  sealVersion,
  type SealedPart,
  sealVector,
  type VectorRow,
} from "../index/seal.ts";
import type { Row, SalvagedTable } from "./salvage.ts";

const toPart = (owner: string, blob: string) => (row: Row) =>
  ({ start: 0, ...row, owner: row[owner], blob: row[blob] }) as unknown as SealedPart;
const toUploadPart = toPart("upload", "blob");
const toBlobPart = toPart("blob", "part");
const isSealed = (row: Row, seal: number) =>
  matchesSeal(row["seal"] as number | null | undefined, seal);

/** The tables of versions. */
export const VERSION_TABLES: readonly SalvagedTable[] = ["current", "versions"].map((name) => ({
  name,
  order: name === "current" ? "bucket, key" : "bucket, key, seq",
  isWhole: (row) => isSealed(row, sealVersion(row as unknown as VersionRow)),
}));

/** The other tables: columns in the order of the table, the check of a row, and its seal if it has one. */
export const OTHER_TABLES: readonly (SalvagedTable & {
  columns: readonly string[];
  seal?: (row: Row) => number;
})[] = [
  {
    name: "buckets",
    order: "id",
    columns: ["id", "name", "document"],
    seal: (row: Row) => sealBucket(readText(row, "name"), readText(row, "document")),
  },
  {
    name: "blobs",
    order: "id",
    columns: "id refs kind size stored segment position extent cipher data".split(" "),
    seal: (row: Row) => sealBlob(row as unknown as BlobRow),
  },
  {
    name: "blob_parts",
    order: "blob, number",
    columns: "blob start number part size etag modified checksum".split(" "),
    seal: (row: Row) => sealPart(toBlobPart(row)),
  },
  {
    name: "uploads",
    order: "id",
    columns: "id upload_id bucket key created detail completed result".split(" "),
  },
  {
    name: "parts",
    order: "upload, number",
    columns: "upload number blob size etag modified checksum".split(" "),
    seal: (row: Row) => sealPart(toUploadPart(row)),
  },
  {
    name: "vectors",
    order: "id",
    columns: ["id", "bucket", "key", "version", "data"],
    seal: (row: Row) => sealVector(row as unknown as VectorRow),
  },
  {
    name: "tasks",
    order: "id",
    columns: "id kind rule bucket key version seq due attempts state detail added".split(" "),
  },
  {
    name: "jobs",
    order: "number",
    columns: "number id operation state maker created ended sequence spec progress".split(" "),
  },
  { name: "job_lines", order: "job, number", columns: ["job", "number", "failures", "lines"] },
  { name: "trigger_runs", order: "id", columns: ["id", "bucket", "document"] },
  { name: "facts", order: "name", columns: ["name", "value"] },
  {
    name: "remotes",
    order: "name",
    columns: ["name", "document", "blobs", "bytes"],
    seal: (row: Row) => sealRemote(readText(row, "name"), readText(row, "document")),
  },
  {
    name: "remote_blobs",
    order: "blob",
    columns: "blob remote bucket key bytes position copy".split(" "),
    seal: (row: Row) => sealRemoteBlob(row as unknown as RemoteBlobRow),
  },
  { name: "events", order: "id", columns: ["id", "record"] },
].map((table) => ({
  ...table,
  isWhole: (row: Row) => table.seal === undefined || isSealed(row, table.seal(row)),
}));

/** A text column. */
export function readText(row: Row, column: string): string {
  const value = row[column];
  return typeof value === "string" ? value : "";
}
