// Costs of test files: times of the last whole run that was recorded, by which the next one is ordered and packed.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PATH = fileURLToPath(new URL("test-costs.json", import.meta.url));

/** Times of one file in seconds. */
export interface TestCost {
  wallS: number;
  /**
   * Of the file's process and of those that it started, where the kernel keeps an account of them; elsewhere only of those that
   * have been waited for. Undefined if it is not recorded.
   */
  cpuS: number | undefined;
}

/** Costs by file. */
export type TestCosts = ReadonlyMap<string, TestCost>;

/** The recorded costs; none if there is no record. */
export function readCosts(): TestCosts {
  if (!existsSync(PATH)) return new Map();
  const entries = Object.entries(
    JSON.parse(readFileSync(PATH, "utf8")) as Record<string, number[]>,
  );
  return new Map(entries.map(([file, [wallS = 0, cpuS]]) => [file, { wallS, cpuS }]));
}

/** Replaces the record; a line per file, so that changes can be read. */
export function writeCosts(costs: TestCosts): void {
  const lines = [...costs]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([file, { wallS, cpuS }]) => {
      const cost = [wallS, ...(cpuS === undefined ? [] : [cpuS])].map((time) => time.toFixed(1));
      return `  ${JSON.stringify(file)}: [${cost.join(", ")}]`;
    });
  writeFileSync(PATH, `{\n${lines.join(",\n")}\n}\n`);
}

/** The sum of both times over files. */
export function sumCosts(costs: Iterable<TestCost>): { wallS: number; cpuS: number } {
  const sum = { wallS: 0, cpuS: 0 };
  for (const { wallS, cpuS } of costs) {
    sum.wallS += wallS;
    sum.cpuS += cpuS ?? 0;
  }
  return sum;
}

/** The cost of files that run one after the other; its CPU time is not known unless each of theirs is. */
export function addCosts(costs: readonly TestCost[]): TestCost {
  const { wallS, cpuS } = sumCosts(costs);
  return { wallS, cpuS: costs.some((cost) => cost.cpuS === undefined) ? undefined : cpuS };
}

/** Divides the times of a group among its files, in the proportion of their recorded times. */
export function shareCosts(
  { wallS, cpuS = 0 }: TestCost,
  members: readonly string[],
  recorded: TestCosts,
): [string, TestCost][] {
  const sum = sumCosts(members.map((member) => recorded.get(member)!)).wallS || 1;
  return members.map((member) => {
    const part = recorded.get(member)!.wallS / sum;
    return [member, { wallS: wallS * part, cpuS: cpuS * part }];
  });
}

/** Parses what the shell's `times` prints: its second line is about the processes that it has waited for. */
export function parseTimes(text: string): number {
  const [, children = ""] = text.trim().split("\n");
  let seconds = 0;
  for (const [, minutes, rest] of children.matchAll(/(\d+)m([\d.]+)s/g)) {
    seconds += Number(minutes) * 60 + Number(rest);
  }
  return seconds;
}
