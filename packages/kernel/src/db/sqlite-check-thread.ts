// The thread that checks a large SQLite file.
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { findFault } from "./sqlite-check.ts";

// Read-only: closing it must not merge the log.
const database = new DatabaseSync(workerData as string, { readOnly: true, timeout: 5_000 });
parentPort?.postMessage(findFault(database));
database.close();
