// Loaded before a test file: threads of services in the test's process start in their built form where processes of services
// do. From its sources, a thread of storage takes 150 ms to start, and storage starts several whenever it is opened.
import { syncBuiltinESMExports } from "node:module";
import { fileURLToPath } from "node:url";
import threads, { Worker, type WorkerOptions } from "node:worker_threads";
import { createThreadFinder } from "./built-threads.ts";

const findBuilt =
  process.env["PLATFORM_FORM"] === "built"
    ? createThreadFinder(fileURLToPath(new URL("..", import.meta.url)))
    : (file: string | URL) => file;

threads.Worker = class extends Worker {
  constructor(file: string | URL, options: WorkerOptions = {}) {
    // Threads do not load these modules again.
    super(findBuilt(file), { execArgv: [], ...options });
  }
};
syncBuiltinESMExports();
// Nor do child processes.
process.execArgv = process.execArgv.filter((argument) => !argument.startsWith("--import="));
