// Counts the contents of a bucket by listing it, and compares them with the reported usage.
import assert from "node:assert/strict";
import type { ListUploadsResult } from "../../src/model/upload.ts";
import type { ListVersionsResult } from "../../src/model/version.ts";
import type { BucketUsage } from "../../src/model/usage.ts";
import type { Store } from "../../src/object-store.ts";

/** The usage of a bucket, by its listings. */
export async function scanUsage(store: Store, bucket: string): Promise<BucketUsage> {
  const usage = { objects: 0, versions: 0, deleteMarkers: 0, bytes: 0, uploads: 0, uploadBytes: 0 };
  for (let after, isDone = false; !isDone;) {
    const page: ListVersionsResult = await store.objects.listVersions({
      bucket,
      ...(after === undefined ? {} : { after }),
    });
    for (const version of page.versions) {
      if (version.isDeleteMarker) {
        usage.deleteMarkers += 1;
        continue;
      }
      usage.versions += 1;
      usage.bytes += version.sizeBytes;
      if (version.isLatest) usage.objects += 1;
    }
    after = page.next;
    isDone = after === undefined;
  }
  for (let after, isDone = false; !isDone;) {
    const page: ListUploadsResult = await store.uploads.list({
      bucket,
      ...(after === undefined ? {} : { after }),
    });
    for (const { key, uploadId } of page.uploads) {
      usage.uploads += 1;
      const { parts } = await store.uploads.listParts({ bucket, key, uploadId });
      for (const { sizeBytes } of parts) usage.uploadBytes += sizeBytes;
    }
    after = page.next;
    isDone = after === undefined;
  }
  return usage;
}

/** Fails if the reported usage of a bucket, or the totals, differ from its contents. */
export async function requireRightUsage(store: Store, what: string): Promise<void> {
  const totals = { objects: 0, storageBytes: 0 };
  for (const { name } of store.buckets.list()) {
    const usage = await scanUsage(store, name);
    assert.deepEqual(store.readUsage(name), usage, `${what}: ${name}`);
    totals.objects += usage.objects;
    totals.storageBytes += usage.bytes + usage.uploadBytes;
  }
  const { objects, storageBytes } = store.readStats();
  assert.deepEqual({ objects, storageBytes }, totals, what);
}
