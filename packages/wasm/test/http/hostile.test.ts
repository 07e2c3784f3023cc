// Modules that are refused, and instances that harm only themselves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assemble, writeGuest } from "@platform/testing/guests";
import { GuestError, type GuestErrorCode, compileHttpModule } from "../../src/http/index.ts";
import { TestMessages, createGuest } from "./stage.ts";

const refused: [name: string, code: GuestErrorCode, text: string | Uint8Array, reason: RegExp][] = [
  ["text", "invalid-module", Buffer.from("not a module"), /not a WebAssembly module/],
  ["an empty file", "invalid-module", Buffer.alloc(0), /not a WebAssembly module/],
  ["a module that is cut", "invalid-module", assemble(writeGuest()).subarray(0, 100), /byte \d+/],
  [
    "an unknown function",
    "unsupported-module",
    importing(`"env" "abort" (func)`),
    /byte \d+, `env.abort`/,
  ],
  [
    "an unknown function of the ABI",
    "unsupported-module",
    importing(`"http_handler" "toString" (func)`),
    /`http_handler.toString`, is unknown/,
  ],
  [
    "a function of another type",
    "unsupported-module",
    importing(`"http_handler" "log" (func (param i64))`),
    /has the type \(i64\) -> \(\) instead of \(i32, i32, i32\)/,
  ],
  [
    "an imported memory",
    "unsupported-module",
    importing(`"env" "memory" (memory 1)`),
    /byte \d+, `env.memory`, is not a function/,
  ],
  [
    "an imported table",
    "unsupported-module",
    importing(`"env" "table" (table 1 funcref)`),
    /is not a function/,
  ],
  [
    "no handle_response",
    "unsupported-module",
    `(module (memory (export "memory") 1) (func (export "handle_request") (result i64) (i64.const 1)))`,
    /no function `handle_response`/,
  ],
  [
    "handle_request of another type",
    "unsupported-module",
    writeGuest().replace("(result i64) (i64.const 1)", "(result i32) (i32.const 1)"),
    /`handle_request` has the type \(\) -> \(i32\)/,
  ],
  ["no memory", "unsupported-module", writeGuest().replace(`(export "memory")`, ""), /no memory/],
  [
    "a memory under a function's name",
    "unsupported-module",
    writeGuest({
      more: `(global $g i32 (i32.const 1)) (export "_start" (func $f)) (func $f (param i32))`,
    }),
    /`_start` has the type \(i32\) -> \(\)/,
  ],
  ["more memory than allowed", "memory-limit", writeGuest({ memory: "257" }), /257 pages/],
  [
    "a table that is too large",
    "memory-limit",
    writeGuest({ more: "(table 100001 funcref)" }),
    /100001 entries/,
  ],
  [
    "a reserved export",
    "unsupported-module",
    writeGuest({ more: `(func (export "platform:fuel"))` }),
    /reserved/,
  ],
  ["more than 8 MiB", "module-too-large", Buffer.alloc(8 * 1024 * 1024 + 1), /limit is 8388608/],
];
for (const [name, code, text, reason] of refused) {
  test(`refuses ${name}`, () => {
    const bytes = typeof text === "string" ? assemble(text) : text;
    assert.throws(
      () => compileHttpModule(bytes),
      (error) => {
        assert.ok(error instanceof GuestError, String(error));
        assert.equal(error.code, code, error.message);
        assert.match(error.message, reason);
        return true;
      },
    );
  });
}

function importing(what: string): string {
  return writeGuest().replace("(module", `(module (import ${what})`);
}

test("a module of megabytes of nested blocks is refused quickly", () => {
  // A function of 8 MiB exceeds the limit of the engine; of 6 MiB, that of the counter.
  for (const blocks of [2_700_000, 2_000_000]) {
    const body = Buffer.concat([
      Buffer.from([0]),
      Buffer.alloc(blocks * 2, Buffer.from([0x02, 0x40])),
      Buffer.alloc(blocks + 1, 0x0b),
    ]);
    const empty = writeGuest({ more: `(func (nop) (nop))` });
    const started = performance.now();
    assert.throws(() => compileHttpModule(replaceLastBody(assemble(empty), body)), GuestError);
    assert.ok(performance.now() - started < 5_000);
  }
});

/** Puts a body in the place of the last function's, in the last section. */
function replaceLastBody(module: Uint8Array, body: Buffer): Uint8Array {
  const at = Buffer.from(module).lastIndexOf(Buffer.from([4, 0, 1, 1, 0x0b]));
  assert.ok(at !== -1);
  // The order of functions: this one is before the two that are exported.
  const rest = module.subarray(at + 5);
  const section = Buffer.from(module).lastIndexOf(10, at);
  const before = module.subarray(section + 2, at);
  const contents = Buffer.concat([before, leb(body.length), body, rest]);
  return Buffer.concat([module.subarray(0, section + 1), leb(contents.length), contents]);
}

function leb(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}

test("memory grows to 16 MiB and no further, and a large instance is not kept", () => {
  const guest = createGuest(
    writeGuest({
      request: `(if (i32.eq (memory.grow (i32.const 255)) (i32.const -1)) (then unreachable))
        (if (i32.ne (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
        (i64.const 1)`,
    }),
  );
  assert.equal(guest.isReusable, true);
  guest.handleRequest(new TestMessages());
  assert.equal(guest.memoryBytes, 16 * 1024 * 1024);
  assert.equal(guest.isReusable, false);
});

test("an instance that needs much memory to start may grow to twice of it", () => {
  const guest = createGuest(
    writeGuest({ memory: "100", request: "(drop (memory.grow (i32.const 60))) (i64.const 1)" }),
  );
  guest.handleRequest(new TestMessages());
  assert.equal(guest.isReusable, true);
  guest.handleRequest(new TestMessages());
  assert.equal(guest.isReusable, false);
});

test("a memory that has grown is read and written where it is", () => {
  const guest = createGuest(
    writeGuest({
      request: `(drop (memory.grow (i32.const 1)))
        (drop (call $get_method (i32.const 70000) (i32.const 3)))
        (if (i32.ne (i32.load8_u (i32.const 70000)) (i32.const 71)) (then unreachable))
        (i64.const 1)`,
    }),
  );
  guest.handleRequest(new TestMessages());
});

test("recursion without end does not reach the host", () => {
  const guest = createGuest(
    writeGuest({
      more: "(func $f (param i32) (result i32) (i32.add (i32.const 1) (call $f (local.get 0))))",
      request: "(drop (call $f (i32.const 0))) (i64.const 1)",
    }),
  );
  assert.throws(() => guest.handleRequest(new TestMessages()), GuestError);
  assert.equal(guest.isReusable, false);
});

const setting = (name: number, value: string) =>
  `(call $set_header_value (i32.const 0) (i32.const 8) (i32.const ${name}) ${value})`;
const bad: [name: string, request: string, reason: RegExp][] = [
  ["a value with a line break", setting(1, "(i32.const 16) (i32.const 4)"), /control character/],
  [
    "a name with a colon",
    `(call $set_header_value (i32.const 0) (i32.const 32) (i32.const 2) (i32.const 8) (i32.const 1))`,
    /not a token/,
  ],
  [
    "a value of a megabyte",
    `(drop (memory.grow (i32.const 20))) ${setting(1, "(i32.const 65536) (i32.const 1000000)")}`,
    /1000000 bytes/,
  ],
  [
    "10 000 fields",
    `(local $i i32) (loop $l
      (call $add_header_value (i32.const 0) (i32.const 8) (i32.const 1) (i32.const 8) (i32.const 1))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10000))))`,
    /more than 128 fields/,
  ],
  ["a method with a space", "(call $set_method (i32.const 40) (i32.const 3))", /not a token/],
  ["a URI with a line break", "(call $set_uri (i32.const 16) (i32.const 4))", /with a space/],
  [
    "a body of a gigabyte",
    `(local $i i32) (loop $l
      (call $write_body (i32.const 0) (i32.const 0) (i32.const 65536))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 16384))))`,
    /more than 1000 bytes/,
  ],
];
for (const [name, request, reason] of bad) {
  test(`${name} ends the guest`, () => {
    const data = { 8: "a", 16: "/\\0d\\0ab", 32: "a:", 40: "G T" };
    const guest = createGuest(writeGuest({ data, request: `${request} (i64.const 1)` }));
    assert.throws(() => guest.handleRequest(new TestMessages()), reason);
  });
}

test("a body that is lost ends the guest that waits for it", async () => {
  const guest = createGuest(
    writeGuest({
      readsBody: true,
      request: `(drop (call $read_body (i32.const 0) (i32.const 0) (i32.const 9))) (i64.const 1)`,
    }),
  );
  const messages = new TestMessages();
  messages.requestBody = [Promise.reject(new Error("the client has left"))];
  await assert.rejects(async () => guest.handleRequest(messages), /the client has left/);
  assert.equal(guest.isReusable, false);
});
