// Guests: calling conventions, limits, and isolation from other guests.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { assemble } from "@platform/testing/guests";
import fc from "fast-check";
import { GuestError, type GuestErrorCode, GuestPool, type GuestPoolOptions } from "../src/index.ts";
import { assembleCommand, assembleTransform, copyInputTo, lowerCase, pack } from "./assemble.ts";

const pools: GuestPool[] = [];
after(() => Promise.all(pools.map((pool) => pool.close())));

function createPool(options: GuestPoolOptions = {}): GuestPool {
  const pool = new GuestPool({ callMsMax: 2_000, ...options });
  pools.push(pool);
  return pool;
}

async function fails(code: GuestErrorCode, work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => assert.fail(`it did not fail with ${code}`),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof GuestError, String(error));
  assert.equal(error.code, code, error.message);
  return error.message;
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const spin = "(loop $forever (br $forever)) unreachable";
const shared = createPool();

test("a transform returns other bytes on each call", async () => {
  const guest = await shared.load(lowerCase);
  assert.equal(guest.abi, "transform");
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 5_000 }), async (input) => {
      const expected = input.map((byte) => byte | 32);
      assert.deepEqual(await shared.call(guest, input), expected);
    }),
    { numRuns: 50 },
  );
});

test("the input of the caller is not modified", async () => {
  const guest = await shared.load(lowerCase);
  const input = Buffer.from("ABC");
  await shared.call(guest, input);
  assert.equal(text(input), "ABC");
});

test("a WASI command reads its input and writes its result in a new instance per call", async () => {
  const guest = await shared.load(assembleCommand(copyInputTo(1)));
  assert.equal(guest.abi, "command");
  assert.equal(text(await shared.call(guest, Buffer.from("hello"))), "hello");
  assert.equal(text(await shared.call(guest, Buffer.from(""))), "");
  assert.equal(text(await shared.call(guest, Buffer.from("again"))), "again");
});

test("a command succeeds with exit code 0 and otherwise fails with its standard error", async () => {
  const zero = await shared.load(assembleCommand(`${copyInputTo(1)} (call $exit (i32.const 0))`));
  assert.equal(text(await shared.call(zero, Buffer.from("x"))), "x");
  const seven = await shared.load(assembleCommand(`${copyInputTo(2)} (call $exit (i32.const 7))`));
  const message = await fails("exited", shared.call(seven, Buffer.from("no such field")));
  assert.match(message, /exit code 7 \(stderr: no such field\)/);
});

test("a command has no files and no environment", async () => {
  const guest = await shared.load(
    assembleCommand(`
      (local $file i32)
      (drop (call $environ (i32.const 16) (i32.const 20)))
      (if (i32.load (i32.const 16)) (then unreachable))
      ;; errno 8 is badf: for each of the first 64 numbers there is no folder to open a path in.
      (loop $next
        (if (i32.ne (i32.const 8) (call $open (local.get $file) (i32.const 0) (i32.const 0)
              (i32.const 1) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 32)))
          (then unreachable))
        (local.set $file (i32.add (local.get $file) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $file) (i32.const 64))))`),
  );
  assert.equal((await shared.call(guest, new Uint8Array(0))).length, 0);
});

test("a trap fails only its own call", async () => {
  const guest = await shared.load(
    assembleTransform(`
      (if (i32.eqz (local.get $length)) (then unreachable))
      ${pack("(local.get $at)", "(local.get $length)")}`),
  );
  await fails("trapped", shared.call(guest, new Uint8Array(0)));
  assert.equal(text(await shared.call(guest, Buffer.from("fine"))), "fine");
});

test("endless recursion is a trap", async () => {
  const guest = await shared.load(
    assemble(`(module (memory (export "memory") 1)
      (func $down (call $down)) (func (export "_start") (call $down)))`),
  );
  await fails("trapped", shared.call(guest, new Uint8Array(0)));
});

test("a guest that loops is terminated while others continue", async () => {
  const pool = createPool({ callMsMax: 300 });
  const endless = await pool.load(assembleTransform(spin));
  const honest = await pool.load(lowerCase);
  const slow = fails("time-limit", pool.call(endless, Buffer.from("x")));
  for (let at = 0; at < 20; at++)
    assert.equal(text(await pool.call(honest, Buffer.from("AB"))), "ab");
  assert.match(await slow, /ran for more than 300 ms/);
  assert.equal(text(await pool.call(honest, Buffer.from("CD"))), "cd");
});

test("a guest that loops during instantiation is terminated", async () => {
  const pool = createPool({ callMsMax: 300 });
  const guest = await pool.load(
    assemble(`(module (memory (export "memory") 1)
      (func $begin (loop $forever (br $forever))) (start $begin) (func (export "_start")))`),
  );
  await fails("time-limit", pool.call(guest, new Uint8Array(0)));
});

test("a guest is suspended after three consecutive timeouts and runs again later", async () => {
  const pool = createPool({ callMsMax: 100, suspensionMs: 400 });
  const guest = await pool.load(
    assembleTransform(`
      (if (i32.eqz (local.get $length)) (then ${spin}))
      ${pack("(local.get $at)", "(local.get $length)")}`),
  );
  for (let at = 0; at < 3; at++) await fails("time-limit", pool.call(guest, new Uint8Array(0)));
  assert.match(await fails("time-limit", pool.call(guest, Buffer.from("x"))), /suspended/);
  await new Promise((resolve) => setTimeout(resolve, 450));
  assert.equal(text(await pool.call(guest, Buffer.from("x"))), "x");
});

test("memory cannot grow past the limit, whatever the module declares", async () => {
  const pool = createPool({ memoryBytesMax: 4 * 65_536 });
  const growAll = `
    (local $pages i32)
    (loop $next
      (br_if $next (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (i32.store8 (local.get $at) (memory.size))
    ${pack("(local.get $at)", "(i32.const 1)")}`;
  for (const memory of ["1", "1 65536", "1 4"]) {
    const guest = await pool.load(assembleTransform(growAll, memory));
    assert.deepEqual([...(await pool.call(guest, Buffer.from("x")))], [4], memory);
  }
  const own = await pool.load(assembleTransform(growAll, "1 2"));
  assert.deepEqual([...(await pool.call(own, Buffer.from("x")))], [2]);
  assert.match(
    await fails("memory-limit", pool.load(assembleTransform(growAll, "5"))),
    /requires 5 pages of 64 KiB of memory; the limit is 4/,
  );
});

test("a guest that never frees memory gets a new instance when it runs out, and no call fails", async () => {
  const pool = createPool({ memoryBytesMax: 8 * 65_536, threads: 1 });
  const guest = await pool.load(lowerCase);
  const input = Buffer.alloc(60_000, "A");
  for (let at = 0; at < 50; at++) assert.equal((await pool.call(guest, input))[59_999], 97);
});

test("results are limited and must be in the guest's memory", async () => {
  const pool = createPool({ outputBytesMax: 100 });
  const long = await pool.load(assembleTransform(pack("(i32.const 0)", "(i32.const 101)")));
  await fails("output-too-large", pool.call(long, new Uint8Array(0)));
  const outside = await pool.load(assembleTransform(pack("(i32.const 65500)", "(i32.const 100)")));
  await fails("invalid-result", pool.call(outside, new Uint8Array(0)));
  const negative = await pool.load(assembleTransform("(i64.const -1)"));
  await fails("output-too-large", pool.call(negative, new Uint8Array(0)));
  const copy = await pool.load(assembleCommand(copyInputTo(1)));
  await fails("output-too-large", pool.call(copy, new Uint8Array(101)));
});

test("an `alloc` result outside the memory fails the call", async () => {
  const guest = await shared.load(
    assemble(`(module (memory (export "memory") 1)
      (func (export "alloc") (param i32) (result i32) (i32.const -8))
      (func (export "transform") (param i32 i32) (result i64) (i64.const 0)))`),
  );
  await fails("invalid-result", shared.call(guest, Buffer.from("x")));
});

const memory = '(memory (export "memory") 1)';
const refused: [what: string, code: GuestErrorCode, module: Uint8Array][] = [
  ["nothing", "invalid-module", new Uint8Array(0)],
  ["text", "invalid-module", Buffer.from("not a module at all")],
  ["a component", "invalid-module", Uint8Array.of(0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0)],
  ["a lying section", "invalid-module", Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 5, 200)],
  [
    "an endless number",
    "invalid-module",
    Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 5, 255, 255, 255, 255, 255),
  ],
  ["no memory", "unsupported-module", assemble('(module (func (export "_start")))')],
  ["no entry point", "unsupported-module", assemble(`(module ${memory})`)],
  [
    "a foreign import",
    "unsupported-module",
    assemble(`(module (import "env" "system" (func)) ${memory} (func (export "_start")))`),
  ],
  [
    "an unknown import of WASI",
    "unsupported-module",
    assemble(
      `(module (import "wasi_snapshot_preview1" "fd_fly" (func)) ${memory} (func (export "_start")))`,
    ),
  ],
  [
    "an imported memory",
    "unsupported-module",
    assemble('(module (import "env" "memory" (memory 1)) (func (export "_start")))'),
  ],
  [
    "64-bit memory",
    "unsupported-module",
    assemble('(module (memory (export "memory") i64 1) (func (export "_start")))'),
  ],
  [
    "a huge table",
    "memory-limit",
    assemble(`(module ${memory} (table 100001 funcref) (func (export "_start")))`),
  ],
  [
    "exports of what is not there",
    "invalid-module",
    Uint8Array.of(
      0,
      97,
      115,
      109,
      1,
      0,
      0,
      0,
      7,
      22,
      2,
      6,
      ...Buffer.from("memory"),
      2,
      0,
      6,
      ...Buffer.from("_start"),
      0,
      0,
    ),
  ],
];

for (const [what, code, module] of refused) {
  test(`${what} is refused when it is loaded`, async () => {
    await fails(code, shared.load(module));
  });
}

test("a module that is too large is refused before it is parsed", async () => {
  const pool = createPool({ moduleBytesMax: 100 });
  await fails("module-too-large", pool.load(new Uint8Array(101)));
});

test("a truncated or corrupted module is refused or runs within the sandbox", async () => {
  const pool = createPool({ callMsMax: 200, suspensionMs: 0 });
  await fc.assert(
    fc.asyncProperty(
      fc.nat({ max: lowerCase.length - 1 }),
      fc.nat({ max: 255 }),
      fc.boolean(),
      async (at, byte, cut) => {
        const module = cut ? lowerCase.slice(0, at) : lowerCase.slice();
        if (!cut) module[at] = byte;
        try {
          await pool.call(await pool.load(module), Buffer.from("ABC"));
        } catch (error) {
          assert.ok(error instanceof GuestError, String(error));
        }
      },
    ),
    { numRuns: 150 },
  );
});

test("calls beyond the queue limit are refused without running", async () => {
  const pool = createPool({ threads: 1, waitingMax: 2, callMsMax: 300 });
  const guest = await pool.load(assembleTransform(spin));
  const calls = [1, 2, 3].map(() => fails("time-limit", pool.call(guest, new Uint8Array(0))));
  await fails("overloaded", pool.call(guest, new Uint8Array(0)));
  await Promise.all(calls);
});

test("modules beyond the cache limit are compiled again on demand", async () => {
  const pool = createPool({ threads: 1, modulesMax: 1 });
  const first = await pool.load(lowerCase);
  const second = await pool.load(assembleCommand(copyInputTo(1)));
  for (let at = 0; at < 3; at++) {
    assert.equal(text(await pool.call(first, Buffer.from("A"))), "a");
    assert.equal(text(await pool.call(second, Buffer.from("A"))), "A");
  }
});

test("closing the pool rejects active and queued calls", async () => {
  const pool = createPool({ threads: 1 });
  const guest = await pool.load(assembleTransform(spin));
  const calls = [1, 2].map(() => fails("closed", pool.call(guest, new Uint8Array(0))));
  await pool.close();
  await Promise.all(calls);
  await fails("closed", pool.call(guest, new Uint8Array(0)));
});
