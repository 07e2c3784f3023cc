// Adds, shares and releases blob rows in the writer; blobs without references become garbage.
import { insertRemoteBlob, removeRemoteBlob } from "./remote-rows.ts";
import type { WriterContext } from "./writer-context.ts";
import type { BlobRow } from "../index/records.ts";
import { BLOB_COLUMNS, listBlobValues } from "../index/sealed-values.ts";
import type { BlobId, BlobPlace, BlobRecord } from "../model/blob.ts";

const INSERT_BLOB = `insert into blobs (refs, ${BLOB_COLUMNS}) values (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Adds a blob with one reference. */
export function insertBlob(context: WriterContext, blob: BlobRecord): void {
  const { place } = blob;
  const shared = findSharedPlace(place);
  const position = place.kind === "file" ? place.position : shared?.position;
  const row: BlobRow = {
    id: blob.id,
    kind: place.kind,
    size: blob.size,
    stored: blob.stored,
    segment: shared?.segment ?? null,
    position: position ?? null,
    extent: blob.extent,
    cipher: blob.cipher === undefined ? null : JSON.stringify(blob.cipher),
    data: place.kind === "inline" ? place.data : null,
  };
  context.sql(INSERT_BLOB).run(...listBlobValues(row));
  if (place.kind === "remote" && place.at !== undefined)
    insertRemoteBlob(context, blob.id, place.at);
  if (shared !== undefined) {
    const end = shared.position + blob.extent;
    context
      .sql(
        "insert into segments values (?, ?, ?) on conflict (id) do update set " +
          "bytes = max(bytes, excluded.bytes), live = live + excluded.live",
      )
      .run(shared.segment, end, blob.extent);
  }
}

function findSharedPlace(place: BlobPlace) {
  if (place.kind === "segment") return place;
  if (place.kind === "remote") return place.stub;
  return place.kind === "parts" ? place.manifest : undefined;
}

/** Adds a reference; returns false if the blob no longer exists. */
export function shareBlob(context: WriterContext, id: BlobId): boolean {
  return context.sql("update blobs set refs = refs + 1 where id = ?").run(id).changes === 1;
}

/** Removes a reference. When the last one is removed, the bytes become garbage. */
export function releaseBlob(context: WriterContext, id: BlobId): void {
  // Two statements: with RETURNING, SQLite reads the whole row, and that of an index on an expression takes four times as long.
  const row = context.sql("select refs, kind, segment, extent from blobs where id = ?").get(id) as
    | (Pick<BlobRow, "kind" | "segment" | "extent"> & { refs: number })
    | undefined;
  if (row === undefined) return;
  if (row.refs !== 1) {
    // Rare: changing a row writes its inline bytes again.
    context.sql("update blobs set refs = refs - 1 where id = ?").run(id);
    return;
  }
  context.sql("delete from blobs where id = ?").run(id);
  if (row.segment !== null) {
    context.sql("update segments set live = live - ? where id = ?").run(row.extent, row.segment);
  }
  switch (row.kind) {
    case "inline":
    case "segment":
      return;
    case "file":
      context.sql("insert or ignore into garbage values (?)").run(id);
      return;
    case "remote": {
      const place = removeRemoteBlob(context, id);
      if (place !== undefined && place.copy !== null) releaseBlob(context, place.copy);
      return;
    }
    case "parts": {
      const parts = context.sql("delete from blob_parts where blob = ? returning part").all(id);
      for (const part of parts) releaseBlob(context, Number(part["part"]));
      return;
    }
    default:
      row.kind satisfies never;
  }
}
