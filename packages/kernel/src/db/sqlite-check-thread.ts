// The thread that checks a large SQLite file.
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { type CheckResult, type CheckTask, findFault } from "./sqlite-check.ts";
import { readPages } from "./sqlite-pages.ts";

const { location, descriptor, readsPages, expected } = workerData as CheckTask;
// Read-only: closing it must not merge the log.
const database = new DatabaseSync(location, { readOnly: true, timeout: 5_000 });
const fault = findFault(database);
database.close();
const pages = readsPages ? readPages(descriptor, expected) : undefined;
const { different = [], found } = pages ?? {};
parentPort?.postMessage({ fault, different, found } satisfies CheckResult);
