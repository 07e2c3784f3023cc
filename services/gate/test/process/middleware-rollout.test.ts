// A module that changes under load of wrk: no error, and each answer is from one version. PLATFORM_GUEST_CHANGES changes; from
// a thousand on, memory must not have grown.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { assemble, writeGuest } from "@platform/testing/guests";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

const CHANGES = Number(process.env["PLATFORM_GUEST_CHANGES"] ?? 100);
const MEMORY_CHANGES_MIN = 1_000;
const MEMORY_GROWTH_MAX_MIB = 24;
const VERSIONS = 20;

/** The version is set by both functions: an answer of two versions has different ones. */
const SCRIPT = `
mixed, bad = 0, 0
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() mixed, bad = 0, 0 end
function response(status, headers)
  if status ~= 200 then bad = bad + 1 end
  if headers["x-first"] == nil or headers["x-first"] ~= headers["x-last"] then mixed = mixed + 1 end
end
function done(summary)
  local m, b = 0, 0
  for _, thread in ipairs(threads) do m = m + thread:get("mixed"); b = b + thread:get("bad") end
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d\\n", summary.requests, m, b,
    e.connect + e.read + e.write + e.timeout + e.status))
end
`;

const version = (number: number): Buffer<ArrayBuffer> => {
  const text = `v${String(number).padStart(4, "0")}`;
  const set = (at: number, length: number) =>
    `(call $set_header_value (i32.const 1) (i32.const ${at}) (i32.const ${length}) (i32.const 32) (i32.const 5))`;
  return Buffer.from(
    assemble(
      writeGuest({
        data: { 0: "x-first", 16: "x-last", 32: text },
        request: `${set(0, 7)} (i64.const 1)`,
        response: set(16, 6),
      }),
    ),
  );
};

const isThere = spawnSync("wrk", ["--version"]).error === undefined;
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
const skip = isThere || isRequired ? false : "wrk is not installed";

for (const runtime of runtimesOfRules) {
  test(`${runtime.name}: ${CHANGES} changes of a module under load`, { skip }, async (context) => {
    const target = await serve(
      context,
      createServer((_request, response) => response.end("upstream")),
    );
    const route = { prefix: "/", target, middleware: "guest", response_middleware: "guest" };
    const config = { workers: 2, routes: [route] };
    const gate = await startGate(context, { runtime, config });
    const register = async (number: number): Promise<void> => {
      const answer = await fetch(`${gate.url}/api/v1/admin/middleware/guest`, {
        method: "POST",
        body: versions[number % VERSIONS]!,
      });
      assert.equal(answer.status, 200, await answer.text());
    };
    const versions = Array.from({ length: VERSIONS }, (_, number) => version(number));
    await register(0);
    const script = join(makeFolder(context), "rollout.lua");
    writeFileSync(script, SCRIPT);
    const args = ["-t", "1", "-c", "8", "-d", "3600s", "-s", script, `${gate.url}/`];
    const load = spawn("wrk", args, { stdio: ["ignore", "pipe", "inherit"] });
    context.after(() => load.exitCode ?? load.kill("SIGKILL"));
    let output = "";
    load.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    const ended = new Promise((resolve) => load.on("close", resolve));
    const readMib = (): number =>
      Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${gate.pid}/status`, "utf8"))?.[1]) / 1024;
    let beforeMib = 0;
    for (let number = 1; number <= CHANGES; number++) {
      await register(number);
      if (number === Math.floor(CHANGES / 2)) beforeMib = readMib();
    }
    const afterMib = readMib();
    // wrk reports what it has counted when it is interrupted.
    load.kill("SIGINT");
    await ended;
    const [, requests, mixed, bad, errors] =
      /RESULT (\d+) (\d+) (\d+) (\d+)/.exec(output)?.map(Number) ?? [];
    context.diagnostic(
      `${requests} requests, ${beforeMib} MiB after half, ${afterMib} MiB at the end`,
    );
    assert.ok(Number(requests) > CHANGES, output);
    assert.deepEqual([mixed, bad, errors], [0, 0, 0], output);
    if (CHANGES < MEMORY_CHANGES_MIN) return;
    assert.ok(afterMib - beforeMib < MEMORY_GROWTH_MAX_MIB, `${beforeMib} to ${afterMib} MiB`);
  });
}
