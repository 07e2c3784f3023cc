// `npm run check`: all static checks in one command.
import { spawnSync } from "node:child_process";
import { explainStaleInstallation } from "./installation.ts";

const STEPS: { name: string; command: string; args: string[] }[] = [
  { name: "types", command: "tsc", args: ["--noEmit"] },
  {
    name: "types of pages",
    command: "tsc",
    args: ["--noEmit", "-p", "services/tunnel/src/inspect/assets"],
  },
  { name: "types of the console", command: "tsc", args: ["--noEmit", "-p", "apps/console"] },
  {
    name: "types of messaging's client",
    command: "tsc",
    args: ["--noEmit", "-p", "packages/pulse-client"],
  },
  { name: "lint", command: "oxlint", args: ["--type-aware", "--deny-warnings"] },
  { name: "format", command: "oxfmt", args: ["--check", "."] },
  { name: "dead code", command: "knip", args: ["--no-progress", "--no-config-hints"] },
  { name: "house rules", command: "node", args: ["--test", "tools/house-rules.test.ts"] },
];

const stale = explainStaleInstallation();
if (stale !== undefined) {
  console.error(stale);
  process.exit(1);
}
const failed: string[] = [];
for (const step of STEPS) {
  const started = performance.now();
  const run = spawnSync(step.command, step.args, { stdio: ["ignore", "pipe", "pipe"] });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${run.status === 0 ? "ok  " : "FAIL"} ${step.name} (${seconds} s)`);
  if (run.status !== 0) {
    failed.push(step.name);
    console.log(run.stdout.toString(), run.stderr.toString(), run.error?.message ?? "");
  }
}
if (failed.length > 0) {
  console.log(`\ncheck failed: ${failed.join(", ")}`);
  process.exitCode = 1;
}
