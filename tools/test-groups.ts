// Groups of small test files that run in one process: to load a service's modules takes longer than their tests.
import { readFileSync } from "node:fs";
import { DATA_SUITES } from "./rerun.ts";
import type { TestCosts } from "./test-costs.ts";
import type { TestPlan } from "./test-plan.ts";

/** Fewer files are somebody at work, who gets them one by one. */
const FILES_MIN = 30;
/** Files that take longer have a process of their own. */
const MEMBER_WALL_S_MAX = 12;
/** No group is longer than other files, so that the last one of a run is not waited for. */
const GROUP_WALL_S_MAX = 45;
/** Real time of sockets: the tests of these packages disturb each other in one process. */
const BY_THE_CLOCK = /^(?:packages\/http1|services\/tunnel)\//;
/** The program of a process: a service that is declared in it is the one that these tests run. */
const OF_PROGRAMS = /^packages\/service\/test\/platform\//;
/** A group that hangs must not hold a run: its files run again one by one. */
const GROUP_TIMEOUT_MS = 240_000;
/** Hooks at the top of a file run for all files of its process, and these change or measure the process. */
const WHOLE_PROCESS =
  /^(?:beforeEach|afterEach)\(|process\.env\[[^\]]+\] = |delete process\.env|process\.chdir\(|process\.on\(|mock\.timers|memoryUsage\(|setFlagsFromString|monitorEventLoopDelay|resourceUsage\(|getActiveResourcesInfo/m;

/**
 * Puts small files of the same package into groups, by their recorded times. Files without a record, suites about data
 * and those that change or measure their process stay alone; so do all if there are few.
 */
export function groupPlans(
  plans: readonly TestPlan[],
  costs: TestCosts,
  read: (file: string) => string = (file) => readFileSync(file, "utf8"),
): TestPlan[] {
  if (plans.length < FILES_MIN) return [...plans];
  const alone: TestPlan[] = [];
  const groups = new Map<string, TestPlan[][]>();
  for (const plan of plans) {
    if (!isSmall(plan, costs, read)) {
      alone.push(plan);
      continue;
    }
    const folder = plan.file.split("/").slice(0, 2).join("/");
    const found = groups.get(folder) ?? [[]];
    groups.set(folder, found);
    const last = found.at(-1)!;
    const wallS = [...last, plan].reduce((sum, { file }) => sum + costs.get(file)!.wallS, 0);
    if (wallS > GROUP_WALL_S_MAX) found.push([plan]);
    else last.push(plan);
  }
  for (const [folder, found] of groups) {
    for (const members of found)
      alone.push(members.length === 1 ? members[0]! : join(folder, members));
  }
  return alone;
}

function isSmall(
  { file, env }: TestPlan,
  costs: TestCosts,
  read: (file: string) => string,
): boolean {
  const cost = costs.get(file);
  if (cost === undefined || cost.wallS > MEMBER_WALL_S_MAX) return false;
  return (
    Object.keys(env).length === 0 &&
    !BY_THE_CLOCK.test(file) &&
    !OF_PROGRAMS.test(file) &&
    !DATA_SUITES.test(file) &&
    !WHOLE_PROCESS.test(read(file))
  );
}

function join(folder: string, members: readonly TestPlan[]): TestPlan {
  const files = members.map(({ file }) => file);
  const timeoutMs = Math.min(members[0]!.timeoutMs, GROUP_TIMEOUT_MS);
  const file = `${folder} (${files.length} files from ${files[0]!.slice(folder.length + 1)})`;
  return { file, members: files, env: {}, timeoutMs };
}

/** Returns the plans of a group's files, each for a process of its own. */
export function divideGroup({ members = [], env }: TestPlan, timeoutMs: number): TestPlan[] {
  return members.map((file) => ({ file, env, timeoutMs }));
}
