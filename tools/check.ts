// `npm run check`: all static checks in one command.
import { spawn } from "node:child_process";
import { explainStaleInstallation } from "./installation.ts";

const STEPS: { name: string; command: string; args: string[] }[] = [
  { name: "lint", command: "oxlint", args: ["--type-aware", "--deny-warnings"] },
  // Several checkers take twice the CPU time, which the other step needs.
  { name: "types", command: "tsc", args: ["--noEmit", "--checkers", "1"] },
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
// The longest first, and two at once: types are checked on one processor.
const waiting = STEPS.values();
await Promise.all([runSteps(), runSteps()]);
if (failed.length > 0) {
  console.log(`\ncheck failed: ${failed.join(", ")}`);
  process.exitCode = 1;
}

async function runSteps(): Promise<void> {
  for (const { name, command, args } of waiting) {
    const started = performance.now();
    const { isPassed, output } = await runStep(command, args);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(`${isPassed ? "ok  " : "FAIL"} ${name} (${seconds} s)`);
    if (isPassed) continue;
    failed.push(name);
    console.log(output);
  }
}

function runStep(
  command: string,
  args: readonly string[],
): Promise<{ isPassed: boolean; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    const pieces: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (piece: Buffer) => pieces.push(piece));
    const end = (isPassed: boolean, more = ""): void =>
      resolve({ isPassed, output: Buffer.concat(pieces).toString() + more });
    child.on("error", (error) => end(false, error.message));
    child.on("close", (code) => end(code === 0));
  });
}
