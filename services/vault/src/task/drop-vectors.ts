// Removes the vectors of a vector index that was deleted, some rows at a time, so that other writes come in between.
import type { IndexWriter } from "../transaction/writer.ts";
import type { TaskHandler } from "./task-queue.ts";

const ROWS_MAX = 10_000;

/** Creates the handler of `drop-vectors`. */
export function createVectorDropper(writer: IndexWriter): TaskHandler {
  return async ({ id, seq, bucket }, signal) => {
    for (let isDone = false; !isDone;) {
      signal.throwIfAborted();
      const operation = { task: { id, seq }, bucket, rowsMax: ROWS_MAX };
      ({ isDone } = await writer.submit({ type: "dropVectors", ...operation }));
    }
  };
}
