// Uploads and their parts inside the writer.
import { releaseBlob } from "./blob-rows.ts";
import type { WriterContext } from "./writer-context.ts";
import type { NewObject } from "./put-operation.ts";
import type { Initiator, UploadChecksum } from "../model/upload.ts";

/** The data that an upload stores for its future object, as JSON. */
export interface UploadDetail {
  object: Pick<NewObject, "class" | "owner" | "tags" | "retention" | "hold" | "detail" | "source">;
  initiator?: Initiator;
  checksum?: UploadChecksum;
}

/** A row of `uploads`. */
export interface UploadRow {
  id: number;
  upload_id: string;
  bucket: number;
  key: Uint8Array;
  created: number;
  detail: string;
  completed: number | null;
  result: string | null;
}

/** A row of `parts`. */
export interface PartRow {
  number: number;
  blob: number;
  size: number;
  etag: string;
  modified: number;
  checksum: string | null;
}

/** A part in a manifest. */
export type ManifestPart = PartRow;

/** Removes an upload, open or completed, with its remaining parts. */
export function releaseUpload(
  context: WriterContext,
  upload: Pick<UploadRow, "id" | "bucket" | "completed">,
): void {
  releaseParts(context, upload);
  context.sql("delete from uploads where id = ?").run(upload.id);
  if (upload.completed === null) context.usage.edit(upload.bucket).uploads -= 1;
}

/** Removes the remaining parts of an upload, and their bytes. */
export function releaseParts(
  context: WriterContext,
  { id, bucket }: Pick<UploadRow, "id" | "bucket">,
): void {
  for (const part of context
    .sql("delete from parts where upload = ? returning blob, size")
    .all(id)) {
    context.usage.edit(bucket).uploadBytes -= Number(part["size"]);
    releaseBlob(context, Number(part["blob"]));
  }
}
