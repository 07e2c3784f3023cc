// Finds the segments of a log in the object store, by the headers of its objects.
import { BATCH_HEADER_BYTES, readBatchHeader } from "../batch/header.ts";
import type { ColdStore } from "../cold-store.ts";
import { objectPrefix, parseObjectName } from "../partition/object-name.ts";
import type { Quarantine } from "../types.ts";
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES } from "../segment/segment-header.ts";
import type { FoundRun } from "./segment-scan.ts";

/**
 * Lists the objects of a log and reads their headers. Their newest record counts as old as the object, which is not older:
 * only reading all of it could tell. Rejects with a `ColdStoreError`.
 */
export async function scanObjects(
  store: ColdStore,
  logId: Buffer,
): Promise<{ runs: FoundRun[]; problems: Quarantine[] }> {
  const prefix = objectPrefix(logId.toString("hex"));
  const runs: FoundRun[] = [];
  const problems: Quarantine[] = [];
  for await (const { object, bytes, modifiedMs } of store.list(prefix)) {
    const name = parseObjectName(object);
    const isLong = name !== undefined && bytes >= SEGMENT_HEADER_BYTES + BATCH_HEADER_BYTES;
    const head = Buffer.alloc(isLong ? SEGMENT_HEADER_BYTES + BATCH_HEADER_BYTES : 0);
    if (isLong) await store.read(object, 0, head);
    const description = await decodeSegmentHeader(head);
    const first = readBatchHeader(head, SEGMENT_HEADER_BYTES);
    if (name === undefined || description === undefined || first === undefined) {
      const reason = "the object does not describe its partition";
      problems.push({ file: object, position: 0, length: bytes, reason });
      continue;
    }
    const { baseOffset, nextOffset } = name;
    runs.push({
      description,
      leaderEpoch: first.leaderEpoch,
      extent: {
        shared: false,
        file: baseOffset,
        generation: 0,
        position: SEGMENT_HEADER_BYTES,
        length: bytes - SEGMENT_HEADER_BYTES,
        baseOffset,
        nextOffset,
        maxTimestamp: modifiedMs,
        object,
        isRemote: true,
      },
    });
  }
  return { runs, problems };
}
