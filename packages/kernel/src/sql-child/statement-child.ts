// The child process that answers questions, one at a time, at the lowest priority. It ends with the service that started it.
import { constants as osConstants, setPriority } from "node:os";
import { Worker } from "node:worker_threads";
import { answerStatement, type ServiceLink } from "./answer-statement.ts";
import type { GuardData } from "./child-guard-thread.ts";
import type { ChildRequest } from "./messages.ts";

setPriority(osConstants.priority.PRIORITY_LOW);
const guard = new Worker(new URL("./child-guard-thread.ts", import.meta.url), {
  workerData: { parent: process.ppid } satisfies GuardData,
  resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
});
guard.unref();
process.on("disconnect", () => process.exit());

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
  // Freed memory does not always go back to the system.
  isSpent: () => process.memoryUsage.rss() > (idleBytes + bytesMax) / 2,
};

process.on("message", (request: ChildRequest) => {
  if (request.type === "rows") {
    onRows?.(request.rows);
    return;
  }
  if (idleBytes === 0) idleBytes = process.memoryUsage.rss();
  bytesMax = idleBytes + request.limits.memoryBytes;
  guard.postMessage(bytesMax);
  void answerStatement(request, link);
});
