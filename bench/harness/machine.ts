// The benchmark machine: its cores and description.
import { readFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";

/** Cores of the two sides of a measurement, in the format of `taskset -c`. */
export interface CoreAllotment {
  /** The core of the program under test. */
  test: string;
  /** All other cores: load generator and upstream. */
  load: string;
  /** All cores, for tests of more than one worker. */
  all: string;
}

/** Splits the cores that this process may use: the last one for the test, the rest for the load. */
export function allotCores(): CoreAllotment {
  const cores = listAllowedCores();
  const test = cores.at(-1) ?? 0;
  const load = cores.length > 1 ? cores.slice(0, -1) : cores;
  return { test: String(test), load: load.join(","), all: cores.join(",") };
}

/** Describes the machine in one line: cores, CPU model, memory, kernel. */
export function describeMachine(): string {
  const model = cpus()[0]?.model.trim() ?? "unknown CPU";
  const gib = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores of ${model}, ${gib} GiB, Linux ${release()}`;
}

function listAllowedCores(): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return (list ?? "0").split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
