// The child process that answers questions, one at a time. It ends with the service that started it.
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { answerStatement, type ServiceLink } from "./answer-statement.ts";
import type { GuardData, GuardedQuestion } from "./child-guard-thread.ts";
import type { Ask, ChildRequest } from "./messages.ts";

const isLow = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
const low = new Int32Array(isLow);
const guard = new Worker(new URL("./child-guard-thread.ts", import.meta.url), {
  workerData: { parent: process.ppid, isLow } satisfies GuardData,
  resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
});
guard.unref();
process.on("disconnect", () => process.exit());

/** Memory of the process with SQLite, which it loads with the first question. */
const PROCESS_BYTES = 72 * 1024 ** 2;

type Rows = Extract<ChildRequest, { type: "rows" }>["rows"];

let idleBytes = 0;
let bytesMax = 0;
let onRows: ((rows: Rows) => void) | undefined;
const link: ServiceLink = {
  // The queue of the channel is bounded by the size of an answer.
  send: (response) => void process.send?.(response),
  receive: () =>
    new Promise((resolve) => {
      onRows = resolve;
    }),
  // Freed memory does not always go back to the system, and only the administrator raises a priority again.
  isSpent: () => low[0] !== 0 || process.memoryUsage.rss() > (idleBytes + bytesMax) / 2,
};

// No statement runs without its guard, and the memory that loading the guard takes is not that of a statement.
const isGuarded = once(guard, "message");

process.on("message", (request: ChildRequest) => {
  if (request.type === "rows") onRows?.(request.rows);
  else void isGuarded.then(() => answer(request));
});

async function answer(request: Ask): Promise<void> {
  if (idleBytes === 0) idleBytes = Math.max(process.memoryUsage.rss(), PROCESS_BYTES);
  bytesMax = idleBytes + request.limits.memoryBytes;
  guard.postMessage({ bytesMax } satisfies GuardedQuestion);
  link.send({ type: "begun" });
  await answerStatement(request, link);
}
