// Which failed test files of a whole run are run once more, alone, and what their second run says.
import type { FileResult } from "./test-file.ts";

/** More failures than this are no accident of a busy machine. */
const RERUN_FILES_MAX = 3;
/** A run of so few files is somebody at work, who wants to see the failure. */
const WHOLE_RUN_FILES_MIN = 100;
/** Suites about lost or damaged data: that a second run loses nothing says nothing about the first. */
export const DATA_SUITES =
  /crash|damage|(?:disk|file)-faults|fault-matrix|kill|recover|durab|replication\/faults|conformance/;

/** Returns the failed files whose second run counts; empty if the failures stand as they are. */
export function chooseReruns(results: readonly FileResult[]): FileResult[] {
  const failed = results.filter(({ failure }) => failure !== undefined);
  const isWhole = results.length >= WHOLE_RUN_FILES_MIN;
  if (!isWhole || failed.length > RERUN_FILES_MAX) return [];
  return failed.filter(({ file }) => !DATA_SUITES.test(file));
}

/**
 * The result that counts after a second run: the first failure stands if a test failed in both runs, or if a run was cut off.
 * In a long file another test may meet the next moment of a busy machine: each of its tests has passed once.
 */
export function judgeRerun(first: FileResult, second: FileResult): FileResult {
  if (second.failure === undefined || !isOfTests(first) || !isOfTests(second)) return second;
  const isRepeated = second.failedTests.some((name) => first.failedTests.includes(name));
  if (isRepeated) return second;
  const { passed, failed, skipped } = second.counts;
  return { ...second, failure: undefined, counts: { passed: passed + failed, failed: 0, skipped } };
}

/** True if a file failed by its tests alone: all have run, and all that failed are named. */
function isOfTests({ counts, failedTests }: FileResult): boolean {
  return counts.failed > 0 && counts.failed === failedTests.length;
}
