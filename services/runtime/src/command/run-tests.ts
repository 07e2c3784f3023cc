// `platform test`: runs the tests of a project with `node:test`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";

/** Runs the named test files, or all `*.test.ts` below the working directory; resolves to the exit code. */
export async function runTest(files: readonly string[]): Promise<number> {
  if (process.versions["bun"] !== undefined) {
    throw new Error("Tests are run by Node only: unset PLATFORM_RUNTIME.");
  }
  const named = files.length > 0 ? files : findTests();
  if (named.length === 0) throw new Error("there are no tests: create main.test.ts");
  const hooks = new URL("../language/register.ts", import.meta.url).href;
  // A service that its test does not stop would keep the process forever.
  const args = ["--import", hooks, "--test", "--test-force-exit", ...named];
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 1;
}

function findTests(): string[] {
  return globSync("**/*.test.{ts,js}", { exclude: ["**/node_modules/**"] }).sort();
}
