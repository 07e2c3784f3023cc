// Plans the vectors of objects that were there before their bucket computed any: some tasks at a time, from key to key.
import type { IndexWriter } from "../transaction/writer.ts";
import type { TaskHandler } from "./task-queue.ts";

const OBJECTS_AT_ONCE = 500;
/** Waiting tasks of the bucket above which no more are added, so that those of new objects wait behind few. */
const WAITING_MAX = 2_000;
const LOOK_AGAIN_MS = 5_000;

/** Creates the handler of `embed-existing`. Each call plans a few objects, and its task waits for the next call. */
export function createEmbeddingPlanner(writer: IndexWriter, now: () => number): TaskHandler {
  return async ({ id, seq, bucket }) => {
    await writer.submit({
      type: "planEmbeddings",
      task: { id, seq },
      bucket,
      objectsMax: OBJECTS_AT_ONCE,
      waitingMax: WAITING_MAX,
      nowMs: now(),
      againMs: LOOK_AGAIN_MS,
    });
  };
}
