// A reader thread: runs queries on a read-only connection, one after another.
import { parentPort, workerData } from "node:worker_threads";
import { runQuery, type QueryName } from "./reader-queries.ts";
import { openIndexReader } from "../index/schema.ts";

/** A request to a reader thread. */
export interface ReaderRequest {
  id: number;
  name: QueryName;
  values: unknown[];
}

/** The answer of a reader thread. */
export type ReaderResponse = { id: number } & ({ value: unknown } | { error: string });

const port = parentPort;
if (port !== null) {
  const index = openIndexReader((workerData as { path: string }).path);
  port.on("message", (request: ReaderRequest | "close") => {
    if (request === "close") {
      index.close();
      port.close();
      return;
    }
    const { id, name, values } = request;
    try {
      port.postMessage({ id, value: runQuery(index, name, values) });
    } catch (error) {
      port.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
    }
  });
}
