// `npm test [-- FILTER]`: every test file of the house, run by node's own runner.
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { explainStaleInstallation } from "./installation.ts";

/** A file that never ends must not hold up a machine that nobody watches. */
const RUN_TIMEOUT_MS = 20 * 60_000;

const filters = process.argv.slice(2);
const files = globSync([
  "packages/*/test/**/*.test.ts",
  "services/*/test/**/*.test.ts",
  "tests/**/*.test.ts",
  "bench/test/**/*.test.ts",
  "tools/*.test.ts",
])
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  .sort();
if (files.length === 0) {
  console.error(`no test file matches: ${filters.join(" ")}`);
  process.exit(1);
}
const stale = explainStaleInstallation();
if (stale !== undefined) {
  console.error(stale);
  process.exit(1);
}
// Many tests wait for processes and sockets: as many files at once as there are cores, at least two. The summary of the
// `spec` reporter is the end of the output, wherever that goes.
const concurrency = Math.max(2, availableParallelism());
const options = [
  "--test",
  "--test-timeout=120000",
  `--test-concurrency=${concurrency}`,
  "--test-reporter=spec",
];
const run = spawnSync(process.execPath, [...options, ...files], {
  stdio: "inherit",
  timeout: RUN_TIMEOUT_MS,
});
if (run.status === null)
  console.error(`the tests were ended after ${RUN_TIMEOUT_MS / 60_000} minutes`);
process.exitCode = run.status ?? 1;
