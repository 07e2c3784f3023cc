// Which failed test files of a whole run are run once more, alone.
import type { FileResult } from "./test-file.ts";

/** More failures than this are no accident of a busy machine. */
const RERUN_FILES_MAX = 3;
/** A run of so few files is somebody at work, who wants to see the failure. */
const WHOLE_RUN_FILES_MIN = 100;
/** Suites about lost or damaged data: that a second run loses nothing says nothing about the first. */
export const DATA_SUITES = /crash|damage|fault|kill|recover|durab|conformance/;

/** Returns the failed files whose second run counts; empty if the failures stand as they are. */
export function chooseReruns(results: readonly FileResult[]): FileResult[] {
  const failed = results.filter(({ failure }) => failure !== undefined);
  const isWhole = results.length >= WHOLE_RUN_FILES_MIN;
  if (!isWhole || failed.length > RERUN_FILES_MAX) return [];
  return failed.filter(({ file }) => !DATA_SUITES.test(file));
}
