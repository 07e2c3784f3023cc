// Log lines: format, limits, and redaction.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { createLogger, type LoggerOptions } from "@platform/kernel/log";
import { createManualClock } from "@platform/kernel/time";

function capture(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const logger = createLogger({
    service: "gate",
    format: "json",
    clock: createManualClock(Date.UTC(2030, 0, 2, 3, 4, 5, 6)),
    write: (line) => void lines.push(line),
    ...options,
  });
  return { logger, lines };
}

test("all lines have the eight standard members, empty if not applicable", () => {
  const { logger, lines } = capture();
  logger.info("started");
  assert.equal(
    lines[0],
    '{"level":"info","msg":"started","trace_id":"","span_id":"","service":"gate","duration_ms":null,"status":null,"timestamp":"2030-01-02T03:04:05.006Z"}\n',
  );
});

test("extra fields follow, and those of an event override those of a child logger", () => {
  const { logger, lines } = capture();
  logger
    .child({ route: "/a", attempt: 1 })
    .warn("slow", { attempt: 2, duration_ms: 1.23456, status: 200 });
  const event = JSON.parse(lines[0]!);
  assert.equal(event.duration_ms, 1.235);
  assert.equal(event.status, 200);
  assert.deepEqual([event.route, event.attempt], ["/a", 2]);
  assert.deepEqual(Object.keys(event).slice(8), ["route", "attempt"]);
});

test("events below the threshold are not written and do not read their fields", () => {
  const { logger, lines } = capture({ level: "warn" });
  logger.info("no", {
    get costly() {
      throw new Error("read");
    },
  });
  logger.child({ a: 1 }).debug("no");
  assert.deepEqual(lines, []);
  assert.deepEqual([logger.isOn("info"), logger.isOn("warn")], [false, true]);
});

test("credentials are redacted by name and by form", () => {
  const { logger, lines } = capture();
  const secrets = {
    authorization: "s3cr3t",
    password: "s3cr3t",
    access_token: "s3cr3t",
    "set-cookie": ["s3cr3t"],
    apiKey: "s3cr3t",
    session_id: "s3cr3t",
    sessionIds: ["s3cr3t"],
    client_secret: { value: "s3cr3t" },
    nested: { deep: { private_key: "s3cr3t" } },
    header: "Authorization: Bearer s3cr3t.abc",
    url: "redis://user:s3cr3t@host:6379/0",
    error: new Error("connect postgres://app:s3cr3t@db/x failed"),
  };
  logger.error("call with bearer s3cr3ts failed", secrets);
  assert.ok(!lines[0]!.includes("s3cr3t"), lines[0]!);
  logger.info("count", { tokens_used: 12, session_idle: "24h" });
  const fields = JSON.parse(lines[1]!);
  assert.deepEqual([fields.tokens_used, fields.session_idle], [12, "24h"]);
});

test("lines are bounded and indicate omitted fields", () => {
  const { logger, lines } = capture({ lineCharactersMax: 2000 });
  logger.info("big", { kept: 1, huge: "x".repeat(3000), after: 2 });
  const event = JSON.parse(lines[0]!);
  assert.ok(lines[0]!.length <= 2000);
  assert.deepEqual([event.kept, event.huge, event.after, event.truncated], [1, undefined, 2, true]);
  logger.info("m".repeat(100_000));
  assert.ok(lines[1]!.length < 6000);
});

test("any value results in one line of valid JSON", () => {
  fc.assert(
    fc.property(fc.string(), fc.dictionary(fc.string(), fc.anything()), (msg, fields) => {
      const { logger, lines } = capture();
      logger.info(msg, fields);
      assert.equal(lines.length, 1);
      assert.equal(lines[0]!.indexOf("\n"), lines[0]!.length - 1);
      JSON.parse(lines[0]!);
      assert.ok(lines[0]!.length <= 16_384);
    }),
    { numRuns: 300 },
  );
});

test("circular and hostile values do not throw", () => {
  const { logger, lines } = capture();
  const loop: Record<string, unknown> = {};
  loop["self"] = loop;
  logger.info("loop", {
    loop,
    big: 10n,
    none: undefined,
    hostile: new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error("no");
        },
      },
    ),
  });
  const event = JSON.parse(lines[0]!);
  assert.equal(event.big, "10");
  assert.equal(event.hostile, "[unreadable]");
  assert.ok(!("none" in event));
  const error = Object.assign(new Error("x"), { stack: 5, name: Symbol("name") });
  const refusing = new Proxy(new Error("y"), {
    get: () => {
      throw new Error("no");
    },
  });
  logger.error("errors", { error, refusing, after: 1 });
  const errors = JSON.parse(lines[1]!);
  assert.deepEqual(errors.error, {
    name: null,
    message: "x",
    stack: 5,
  });
  assert.deepEqual([errors.refusing, errors.after], ["[unreadable]", 1]);
});

test("in the readable form a message can neither forge a line nor control the terminal", () => {
  const { logger, lines } = capture({ format: "pretty" });
  logger.warn('a "quoted"\nb \u001b[31m \u009b31m', { path: "/x", status: 404, trace_id: "ab" });
  assert.equal(lines[0]!.split("\n").length, 2);
  assert.ok(!lines[0]!.includes("\u001b") && !lines[0]!.includes("\u009b"));
  assert.match(lines[0]!, /^03:04:05\.006 warn {2}gate +a "quoted"\\nb/);
  assert.match(lines[0]!, /status=404 trace_id=ab path="\/x"/);
});

for (const end of ["process.exit(3)", 'throw new Error("fatal")']) {
  test(`all lines before ${end} reach standard output, in order`, () => {
    const program = `
      import { createLogger } from "@platform/kernel/log";
      const log = createLogger({ service: "gate", format: "json" });
      for (let at = 0; at < 100; at++) log.info("line " + at);
      ${end};`;
    const { stdout, status } = spawnSync(
      process.execPath,
      ["--input-type=module", "--eval", program],
      { cwd: import.meta.dirname, encoding: "utf8" },
    );
    assert.notEqual(status, 0);
    const lines = stdout.trimEnd().split("\n");
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).msg),
      Array.from({ length: 100 }, (_, at) => `line ${at}`),
    );
  });
}

test("lines of one turn are one write, those of a later turn another", () => {
  const program = `
    import { createLogger } from "@platform/kernel/log";
    let writes = 0;
    const write = process.stdout.write.bind(process.stdout);
    process.stdout.write = (...rest) => { writes++; return write(...rest); };
    const log = createLogger({ service: "gate", format: "json" });
    for (let at = 0; at < 10; at++) log.info("first");
    setTimeout(() => { log.info("second"); setTimeout(() => process.exit(writes), 50); }, 50);`;
  const { status, stdout } = spawnSync(
    process.execPath,
    ["--input-type=module", "--eval", program],
    { cwd: import.meta.dirname, encoding: "utf8" },
  );
  assert.equal(stdout.trimEnd().split("\n").length, 11);
  assert.equal(status, 2);
});
