// The thread that searches vectors, one question after another.
import { parentPort, workerData } from "node:worker_threads";
import { type IndexConnection, openIndexReader } from "../index/schema.ts";
import { StoreError } from "../model/store-error.ts";
import type { VectorQuestion, VectorResponse } from "./vector-messages.ts";
import { SearchStopped, VectorSearch } from "./vector-search.ts";

/** Data that the thread starts with. */
export interface VectorThreadData {
  /** Memory for vectors. */
  readonly memoryBytes: number;
  /** One number in shared memory, which is 1 when nobody waits for the running search any more. */
  readonly stop: Int32Array<SharedArrayBuffer>;
}

const port = parentPort;
if (port !== null) {
  const { memoryBytes, stop } = workerData as VectorThreadData;
  const search = new VectorSearch(memoryBytes, () => Atomics.load(stop, 0) === 1);
  let path = "";
  let connection: IndexConnection | undefined;
  const open = (wanted: string): IndexConnection => {
    if (connection !== undefined && wanted === path) return connection;
    connection?.close();
    search.clear();
    path = wanted;
    connection = openIndexReader(path);
    return connection;
  };
  port.on("message", (question: VectorQuestion | "close") => {
    if (question === "close") {
      connection?.close();
      port.close();
      return;
    }
    port.postMessage(answer(() => open(question.path), question));
  });

  function answer(connect: () => IndexConnection, question: VectorQuestion): VectorResponse {
    let index: IndexConnection | undefined;
    try {
      index = connect();
      index.database.exec("begin");
      return { type: "answer", ...search.search(index, question) };
    } catch (error) {
      if (error instanceof SearchStopped) return { type: "stopped" };
      const code = error instanceof StoreError ? error.code : "InternalError";
      return {
        type: "failed",
        code,
        message: error instanceof Error ? error.message : String(error),
      };
    } finally {
      if (index?.database.isTransaction === true) index.database.exec("rollback");
    }
  }
}
