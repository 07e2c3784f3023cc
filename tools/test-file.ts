// Runs one test file in a process group of its own, ends it at its time limit, and finds what it left running.
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findMarkedProcesses, killProcess, type ProcessEntry } from "./process-table.ts";
import type { TestPlan } from "./test-plan.ts";

/** Numbers of tests by outcome. */
export interface TestCounts {
  passed: number;
  failed: number;
  skipped: number;
}

/** The outcome of one file. */
export interface FileResult {
  file: string;
  ms: number;
  counts: TestCounts;
  /** Why it failed; undefined if it passed. */
  failure: string | undefined;
  /** The end of its output. */
  output: string;
  /** Skipped tests with their reasons. */
  skips: string[];
}

/** A line that `test-reporter.ts` writes. */
export interface ReportLine {
  counts?: TestCounts;
  skip?: string;
}

/** The time limit of one test as a part of its file's, so that a test that hangs is named. */
const TEST_TIMEOUT_PART = 0.6;
const OUTPUT_CHARACTERS_MAX = 100_000;
/** Names the test file that a process belongs to; every process that the file starts inherits it. */
const MARK_VARIABLE = "PLATFORM_TEST_MARK";
/** A process that a test has told to stop may still be on its way out when the file ends. */
const LEFTOVER_GRACE_MS = 5000;

const running = new Map<string, ChildProcess>();

/** Runs a test file and waits for its end. */
export async function runTestFile(plan: TestPlan): Promise<FileResult> {
  const mark = randomUUID();
  const startedMs = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "pt-"));
  // Programs that a test starts as another user (PostgreSQL) find their own folders below.
  chmodSync(folder, 0o711);
  const reportPath = join(folder, "report.jsonl");
  const child = startTestFile(plan, mark, folder, reportPath);
  running.set(mark, child);
  const output = collectOutput(child);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    endTestFile(mark, child);
  }, plan.timeoutMs);
  const exit = await waitForExit(child);
  clearTimeout(timer);
  const leftovers = await endLeftovers(mark, child);
  running.delete(mark);
  const report = readReport(reportPath);
  rmSync(folder, { recursive: true, force: true });
  return {
    file: plan.file,
    ms: performance.now() - startedMs,
    counts: report.counts ?? { passed: 0, failed: 0, skipped: 0 },
    failure: timedOut
      ? `did not end within ${plan.timeoutMs / 1000} s and was killed`
      : explainFailure(exit, report.counts, leftovers),
    output: output(),
    skips: report.skips,
  };
}

/** Ends the files that are running, and everything they have started. */
export function endTestFiles(): void {
  for (const [mark, child] of running) endTestFile(mark, child);
}

function startTestFile(
  { file, env, timeoutMs }: TestPlan,
  mark: string,
  folder: string,
  reportPath: string,
): ChildProcess {
  const options = [
    `--test-timeout=${Math.ceil(timeoutMs * TEST_TIMEOUT_PART)}`,
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    `--test-reporter=${new URL("test-reporter.ts", import.meta.url).href}`,
    `--test-reporter-destination=${reportPath}`,
  ];
  return spawn(process.execPath, [...options, file], {
    // A group of its own: a ctrl-c reaches the runner alone, which then ends every file with all it has started.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TMPDIR: folder, ...env, [MARK_VARIABLE]: mark },
  });
}

function endTestFile(mark: string, child: ChildProcess): void {
  // Found before the file's own process ends, so that the parents are still known.
  const started = findStartedProcesses(mark, child);
  child.kill("SIGKILL");
  for (const { pid } of started) killProcess(pid);
}

function findStartedProcesses(mark: string, child: ChildProcess): ProcessEntry[] {
  return findMarkedProcesses({ name: MARK_VARIABLE, value: mark, session: child.pid });
}

/** Collects both outputs; returns a function that returns their end. */
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

/** The exit code, or the signal that ended it. A leftover process may keep the outputs open, so "close" is not awaited. */
async function waitForExit(child: ChildProcess): Promise<number | string> {
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  return code ?? signal ?? "no exit code";
}

/** Waits a little for processes that are already ending, kills the others, and returns those. */
async function endLeftovers(mark: string, child: ChildProcess): Promise<ProcessEntry[]> {
  const deadlineMs = performance.now() + LEFTOVER_GRACE_MS;
  let left = findStartedProcesses(mark, child);
  while (left.length > 0 && performance.now() < deadlineMs) {
    await sleep(50);
    left = findStartedProcesses(mark, child);
  }
  for (const { pid } of left) killProcess(pid);
  return left;
}

function readReport(path: string): { counts: TestCounts | undefined; skips: string[] } {
  const lines = existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as ReportLine)
    : [];
  return {
    counts: lines.findLast(({ counts }) => counts !== undefined)?.counts,
    skips: lines.flatMap(({ skip }) => skip ?? []),
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
