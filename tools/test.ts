// `npm test [-- FILTER]`: every test file of the house, run by node's own runner.
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";

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
const run = spawnSync(process.execPath, ["--test", "--test-timeout=120000", ...files], {
  stdio: "inherit",
});
process.exitCode = run.status ?? 1;
