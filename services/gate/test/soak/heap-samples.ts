// Memory that the threads of a gateway on Node still use after garbage collections.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { MemoryPoint } from "./resources.ts";

const SAMPLES = 80;
const EVERY_MS_MIN = 1_000;

/** Samples of one gateway. */
export interface HeapProbe {
  /** Environment of the gateway's process. */
  env: Record<string, string>;
  /** The samples of each thread without those of its first share. */
  read: (warmUpShare: number) => MemoryPoint[][];
}

/** Takes some 80 samples in so many seconds; `folder` is empty. */
export function createHeapProbe(folder: string, seconds: number): HeapProbe {
  const everyMs = Math.max(EVERY_MS_MIN, (seconds * 1_000) / SAMPLES);
  const probe = new URL("./heap-probe.ts", import.meta.url).href;
  return {
    env: {
      NODE_OPTIONS: `--import ${probe}`,
      PLATFORM_TEST_HEAPS: folder,
      PLATFORM_TEST_HEAPS_EVERY_MS: String(everyMs),
    },
    read: (warmUpShare) =>
      readdirSync(folder).map((name) => {
        const lines = readFileSync(join(folder, name), "utf8").split("\n").filter(Boolean);
        const points = lines.map((line) => JSON.parse(line) as MemoryPoint);
        return points.slice(Math.floor(points.length * warmUpShare));
      }),
  };
}
