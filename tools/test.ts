// `npm test [-- FILTER…]`: every test file, each in a process of its own with a time limit of its own.
// `npm run test:long [-- FILTER…]`: the long forms of kill rounds, crash states and soaks.
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { findBuilt } from "../bin/built.js";
import { IdleCores, isClockOurs } from "./idle-cores.ts";
import { explainStaleInstallation } from "./installation.ts";
import { chooseReruns, judgeRerun } from "./rerun.ts";
import { endTestFiles, runTestFile, type FileResult, type TestCounts } from "./test-file.ts";
import { preparePackage } from "../services/runtime/src/package/packed.ts";
import {
  addCosts,
  readCosts,
  shareCosts,
  sumCosts,
  writeCosts,
  type TestCost,
} from "./test-costs.ts";
import { divideGroup, groupPlans } from "./test-groups.ts";
import { longForms, shortForms, type TestPlan } from "./test-plan.ts";
import { TestQueue } from "./test-queue.ts";

/** More than the longest file needs on a machine that is four times slower than an idle one with two cores. */
const FILE_TIMEOUT_S = 900;
/** More than a slow machine needs, and less than CI allows: without a failed test, a run must not fail. */
const SHORT_MINUTES = 75;
const LONG_MINUTES = 600;

const HELP = `usage: npm test [-- OPTIONS] [FILTER...]
       npm run test:long [-- OPTIONS] [FILTER...]

Runs the test files whose path contains one of the filters, or all of them. Services that tests start as processes run in
their built form in a run of all files, and from their sources otherwise; PLATFORM_FORM=built or source chooses. The built
form is written if it is out of date.

  --long            the long forms of kill rounds, crash states and soaks only
  --jobs N          files to run at the same time (default: as many as keep the cores busy)
  --record          write the costs of the files that passed to tools/test-costs.json, beside those of the others
  --timeout SECONDS time limit for each file (default: ${FILE_TIMEOUT_S}; each long form has its own)
  --minutes N       time limit for the whole run; files that did not start are named (default: ${SHORT_MINUTES}, long: ${LONG_MINUTES})
  --help            show this help
`;

const COSTLIEST_SHOWN = 10;
/** Time between two looks at whether the cores have room for another file. */
const LOOK_MS = 500;

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        long: { type: "boolean", default: false },
        jobs: { type: "string" },
        timeout: { type: "string" },
        minutes: { type: "string" },
        record: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    return fail(`${(error as Error).message}\n\n${HELP}`);
  }
}

function readNumber(name: string, text: string | undefined, byDefault: number): number {
  const value = text === undefined ? byDefault : Number(text);
  if (!(value > 0)) fail(`--${name} must be a number above 0, not "${text}"`);
  return value;
}

function planShortForms(timeoutMs: number): TestPlan[] {
  return globSync(shortForms)
    .sort()
    .map((file) => ({ file, env: {}, timeoutMs }));
}

const { values, positionals: filters } = readArguments();
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const stale = explainStaleInstallation();
if (stale !== undefined) fail(stale);
// Long forms have no recorded costs.
const jobsDefault = values.long ? String(availableParallelism()) : undefined;
const jobsText = values.jobs ?? jobsDefault;
const jobs = jobsText === undefined ? undefined : Math.floor(readNumber("jobs", jobsText, 1));
const timeoutMs = readNumber("timeout", values.timeout, FILE_TIMEOUT_S) * 1000;
const runMs =
  readNumber("minutes", values.minutes, values.long ? LONG_MINUTES : SHORT_MINUTES) * 60_000;
const plans = (values.long ? longForms : planShortForms(timeoutMs)).filter(
  ({ file }) => filters.length === 0 || filters.some((filter) => file.includes(filter)),
);
if (plans.length === 0) fail(`no test file matches: ${filters.join(" ")}`);

if (plans.some(({ file }) => /console|browser/.test(file))) buildConsole();
process.env["PLATFORM_FORM"] = chooseForm();
// Once for all tests that create projects.
if (filters.length === 0 && !values.long) await preparePackage((line) => console.log(line));
const startedMs = performance.now();
const results: FileResult[] = [];
const costs = readCosts();
/** Groups with a failure: their files run again, each in a process of its own. */
const failedGroups: FileResult[] = [];
const runs = values.long ? plans : groupPlans(plans, costs);
const queue = new TestQueue(runs, {
  costs: addGroups(runs),
  cores: availableParallelism(),
  ...(isClockOurs() ? { idle: new IdleCores() } : {}),
  ...(jobs === undefined ? {} : { jobs }),
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    endTestFiles();
    process.exit(130);
  });
}

/** Builds the console's page if its sources have changed: tests serve it. */
function buildConsole(): void {
  const { status } = spawnSync(process.execPath, ["apps/console/build.ts", "--if-stale"], {
    stdio: "inherit",
  });
  if (status !== 0) fail("the console's page could not be built: npm run build:console");
}

/** The form in which tests start services, the same for all files: by default that of users in a run of all files. */
function chooseForm(): "built" | "source" {
  const byDefault = filters.length === 0 ? "built" : "source";
  if ((process.env["PLATFORM_FORM"] || byDefault) !== "built") return "source";
  process.env["PLATFORM_FORM"] = "";
  if (findBuilt("@platform/runtime/main") !== undefined) return "built";
  const { status } = spawnSync(process.execPath, ["services/runtime/src/build/build-services.ts"], {
    stdio: "inherit",
  });
  if (status !== 0) fail("the services could not be built: npm run build:services");
  return "built";
}

/** Runs all files; those that have not started when the time is up keep waiting. */
async function runAll(): Promise<void> {
  const running = new Set<Promise<void>>();
  for (;;) {
    const isTimeUp = performance.now() - startedMs >= runMs;
    const plan = isTimeUp ? undefined : queue.take();
    if (plan !== undefined) {
      const run = runOne(plan).finally(() => running.delete(run));
      running.add(run);
    } else if (running.size === 0) return;
    else await Promise.race([...running, sleep(LOOK_MS, undefined, { ref: false })]);
  }
}

async function runOne(plan: TestPlan): Promise<void> {
  const result = await runTestFile(plan);
  queue.release(plan);
  printResult(result);
  if (plan.members === undefined || result.failure === undefined) {
    results.push(result);
    return;
  }
  console.log(`again, one by one: ${plan.file}\n`);
  failedGroups.push(result);
  queue.add(divideGroup(plan, timeoutMs));
}

/** The recorded costs, with those of groups. */
function addGroups(all: readonly TestPlan[]): Map<string, TestCost> {
  const sums = all.flatMap(({ file, members }) => {
    const known = members?.map((member) => costs.get(member)!);
    return known === undefined ? [] : [[file, addCosts(known)] as const];
  });
  return new Map([...costs, ...sums]);
}

/** Numbers of files in results or plans. */
function countFiles(all: readonly { members?: readonly string[] }[]): number {
  return all.reduce((sum, { members }) => sum + (members?.length ?? 1), 0);
}

function printResult({ file, cost, counts, failure, output, skips }: FileResult): void {
  const outcome = failure === undefined ? "ok  " : "FAIL";
  console.log(`${outcome} ${formatCost(cost)}  ${file} (${counts.passed} passed)`);
  for (const skip of skips) console.log(`       skipped: ${skip}`);
  if (failure === undefined && plans.length > 1) return;
  console.log(output.trimEnd());
  if (failure !== undefined) console.log(`FAIL ${file}: ${failure}\n`);
}

/**
 * Runs the chosen failed files once more, alone: beside others on a busy machine, a test may have waited too short a
 * time. Files that pass now, or of which each test has passed once, are returned, and named at the end.
 */
async function runAgain(): Promise<FileResult[]> {
  const unstable: FileResult[] = [];
  for (const first of chooseReruns(results)) {
    const plan = plans.find(({ file }) => file === first.file)!;
    console.log(`\nagain, alone: ${plan.file}`);
    const second = await runTestFile(plan);
    printResult(second);
    const judged = judgeRerun(first, second);
    if (judged.failure !== undefined) continue;
    unstable.push(first);
    results[results.indexOf(first)] = judged;
  }
  return unstable;
}

/** Records the costs of the files that passed; those of others stay, unless the file is gone. */
function record(): void {
  if (values.long) return console.log("costs not recorded: those of long forms are not");
  const own = results
    .filter(({ failure }) => failure === undefined)
    .flatMap(({ file, members, cost }) =>
      members === undefined ? [[file, cost] as const] : shareCosts(cost, members, costs),
    );
  const files = new Set(globSync(shortForms));
  writeCosts(new Map([...costs, ...own].filter(([file]) => files.has(file))));
}

function formatCost({ wallS, cpuS }: TestCost): string {
  return `${(cpuS ?? 0).toFixed(1).padStart(7)} s CPU ${wallS.toFixed(1).padStart(7)} s`;
}

/** Prints the files that cost most, and the sums beside those of the recorded run. */
function printCosts(): void {
  console.log("\ncostliest files:");
  for (const { cost, file } of results
    .toSorted((a, b) => (b.cost.cpuS ?? 0) - (a.cost.cpuS ?? 0))
    .slice(0, COSTLIEST_SHOWN)) {
    console.log(`${formatCost(cost)}  ${file}`);
  }
  console.log(`${formatCost(sumCosts(results.map(({ cost }) => cost)))}  all of this run`);
  const known = results.flatMap(({ file, members = [file] }) =>
    members.flatMap((member) => costs.get(member) ?? []),
  );
  console.log(`${formatCost(sumCosts(known))}  the same files as recorded`);
}

function addCounts(): TestCounts {
  const sum: TestCounts = { passed: 0, failed: 0, skipped: 0 };
  for (const { counts } of results) {
    sum.passed += counts.passed;
    sum.failed += counts.failed;
    sum.skipped += counts.skipped;
  }
  return sum;
}

await runAll();
const unstable = values.long ? [] : await runAgain();

const total = addCounts();
const failures = results.filter(({ failure }) => failure !== undefined);
if (results.length > COSTLIEST_SHOWN) printCosts();
if (failures.length > 0) console.log("\nfailed files:");
for (const { file, failure } of failures) console.log(`  ${file}: ${failure}`);
if (unstable.length > 0) console.log("\nunstable files, whose failed tests passed when run again:");
for (const { file, failure } of unstable) console.log(`  ${file}: ${failure}`);
if (failedGroups.length > 0) console.log("\ngroups with a failure, whose files ran one by one:");
for (const { file, failure } of failedGroups) console.log(`  ${file}: ${failure}`);
const left = queue.waiting.flatMap(({ file, members = [file] }) => members);
if (left.length > 0) {
  console.log(`\nnot run, the time limit of ${runMs / 60_000} minutes was reached:`);
  for (const file of left) console.log(`  ${file}`);
}
const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1);
console.log(`\n${countFiles(results)} of ${plans.length} files in ${minutes} minutes`);
// A file that was cut off or could not load has no failed test of its own, but counts as one.
const failed = total.failed + failures.filter(({ counts }) => counts.failed === 0).length;
console.log(`${total.passed} passed, ${failed + left.length} failed, ${total.skipped} skipped`);
if (values.record) record();
process.exitCode = failures.length > 0 || left.length > 0 ? 1 : 0;
