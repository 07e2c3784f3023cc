// Loaded into each thread of a gateway on Node: collects garbage at times, and notes the memory that remains in use.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { threadId } from "node:worker_threads";

const { PLATFORM_TEST_HEAPS: folder = "", PLATFORM_TEST_HEAPS_EVERY_MS: everyMs = "" } =
  process.env;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
setInterval(() => {
  // The second collection frees objects that the first one finalized.
  collect();
  collect();
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics();
  const sample = { atMs: Date.now(), mib: (heap + external) / 1_048_576 };
  appendFileSync(join(folder, `${threadId}.jsonl`), `${JSON.stringify(sample)}\n`);
}, Number(everyMs)).unref();
