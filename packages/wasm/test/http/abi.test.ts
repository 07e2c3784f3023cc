// Every function and rule of the http-wasm handler ABI, for guests of one instance.
import assert from "node:assert/strict";
import { test } from "node:test";
import { writeGuest } from "@platform/testing/guests";
import { GuestError } from "../../src/http/index.ts";
import { TestEnvironment, TestMessages, createGuest } from "./stage.ts";

/** Writes the text that `call` leaves at 256 and its length to a response field named `x-result`. */
const report = (call: string): string => `
  (local $length i32)
  (local.set $length ${call})
  (call $set_header_value (i32.const 1) (i32.const 0) (i32.const 8)
    (i32.const 256) (local.get $length))
  (i64.const 1)`;
const data = { 0: "x-result", 16: "x-one", 32: "Content-Length", 64: "x-new", 80: "b\\tc" };

const readers: [name: string, expected: string][] = [
  ["get_method", "GET"],
  ["get_uri", "/items?page=2"],
  ["get_protocol_version", "HTTP/1.1"],
  ["get_source_addr", "192.0.2.1:4711"],
];
for (const [name, expected] of readers) {
  test(`${name} returns the length and writes nothing that exceeds the limit`, () => {
    const messages = new TestMessages();
    const guest = createGuest(
      writeGuest({ data, request: report(`(call $${name} (i32.const 256) (i32.const 64))`) }),
    );
    guest.handleRequest(messages);
    assert.deepEqual(messages.responseFields.listValues("x-result"), [expected]);
    const short = createGuest(
      writeGuest({
        data: { ...data, 256: "unchanged-unchanged" },
        request: report(`(call $${name} (i32.const 256) (i32.const ${expected.length - 1}))`),
      }),
    );
    short.handleRequest(messages);
    assert.deepEqual(messages.responseFields.listValues("x-result"), [
      "unchanged-unchanged".slice(0, expected.length),
    ]);
  });
}

test("get_config returns the bytes of the configuration", () => {
  const messages = new TestMessages();
  const environment = new TestEnvironment();
  environment.config = Buffer.from("plan=gold");
  const request = report("(call $get_config (i32.const 256) (i32.const 64))");
  createGuest(writeGuest({ data, request }), environment).handleRequest(messages);
  assert.deepEqual(messages.responseFields.listValues("x-result"), ["plan=gold"]);
});

test("handle_request continues or answers, and passes its context to handle_response", async () => {
  const proceed = createGuest(
    writeGuest({
      data,
      request: "(i64.const 0x2a00000001)",
      response: `(i32.store8 (i32.const 256) (i32.add (local.get $context) (local.get $is_error)))
        (call $set_header_value (i32.const 1) (i32.const 0) (i32.const 8) (i32.const 256) (i32.const 1))`,
    }),
  );
  const messages = new TestMessages();
  assert.deepEqual(await proceed.handleRequest(messages), { next: true, context: 42 });
  await proceed.handleResponse(messages, 42, false);
  assert.deepEqual(messages.responseFields.listValues("x-result"), ["*"]);
  await proceed.handleResponse(messages, 42, true);
  assert.deepEqual(messages.responseFields.listValues("x-result"), ["+"]);
  const answer = createGuest(
    writeGuest({
      data,
      request: `(call $set_status_code (i32.const 403)) (i64.const 0x1000000000)`,
    }),
  );
  assert.deepEqual(await answer.handleRequest(messages), { next: false, context: 16 });
  assert.equal(messages.status, 403);
});

test("next must be 0 or 1", () => {
  const guest = createGuest(writeGuest({ request: "(i64.const 7)" }));
  assert.throws(() => guest.handleRequest(new TestMessages()), { code: "invalid-result" });
  assert.equal(guest.isReusable, false);
});

test("field names are in lower case and unique, values are those of all lines", () => {
  const messages = new TestMessages();
  const write = (call: string) => report(`(i32.wrap_i64 (call $keep ${call}))`);
  // NUL cannot be in a field: the separators are replaced.
  const more = `(func $keep (param $count_length i64) (result i64) (local $at i32)
    (local.set $at (i32.const 256))
    (loop $next
      (if (i32.eqz (i32.load8_u (local.get $at))) (then (i32.store8 (local.get $at) (i32.const 47))))
      (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1)))
        (i32.add (i32.const 256) (i32.wrap_i64 (local.get $count_length))))))
    (i32.store8 (i32.const 255) (i32.add (i32.const 48)
      (i32.wrap_i64 (i64.shr_u (local.get $count_length) (i64.const 32)))))
    (local.get $count_length))`;
  const names = write("(call $get_header_names (i32.const 0) (i32.const 256) (i32.const 64))");
  createGuest(writeGuest({ data, more, request: names })).handleRequest(messages);
  assert.deepEqual(messages.responseFields.listValues("x-result"), ["host/x-one/"]);
  const values = write(
    "(call $get_header_values (i32.const 0) (i32.const 16) (i32.const 5) (i32.const 256) (i32.const 64))",
  );
  createGuest(writeGuest({ data, more, request: values })).handleRequest(messages);
  assert.deepEqual(messages.responseFields.listValues("x-result"), ["a/b/"]);
});

test("count_len is the same without room, and 0 for fields that are absent and for trailers", () => {
  const check = (call: string, expected: string) => {
    const request = `(if (i64.ne ${call} (i64.const ${expected})) (then unreachable)) (i64.const 1)`;
    createGuest(writeGuest({ data, request })).handleRequest(new TestMessages());
  };
  check("(call $get_header_names (i32.const 0) (i32.const 256) (i32.const 0))", "0x20000000b");
  const values = (kind: number, name: string) =>
    `(call $get_header_values (i32.const ${kind}) ${name} (i32.const 256) (i32.const 0))`;
  check(values(0, "(i32.const 16) (i32.const 5)"), "0x200000004");
  check(values(0, "(i32.const 64) (i32.const 5)"), "0");
  check(values(2, "(i32.const 16) (i32.const 5)"), "0");
  check("(call $get_header_names (i32.const 3) (i32.const 256) (i32.const 64))", "0");
});

test("fields are set, added and removed, without regard to case", () => {
  const messages = new TestMessages();
  const field = "(i32.const 16) (i32.const 5)";
  const request = `
    (call $set_header_value (i32.const 0) ${field} (i32.const 80) (i32.const 3))
    (call $add_header_value (i32.const 0) (i32.const 64) (i32.const 5) (i32.const 80) (i32.const 1))
    (call $add_header_value (i32.const 0) (i32.const 64) (i32.const 5) (i32.const 80) (i32.const 0))
    (i64.const 1)`;
  createGuest(writeGuest({ data, request })).handleRequest(messages);
  assert.deepEqual(messages.requestFields.list(), [
    ["Host", "example.test"],
    ["x-one", "b\tc"],
    ["x-new", "b"],
    ["x-new", ""],
  ]);
  assert.equal(messages.requestFields.isChanged, true);
  const remove = `(call $remove_header (i32.const 0) ${field}) (i64.const 1)`;
  createGuest(writeGuest({ data, request: remove })).handleRequest(messages);
  assert.deepEqual(messages.requestFields.listValues("X-One"), []);
});

test("framing fields cannot be changed: the calls are ignored and counted", () => {
  const messages = new TestMessages();
  messages.requestFields.add("Content-Length", "12");
  const name = "(i32.const 32) (i32.const 14)";
  const request = `
    (call $set_header_value (i32.const 0) ${name} (i32.const 80) (i32.const 1))
    (call $remove_header (i32.const 0) ${name})
    (i64.const 1)`;
  const guest = createGuest(writeGuest({ data, request }));
  guest.handleRequest(messages);
  assert.deepEqual(messages.requestFields.listValues("content-length"), ["12"]);
  assert.equal(guest.ignoredFields, 2);
});

test("method and URI are replaced; an empty URI is /", () => {
  const messages = new TestMessages();
  const request = `
    (call $set_method (i32.const 300) (i32.const 4))
    (call $set_uri (i32.const 310) (i32.const 4)) (i64.const 1)`;
  createGuest(writeGuest({ data: { 300: "POST", 310: "/a?b" }, request })).handleRequest(messages);
  assert.deepEqual([messages.method, messages.uri], ["POST", "/a?b"]);
  const empty = "(call $set_uri (i32.const 0) (i32.const 0)) (i64.const 1)";
  createGuest(writeGuest({ request: empty })).handleRequest(messages);
  assert.equal(messages.uri, "/");
});

test("features: both buffers are offered, trailers are not", () => {
  const request = `
    (if (i32.ne (call $enable_features (i32.const 6)) (i32.const 3)) (then unreachable))
    (i64.const 1)`;
  const guest = createGuest(writeGuest({ request }));
  guest.handleRequest(new TestMessages());
  assert.equal(guest.features, 2);
});

test("features of a start function apply to every request, those of a request to that one", () => {
  const more = `(func $start (drop (call $enable_features (i32.const 1)))) (start $start)`;
  const request = `
    (if (i32.eqz (call $get_uri (i32.const 0) (i32.const 0))) (then unreachable))
    (if (i32.ne (call $get_uri (i32.const 0) (i32.const 0)) (i32.const 1))
      (then (drop (call $enable_features (i32.const 2)))))
    (i64.const 1)`;
  const guest = createGuest(writeGuest({ more, request }));
  const messages = new TestMessages();
  guest.handleRequest(messages);
  assert.equal(guest.features, 3);
  guest.endRequest();
  messages.uri = "/";
  guest.handleRequest(messages);
  assert.equal(guest.features, 1);
});

test("log writes lines of enabled levels, cut at 4 KiB", () => {
  const environment = new TestEnvironment();
  const request = `
    (memory.fill (i32.const 1024) (i32.const 97) (i32.const 8192))
    (call $log (i32.const 1) (i32.const 0) (i32.const 8))
    (call $log (i32.const 0) (i32.const 1024) (i32.const 8192))
    (call $log (i32.const 3) (i32.const 0) (i32.const 8))
    (if (i32.ne (call $log_enabled (i32.const -1)) (i32.const 1)) (then unreachable))
    (if (call $log_enabled (i32.const 3)) (then unreachable))
    (i64.const 1)`;
  createGuest(writeGuest({ data, request }), environment).handleRequest(new TestMessages());
  assert.deepEqual(environment.lines, [
    [1, "x-result"],
    [0, "a".repeat(4_096)],
  ]);
});

test("a body is read in pieces; the end is reported with the last one", async () => {
  const read = "(call $read_body (i32.const 0) (i32.const 256) (i32.const 7))";
  const request = `
    (if (i64.ne ${read} (i64.const 7)) (then unreachable))
    (if (i64.ne ${read} (i64.const 0x100000005)) (then unreachable))
    (if (i64.ne ${read} (i64.const 0x100000000)) (then unreachable))
    (call $write_body (i32.const 0) (i32.const 256) (i32.const 5))
    (call $write_body (i32.const 0) (i32.const 257) (i32.const 1))
    (i64.const 1)`;
  for (const arrives of [(bytes: Buffer) => bytes, (bytes: Buffer) => Promise.resolve(bytes)]) {
    const messages = new TestMessages();
    messages.requestBody = [arrives(Buffer.from("request body"))];
    const guest = createGuest(writeGuest({ readsBody: true, request }));
    assert.deepEqual(await guest.handleRequest(messages), { next: true, context: 0 });
    assert.equal(String(guest.requestBody), " bodyb");
    assert.equal(guest.responseBody, undefined);
  }
});

test("no more of a body is asked for than the guest reads", async () => {
  const messages = new TestMessages();
  messages.requestBody = ["abc", "defghi", "jk"].map((text) => Buffer.from(text));
  const read = (limit: number) =>
    `(call $read_body (i32.const 0) (i32.const 256) (i32.const ${limit}))`;
  const request = `
    (if (i64.ne ${read(2)} (i64.const 2)) (then unreachable))
    (if (i64.ne ${read(1)} (i64.const 1)) (then unreachable))
    (if (i64.ne ${read(6)} (i64.const 6)) (then unreachable))
    (call $set_header_value (i32.const 1) (i32.const 0) (i32.const 8) (i32.const 256) (i32.const 6))
    (i64.const 1)`;
  await createGuest(writeGuest({ readsBody: true, data, request })).handleRequest(messages);
  assert.deepEqual(messages.asked, [2, 6]);
  assert.deepEqual(messages.responseFields.listValues("x-result"), ["defghi"]);
  assert.equal(messages.requestBody.length, 1);
});

test("a response body is read and replaced; without a body nothing is read", async () => {
  const response = `
    (if (i64.ne (call $read_body (i32.const 1) (i32.const 256) (i32.const 100)) (i64.const 0x10000000d))
      (then unreachable))
    (call $write_body (i32.const 1) (i32.const 265) (i32.const 4))`;
  const guest = createGuest(writeGuest({ readsBody: true, response }));
  const messages = new TestMessages();
  await guest.handleRequest(messages);
  await guest.handleResponse(messages, 0, false);
  assert.equal(String(guest.responseBody), "body");
  guest.endRequest();
  assert.equal(guest.responseBody, undefined);
});

test("write_body without bytes replaces a body with an empty one", () => {
  const request = "(call $write_body (i32.const 0) (i32.const 0) (i32.const 0)) (i64.const 1)";
  const guest = createGuest(writeGuest({ request }));
  guest.handleRequest(new TestMessages());
  assert.equal(guest.requestBody?.length, 0);
});

const traps: [name: string, text: Parameters<typeof writeGuest>[0], reason: RegExp][] = [
  ["a request field that is set late", { response: set(0) }, /has been sent/],
  [
    "a late method",
    { response: "(call $set_method (i32.const 16) (i32.const 3))" },
    /has been sent/,
  ],
  ["a late URI", { response: "(call $set_uri (i32.const 16) (i32.const 3))" }, /has been sent/],
  ["a late request body", { response: write(0, 1) }, /has been sent/],
  ["a request trailer", { request: `${set(2)} (i64.const 1)` }, /trailer/],
  ["a response trailer", { response: set(3) }, /trailer/],
  ["an unknown kind of field", { request: `${set(9)} (i64.const 1)` }, /unknown header kind 9/],
  ["an unknown kind of body", { request: `${write(5, 1)} (i64.const 1)` }, /unknown body kind 5/],
  [
    "an empty field name",
    {
      request: `(drop (call $get_header_values (i32.const 0) (i32.const 0) (i32.const 0)
        (i32.const 0) (i32.const 0))) (i64.const 1)`,
    },
    /empty field name/,
  ],
  [
    "a range outside of memory",
    { request: `(call $log (i32.const 0) (i32.const 65530) (i32.const 100)) (i64.const 1)` },
    /outside of its memory/,
  ],
  [
    "a status out of range",
    { response: "(call $set_status_code (i32.const 99))" },
    /between 200 and 599/,
  ],
  [
    "a read without a limit",
    {
      readsBody: true,
      request: `(call $read_body (i32.const 0) (i32.const 0) (i32.const 0))`,
    },
    /limit of 0 bytes/,
  ],
];
for (const [name, text, reason] of traps) {
  test(`${name} traps`, async () => {
    const guest = createGuest(writeGuest({ data: { 16: "abc" }, ...text }));
    const messages = new TestMessages();
    const run = async () => {
      await guest.handleRequest(messages);
      await guest.handleResponse(messages, 0, false);
    };
    await assert.rejects(run, (error) => {
      assert.ok(error instanceof GuestError);
      assert.equal(error.code, "trapped");
      assert.match(error.message, reason);
      return true;
    });
    assert.equal(guest.isReusable, false);
  });
}

function set(kind: number): string {
  return `(call $set_header_value (i32.const ${kind}) (i32.const 16) (i32.const 3) (i32.const 16) (i32.const 1))`;
}

function write(kind: number, length: number): string {
  return `(call $write_body (i32.const ${kind}) (i32.const 16) (i32.const ${length}))`;
}

test("a start function uses the configuration, and has no request", () => {
  const environment = new TestEnvironment();
  const logs = `(func $start
    (call $log (i32.const 0) (i32.const 256) (call $get_config (i32.const 256) (i32.const 64))))
    (start $start)`;
  createGuest(writeGuest({ more: logs }), environment);
  assert.deepEqual(environment.lines, [[0, "enabled=1\n"]]);
  const asks = `(func (export "_initialize") (drop (call $get_uri (i32.const 0) (i32.const 9))))`;
  assert.throws(() => createGuest(writeGuest({ more: asks })), /while it had none/);
});

test("a WASI command runs `_start` once, and its output is logged at debug", () => {
  const environment = new TestEnvironment();
  const text = writeGuest({
    data: { 0: "\\40\\00\\00\\00\\05\\00\\00\\00", 64: "hello" },
    more: `(func (export "_start")
      (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 32)))
      (call $exit (i32.const 0)))`,
  }).replace(
    "(memory",
    `(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
     (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
     (memory`,
  );
  createGuest(text, environment);
  assert.deepEqual(environment.lines, [[-1, "hello"]]);
  const failing = text.replace("(call $exit (i32.const 0))", "(call $exit (i32.const 3))");
  assert.throws(() => createGuest(failing), /exited with code 3/);
});
