// Runs a test file in its own process group, enforces its time limit, and finds processes that it leaves running.
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { CpuAccount } from "./cpu-account.ts";
import { findMarkedProcesses, isRunning, killProcess, type ProcessEntry } from "./process-table.ts";
import { parseTimes, type TestCost } from "./test-costs.ts";
import { chooseTestRoot } from "./test-folder.ts";
import type { TestPlan } from "./test-plan.ts";

/** Numbers of tests by outcome. */
export interface TestCounts {
  passed: number;
  failed: number;
  skipped: number;
}

/** The outcome of one file, or of a group. */
export interface FileResult {
  file: string;
  /** The files of a group. */
  members?: readonly string[];
  ms: number;
  cost: TestCost;
  counts: TestCounts;
  /** Reason of the failure; undefined if it passed. */
  failure: string | undefined;
  /** Names of the tests that failed. */
  failedTests: readonly string[];
  /** The end of its output. */
  output: string;
  /** Skipped tests with their reasons. */
  skips: string[];
}

/** A line of `test-reporter.ts`. */
export interface ReportLine {
  counts?: TestCounts;
  skip?: string;
  /** The name of a failed test. */
  test?: string;
  /** A failed test and its error. */
  failure?: string;
}

/** Time limit of a single test as a fraction of its file's, so that a hanging test is named. */
const TEST_TIMEOUT_PART = 0.6;
const OUTPUT_CHARACTERS_MAX = 100_000;
/** Identifies the test file of a process; inherited by all processes that the file starts. */
const MARK_VARIABLE = "PLATFORM_TEST_MARK";
/** Compiled modules, which most files share; the programs in bin/ use the same folder. */
const COMPILE_CACHE = fileURLToPath(new URL("../node_modules/.cache/platform", import.meta.url));
/** Processes stopped by a test may still be exiting when the file ends: on a busy machine a platform needs seconds. */
const LEFTOVER_GRACE_MS = 25_000;

/**
 * Runs its arguments from the second on in the account whose door is the first, if it is not empty; writes the CPU time of all
 * processes that were waited for into the file `$0`.
 */
const MEASURE = '[ -z "$1" ] || echo 0 > "$1"; shift; "$@"; code=$?; times > "$0"; exit $code';

const running = new Map<string, ChildProcess>();

/** Runs a test file. Processes that it leaves running are given `graceMs` to end. */
export async function runTestFile(
  plan: TestPlan,
  graceMs = LEFTOVER_GRACE_MS,
): Promise<FileResult> {
  const mark = randomUUID();
  const startedMs = performance.now();
  const folder = mkdtempSync(join(chooseTestRoot(plan.members ?? [plan.file]), "pt-"));
  // Programs that a test starts as another user (PostgreSQL) need access to their folders below.
  chmodSync(folder, 0o711);
  const reportPath = join(folder, "report.jsonl");
  const timesPath = join(folder, "times");
  const account = CpuAccount.open(`platform-test-${mark}`);
  const places = { folder, reportPath, timesPath, door: account?.door ?? "" };
  const child = startTestFile(plan, mark, places);
  running.set(mark, child);
  const output = collectOutput(child);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    endTestFile(mark, child);
  }, plan.timeoutMs);
  const exit = await waitForExit(child);
  clearTimeout(timer);
  const leftovers = await endLeftovers(mark, child, graceMs);
  running.delete(mark);
  const report = readReport(reportPath);
  const waitedForS = existsSync(timesPath) ? parseTimes(readFileSync(timesPath, "utf8")) : 0;
  const cpuS = account?.read() ?? waitedForS;
  await account?.close();
  const ms = performance.now() - startedMs;
  rmSync(folder, { recursive: true, force: true });
  return {
    file: plan.file,
    ...(plan.members === undefined ? {} : { members: plan.members }),
    ms,
    cost: { wallS: ms / 1_000, cpuS },
    counts: report.counts ?? { passed: 0, failed: 0, skipped: 0 },
    failure: timedOut
      ? `did not end within ${plan.timeoutMs / 1000} s and was killed`
      : explainFailure(exit, report.counts, leftovers),
    failedTests: report.failedTests,
    // Node prints failures at the end of the file only.
    output: timedOut ? [output(), ...report.failures].join("\n") : output(),
    skips: report.skips,
  };
}

/** Kills the running files and all processes that they have started. */
export function endTestFiles(): void {
  for (const [mark, child] of running) endTestFile(mark, child);
}

/** The module that runs a plan: a group's imports all of its files before the first test starts. */
function writeEntry({ file, members }: TestPlan, folder: string): string {
  if (members === undefined) return file;
  const entry = join(folder, "group.mjs");
  const imports = members.map((member) => `import "${pathToFileURL(resolve(member)).href}";\n`);
  writeFileSync(entry, imports.join(""));
  return entry;
}

function startTestFile(
  plan: TestPlan,
  mark: string,
  {
    folder,
    reportPath,
    timesPath,
    door,
  }: { folder: string; reportPath: string; timesPath: string; door: string },
): ChildProcess {
  const options = [
    // In this order: the first one renews the exports of all modules, and the second one changes some for the runner alone.
    ...["test-threads.ts", "test-promises.ts"].map(
      (name) => `--import=${new URL(name, import.meta.url).href}`,
    ),
    `--test-timeout=${Math.ceil(plan.timeoutMs * TEST_TIMEOUT_PART)}`,
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    `--test-reporter=${new URL("test-reporter.ts", import.meta.url).href}`,
    `--test-reporter-destination=${reportPath}`,
  ];
  const program = [process.execPath, ...options, writeEntry(plan, folder)];
  return spawn("sh", ["-c", MEASURE, timesPath, door, ...program], {
    // A separate group: ctrl-c reaches only the runner, which then kills all files and their processes.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      TMPDIR: folder,
      // The list of this user's running platforms.
      XDG_STATE_HOME: join(folder, "state"),
      // Beside each version of a project on a platform; the tests of the check itself start their processes without it.
      PLATFORM_SERVICE_TYPE_CHECK: "off",
      ...plan.env,
      [MARK_VARIABLE]: mark,
    },
  });
}

function endTestFile(mark: string, child: ChildProcess): void {
  // Collected before the file's process ends, while the parents are known.
  const started = findStartedProcesses(mark, child);
  child.kill("SIGKILL");
  for (const { pid } of started) killProcess(pid);
}

function findStartedProcesses(mark: string, child: ChildProcess): ProcessEntry[] {
  return findMarkedProcesses({ name: MARK_VARIABLE, value: mark, session: child.pid });
}

/** Collects both outputs; the returned function returns their end. */
function collectOutput(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding("utf8");
    stream.on("data", (chunk: string) => {
      text = (text + chunk).slice(-OUTPUT_CHARACTERS_MAX);
    });
  }
  return () => text;
}

/**
 * Returns the exit code, or the signal. Does not wait for "close", because a leftover process may keep the outputs
 * open.
 */
async function waitForExit(child: ChildProcess): Promise<number | string> {
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  return code ?? signal ?? "no exit code";
}

/** Waits briefly for processes that are exiting, kills the others and waits for their end, and returns those. */
async function endLeftovers(
  mark: string,
  child: ChildProcess,
  graceMs: number,
): Promise<ProcessEntry[]> {
  const left = await awaitEnd(graceMs, () => findStartedProcesses(mark, child));
  for (const { pid } of left) killProcess(pid);
  // A killed process ends when it is next scheduled, not when kill returns.
  await awaitEnd(LEFTOVER_GRACE_MS, () => left.filter(({ pid }) => isRunning(pid)));
  return left;
}

/** Waits until no processes are listed, at most `graceMs`; returns those still listed. */
async function awaitEnd(graceMs: number, list: () => ProcessEntry[]): Promise<ProcessEntry[]> {
  const deadlineMs = performance.now() + graceMs;
  for (let left = list(); ; left = list()) {
    if (left.length === 0 || performance.now() >= deadlineMs) return left;
    await sleep(50);
  }
}

function readReport(path: string): {
  counts: TestCounts | undefined;
  skips: string[];
  failures: string[];
  failedTests: string[];
} {
  const lines = existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as ReportLine)
    : [];
  return {
    counts: lines.findLast(({ counts }) => counts !== undefined)?.counts,
    skips: lines.flatMap(({ skip }) => skip ?? []),
    failures: lines.flatMap(({ failure }) => failure ?? []),
    failedTests: lines.flatMap(({ test }) => test ?? []),
  };
}

function explainFailure(
  exit: number | string,
  counts: TestCounts | undefined,
  leftovers: readonly ProcessEntry[],
): string | undefined {
  if (counts !== undefined && counts.failed > 0) return `${counts.failed} failed`;
  if (exit !== 0) return `ended with ${typeof exit === "number" ? `exit code ${exit}` : exit}`;
  if (counts === undefined) return "ended before its tests were done";
  if (leftovers.length === 0) return undefined;
  const names = leftovers.map(({ pid, command }) => `${pid} ${command}`).join("; ");
  return `left running (killed now): ${names}`;
}
