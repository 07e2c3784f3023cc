// Loaded before a test file: threads and child processes of services in the test's process start in their built form where
// processes of services do. From its sources, a thread of storage takes 150 ms to start, and storage starts several whenever
// it is opened; a child that answers questions in SQL has no cache of compiled code, and takes three times as long.
import childProcess, { type ChildProcess, type ForkOptions } from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
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
const { fork } = childProcess;
type Fork = (file: string | URL, args?: readonly string[], options?: ForkOptions) => ChildProcess;
(childProcess as { fork: Fork }).fork = (file, args, options) => {
  const url = file instanceof URL ? file : pathToFileURL(file);
  return fork(url.pathname.endsWith("-child.ts") ? findBuilt(url) : file, args, options);
};
syncBuiltinESMExports();
// Nor do child processes.
process.execArgv = process.execArgv.filter((argument) => !argument.startsWith("--import="));
