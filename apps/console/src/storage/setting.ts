// Settings of buckets in the API of storage: read with their ETag, written only if they are still the ones that were read.
import { send, type CallOptions } from "../api/api.ts";
import { onlyIf, readVersioned, type Versioned } from "../api/versioned.ts";
import { api } from "../session/session.ts";
import { bucketPath } from "./objects.ts";

/** A setting as it is stored. */
export type StoredSetting = Versioned<object>;

/** Reads a setting. */
export async function readSetting(
  bucket: string,
  name: string,
  signal?: AbortSignal,
): Promise<StoredSetting> {
  const { document, etag } = await readVersioned<object>(pathOf(bucket, name), signal);
  const isEmpty = Object.values(document ?? {}).every(
    (value) => Array.isArray(value) && value.length === 0,
  );
  return { document: isEmpty ? undefined : document, etag };
}

/** Replaces a setting, or removes it without a document. Rejects with 412 if it is no longer the one that was read. */
export async function writeSetting(
  bucket: string,
  name: string,
  document: unknown,
  etag: string | undefined,
): Promise<void> {
  const options: CallOptions =
    document === undefined ? { method: "DELETE" } : { method: "PUT", json: document };
  await send(pathOf(bucket, name), { ...options, headers: onlyIf(etag) });
}

function pathOf(bucket: string, name: string): string {
  return api("vault", bucketPath(bucket, `/config/${name}`));
}

/** Address of the settings of a bucket in the console. No bucket has the name `-`, so that it is no folder's address. */
export function settingsHref(bucket: string, tab = "general"): string {
  return `/storage/buckets/-/${encodeURIComponent(bucket)}/${tab}`;
}
