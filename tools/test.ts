// `npm test [-- FILTER…]`: every test file, each in a process of its own with a time limit of its own.
// `npm run test:long [-- FILTER…]`: the long forms of kill rounds, crash states and soaks.
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { IdleCores } from "./idle-cores.ts";
import { explainStaleInstallation } from "./installation.ts";
import { chooseReruns } from "./rerun.ts";
import { endTestFiles, runTestFile, type FileResult, type TestCounts } from "./test-file.ts";
import { longForms, shortForms, slowFirst, type TestPlan } from "./test-plan.ts";

/** More than the longest file needs on a machine that is four times slower than an idle one with two cores. */
const FILE_TIMEOUT_S = 900;
/** More than a slow machine needs, and less than CI allows: without a failed test, a run must not fail. */
const SHORT_MINUTES = 75;
const LONG_MINUTES = 600;

const HELP = `usage: npm test [-- OPTIONS] [FILTER...]
       npm run test:long [-- OPTIONS] [FILTER...]

Runs the test files whose path contains one of the filters, or all of them.

  --long            the long forms of kill rounds, crash states and soaks only
  --jobs N          files to run at the same time (default: one more than cores, and further ones while cores are idle)
  --timeout SECONDS time limit for each file (default: ${FILE_TIMEOUT_S}; each long form has its own)
  --minutes N       time limit for the whole run; files that did not start are named (default: ${SHORT_MINUTES}, long: ${LONG_MINUTES})
  --help            show this help
`;

const SLOWEST_SHOWN = 8;
/** Files that run beside the others while cores are idle. */
const EXTRA_FILES_MAX = 2;
const IDLE_EVERY_MS = 1_000;
/** Idle cores from which on another file is started. */
const IDLE_CORES_MIN = 0.4;

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
  const files = globSync(shortForms);
  return slowFirst(files.sort()).map((file) => ({ file, env: {}, timeoutMs }));
}

const { values, positionals: filters } = readArguments();
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const stale = explainStaleInstallation();
if (stale !== undefined) fail(stale);
// Tests often wait for timers and processes, hence one file more than cores. With many more, files would exceed their time
// limits on a busy machine.
const jobs = Math.floor(readNumber("jobs", values.jobs, availableParallelism() + 1));
const timeoutMs = readNumber("timeout", values.timeout, FILE_TIMEOUT_S) * 1000;
const runMs =
  readNumber("minutes", values.minutes, values.long ? LONG_MINUTES : SHORT_MINUTES) * 60_000;
const plans = (values.long ? longForms : planShortForms(timeoutMs)).filter(
  ({ file }) => filters.length === 0 || filters.some((filter) => file.includes(filter)),
);
if (plans.length === 0) fail(`no test file matches: ${filters.join(" ")}`);

if (plans.some(({ file }) => /console|browser/.test(file))) buildConsole();
const startedMs = performance.now();
const results: FileResult[] = [];
const waiting = [...plans];
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

async function runLane(): Promise<void> {
  while (await runNext());
}

/** Runs the next file; false if there is none, or the time is up. */
async function runNext(): Promise<boolean> {
  const plan = performance.now() - startedMs < runMs ? waiting.shift() : undefined;
  if (plan === undefined) return false;
  const result = await runTestFile(plan);
  results.push(result);
  printResult(result);
  return true;
}

/** Runs further files while cores are idle. The returned function stops this and waits for them. */
function useIdleCores(): () => Promise<void> {
  const idle = new IdleCores();
  const extra = new Set<Promise<boolean>>();
  const timer = setInterval(() => {
    if (idle.read() < IDLE_CORES_MIN || extra.size >= EXTRA_FILES_MAX) return;
    const run = runNext().finally(() => extra.delete(run));
    extra.add(run);
  }, IDLE_EVERY_MS);
  return async () => {
    clearInterval(timer);
    await Promise.all(extra);
  };
}

function printResult({ file, ms, counts, failure, output, skips }: FileResult): void {
  const outcome = failure === undefined ? "ok  " : "FAIL";
  const seconds = (ms / 1000).toFixed(1).padStart(6);
  console.log(`${outcome} ${seconds} s  ${file} (${counts.passed} passed)`);
  for (const skip of skips) console.log(`       skipped: ${skip}`);
  if (failure === undefined && plans.length > 1) return;
  console.log(output.trimEnd());
  if (failure !== undefined) console.log(`FAIL ${file}: ${failure}\n`);
}

/**
 * Runs the chosen failed files once more, alone: beside others on a busy machine, a test may have waited too short a
 * time. The second result counts; files that pass now are returned, and named at the end.
 */
async function runAgain(): Promise<FileResult[]> {
  const unstable: FileResult[] = [];
  for (const first of chooseReruns(results)) {
    const plan = plans.find(({ file }) => file === first.file)!;
    console.log(`\nagain, alone: ${plan.file}`);
    const second = await runTestFile(plan);
    printResult(second);
    if (second.failure !== undefined) continue;
    unstable.push(first);
    results[results.indexOf(first)] = second;
  }
  return unstable;
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

const stop = values.jobs === undefined && !values.long ? useIdleCores() : () => Promise.resolve();
await Promise.all(Array.from({ length: Math.min(jobs, plans.length) }, runLane));
await stop();
const unstable = values.long ? [] : await runAgain();

const total = addCounts();
const failures = results.filter(({ failure }) => failure !== undefined);
if (results.length > SLOWEST_SHOWN) {
  const slowest = results.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST_SHOWN);
  console.log("\nslowest files:");
  for (const { ms, file } of slowest)
    console.log(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${file}`);
}
if (failures.length > 0) console.log("\nfailed files:");
for (const { file, failure } of failures) console.log(`  ${file}: ${failure}`);
if (unstable.length > 0) console.log("\nunstable files, which passed only when run again:");
for (const { file, failure } of unstable) console.log(`  ${file}: ${failure}`);
if (waiting.length > 0) {
  console.log(`\nnot run, the time limit of ${runMs / 60_000} minutes was reached:`);
  for (const { file } of waiting) console.log(`  ${file}`);
}
const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1);
console.log(`\n${results.length} of ${plans.length} files in ${minutes} minutes`);
// A file that was cut off or could not load has no failed test of its own, but counts as one.
const failed = total.failed + failures.filter(({ counts }) => counts.failed === 0).length;
console.log(`${total.passed} passed, ${failed + waiting.length} failed, ${total.skipped} skipped`);
process.exitCode = failures.length > 0 || waiting.length > 0 ? 1 : 0;
