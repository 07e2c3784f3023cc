// Bodies in remotes, inside the writer: their rows, the counts of their remote, and the deletion of their keys.

import type { RemoteKey, RemotePlace } from "../model/blob.ts";
import { matchesSeal, type RemoteBlobRow, sealRemoteBlob, damagedRow } from "../index/seal.ts";
import type { TaskAddress } from "../model/task.ts";
import { addTask } from "./task-rows.ts";
import type { WriterContext } from "./writer-context.ts";

/** Tasks about keys in remotes belong to no bucket: that of the object may be gone before its bytes. */
const NO_BUCKET = 0;

/** Adds the row of a body in a remote. */
export function insertRemoteBlob(context: WriterContext, blob: number, place: RemotePlace): void {
  const { remote, bucket, key, bytes, position } = place;
  const row: RemoteBlobRow = { blob, remote, bucket, key, bytes, position, copy: null };
  context
    .sql("insert into remote_blobs values (?, ?, ?, ?, ?, ?, ?, ?)")
    .run(blob, remote, bucket, key, bytes, position, null, sealRemoteBlob(row));
  count(context, remote, 1, bytes);
}

/** Removes the row of a body that no version has any more, and adds the task that deletes its key. */
export function removeRemoteBlob(context: WriterContext, blob: number): RemoteBlobRow | undefined {
  const row = findRemoteBlob(context, blob);
  if (row === undefined) return undefined;
  context.sql("delete from remote_blobs where blob = ?").run(blob);
  count(context, row.remote, -1, -row.bytes);
  if (isOwnKey(context, row.key)) addDeletion(context, row, 0);
  return row;
}

/** The row of a body in a remote. Throws if it is damaged. */
export function findRemoteBlob(context: WriterContext, blob: number): RemoteBlobRow | undefined {
  const row = context.sql("select * from remote_blobs where blob = ?").get(blob) as unknown as
    | (RemoteBlobRow & { seal: number })
    | undefined;
  if (row === undefined || matchesSeal(row.seal, sealRemoteBlob(row))) return row;
  throw damagedRow(`remote blob ${blob.toString(16)}`);
}

/** Sets or removes the local copy of a body in a remote. */
export function setRemoteCopy(
  context: WriterContext,
  row: RemoteBlobRow,
  copy: number | null,
): void {
  context
    .sql("update remote_blobs set copy = ?, seal = ? where blob = ?")
    .run(copy, sealRemoteBlob({ ...row, copy }), row.blob);
}

/** Adds the task that deletes a key; one that exists is due at the new time. */
export function addDeletion(context: WriterContext, key: RemoteKey, dueMs: number): TaskAddress {
  return addTask(context, {
    kind: "delete-remote",
    rule: key.remote,
    bucket: NO_BUCKET,
    key: Buffer.from(`${key.bucket}/${key.key}`),
    version: "",
    nowMs: dueMs,
  });
}

/** The keys that a deletion task is about. */
export function readDeletion(task: { rule: string; key: Uint8Array }): RemoteKey {
  const text = Buffer.from(task.key).toString("utf8");
  const at = text.indexOf("/");
  return { remote: task.rule, bucket: text.slice(0, at), key: text.slice(at + 1) };
}

// A store that was restored from a backup, or copied, has another id, and must not delete what the first one may still use.
function isOwnKey(context: WriterContext, key: string): boolean {
  const folder = key.split("/").at(-2) ?? "";
  return (
    context
      .sql("select 1 from facts where name in ('store', ?) and (name <> 'store' or value = ?)")
      .get(`adopted ${folder}`, folder) !== undefined
  );
}

function count(context: WriterContext, remote: string, blobs: number, bytes: number): void {
  context
    .sql("update remotes set blobs = blobs + ?, bytes = bytes + ? where name = ?")
    .run(blobs, bytes, remote);
}
