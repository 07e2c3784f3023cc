// The commands `policy` and `replay --middleware`, on files.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { assemble, writeGuest } from "@platform/testing/guests";
import { compileHttpModule } from "@platform/wasm/http";
import { replayThroughGuest, formatGuestReport } from "../../src/replay/guest-replay.ts";
import { runtimes, spawnGate } from "../fixture/gate-process.ts";

const runtime = runtimes[0]!;

const exchange = (method: string, target: string, headers: [string, string][] = []) =>
  JSON.stringify({
    timestamp: "2026-11-29T00:00:00.000Z",
    latency_ms: 1,
    upstream_ms: 1,
    request: { method, target, headers: [["Host", "a"], ...headers], body: { bytes: 0, text: "" } },
    response: {
      status: 200,
      headers: [["Content-Type", "text/plain"]],
      body: { bytes: 2, text: "ok" },
    },
  });

function makeFiles(context: TestContext, policy: string) {
  const folder = mkdtempSync(join(tmpdir(), "policy-test-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const path = (name: string) => join(folder, name);
  writeFileSync(path("rules.policy"), policy);
  const lines = [
    exchange("GET", "/a"),
    "no line of a recording",
    exchange("GET", "/admin/x"),
    exchange("POST", "/admin/y"),
  ];
  writeFileSync(path("recording.jsonl"), `${lines.join("\n")}\n`);
  const run = (...args: string[]) => spawnGate(context, { runtime, args }).ended;
  return { path, run };
}

test("policies are compiled, checked, and tried on a recording", async (context) => {
  const { path, run } = makeFiles(context, "deny GET /admin/*\nallow * *\n");
  const [compiled, checked, tested] = await Promise.all([
    run("policy", "compile", path("rules.policy"), "-o", path("rules.wasm")),
    run("policy", "check", path("rules.policy")),
    run("policy", "test", path("rules.policy"), "--log", path("recording.jsonl")),
  ]);
  assert.deepEqual([compiled.code, compiled.stderr], [0, ""]);
  assert.match(compiled.stdout, /rules\.wasm: 2 rules, \d+ bytes\n$/);
  assert.equal(compileHttpModule(readFileSync(path("rules.wasm"))).readsBody, false);
  assert.equal(checked.stdout, `${path("rules.policy")}: ok, 2 rules\n`);
  assert.deepEqual(
    [tested.code, tested.stdout],
    [1, "line 3: GET /admin/x\n3 requests, 1 denied\n"],
  );
});

test("reports show no controls of a recording, and how much they leave out", async (context) => {
  const { path, run } = makeFiles(context, "deny GET /*\n");
  const lines = [exchange("GET", "/\u001b]0;x\u0007"), exchange("GET", "/b")];
  writeFileSync(path("recording.jsonl"), `${lines.join("\n")}\n`);
  writeFileSync(path("guest.wasm"), assemble(writeGuest({ request: "(i64.const 0)" })));
  const [tested, replayed] = await Promise.all([
    run("policy", "test", path("rules.policy"), "--log", path("recording.jsonl"), "--show", "1"),
    run(
      "replay",
      "--log",
      path("recording.jsonl"),
      "--middleware",
      path("guest.wasm"),
      "--show",
      "1",
    ),
  ]);
  for (const { stdout } of [tested, replayed]) {
    assert.match(stdout, /^line 1: GET \/\\u001b\]0;x\\u0007\n/);
    assert.match(stdout, /\n… and 1 more\n2 /);
  }
});

test("a policy with faults reports all of them, and writes nothing", async (context) => {
  const { path, run } = makeFiles(context, "deny GET a\nallow\n");
  const { code, stderr } = await run(
    "policy",
    "compile",
    path("rules.policy"),
    "-o",
    path("rules.wasm"),
  );
  assert.equal(code, 1);
  const file = path("rules.policy");
  assert.match(
    stderr,
    new RegExp(`^${file}:1:10: expected a path pattern .*\n${file}:2:6: expected a method`),
  );
  assert.equal(existsSync(path("rules.wasm")), false);
});

test("a recording passes middleware without a request, and its changes are shown", async (context) => {
  const { path, run } = makeFiles(context, "");
  const data = { 0: "x-guest", 16: "set" };
  const setField = `(call $set_header_value (i32.const 0) (i32.const 0) (i32.const 7) (i32.const 16) (i32.const 3))`;
  // POST traps; longer targets are answered; others get a field.
  const request = `(if (i32.eq (call $get_method (i32.const 64) (i32.const 8)) (i32.const 4)) (then unreachable))
    (if (i32.gt_u (call $get_uri (i32.const 64) (i32.const 0)) (i32.const 2)) (then (return (i64.const 0))))
    ${setField} (i64.const 1)`;
  writeFileSync(path("guest.wasm"), assemble(writeGuest({ data, request })));
  const result = await replayThroughGuest({
    log: path("recording.jsonl"),
    middleware: path("guest.wasm"),
    config: "",
    shownMax: 10,
    limit: undefined,
  });
  const { replayed, unchanged, changed, answered, failed, findings } = result;
  assert.deepEqual(
    { replayed, unchanged, changed, answered, failed },
    { replayed: 3, unchanged: 0, changed: 1, answered: 1, failed: 1 },
  );
  assert.deepEqual(
    findings.map(({ line, changes }) => [line, changes[0]!.slice(0, 24)]),
    [
      [1, "request + x-guest: set"],
      [3, "answered with 200"],
      [4, "failed: The guest trappe"],
    ],
  );
  assert.ok(result.fuel.p50! > 0 && result.fuel.p99! >= result.fuel.p50!);
  assert.match(
    formatGuestReport(result),
    /3 exchanges: 0 unchanged, 1 changed, 1 answered, 1 failed\n/,
  );
  const command = await run(
    "replay",
    "--log",
    path("recording.jsonl"),
    "--middleware",
    path("guest.wasm"),
  );
  assert.equal(command.code, 1);
  assert.equal(command.stdout, formatGuestReport(result));
});
