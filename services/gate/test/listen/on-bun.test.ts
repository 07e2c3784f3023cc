// The black-box suites of the worker on Bun: the same tests, the other runtime.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { test } from "node:test";

const BUN = new URL("../../../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url)
  .pathname;
const SUITES = [
  "routing",
  "retries",
  "reload",
  "identity",
  "revocations",
  "feeds",
  "limits",
  "resilience",
];
const isHere = existsSync(BUN) && process.versions["bun"] === undefined;
/** Short runs start one gateway on Bun, in `process/traffic.test.ts`. */
const isLong = process.env["PLATFORM_TEST_RUNTIMES"] === "all";

function findSkip(): string | false {
  if (!isLong) return "only in the long form";
  return isHere ? false : "@oven/bun-linux-x64 is not installed here";
}

test("every suite of a worker passes on Bun", { skip: findSkip(), timeout: 270_000 }, async () => {
  const files = SUITES.map((name) => new URL(`${name}.test.ts`, import.meta.url).pathname);
  const bun = spawn(BUN, ["test", "--timeout", "60000", ...files], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [bun.stdout, bun.stderr]) {
    stream.on("data", (chunk) => (output += String(chunk)));
  }
  const [code] = (await once(bun, "close")) as [number | null];
  assert.equal(code, 0, output);
  assert.match(output, /\n 0 fail\n/);
});
