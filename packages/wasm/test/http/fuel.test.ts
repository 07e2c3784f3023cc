// The counting of fuel: everything that can repeat ends, and results do not change.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assemble, writeGuest } from "@platform/testing/guests";
import { compileHttpModule } from "../../src/http/index.ts";
import { writeRandomModule } from "./random-module.ts";
import { TestEnvironment, TestMessages, createGuest } from "./stage.ts";

const RANDOM_MODULES = Number(process.env["PLATFORM_GUEST_MODULES"] ?? 2_000);
const FUEL = 1_000_000;
/** More than any machine needs for so much fuel. */
const CALL_MS_MAX = 1_000;

const endless: [name: string, body: string, more?: string][] = [
  ["an empty loop", "(loop $l (br $l))"],
  [
    "arithmetic",
    "(local $i i64) (loop $l (local.set $i (i64.div_u (i64.const 7) (i64.or (local.get $i) (i64.const 1)))) (br $l))",
  ],
  ["vectors", "(local $v v128) (loop $l (local.set $v (f64x2.sqrt (local.get $v))) (br $l))"],
  ["a table of branches", "(loop $l (block $b (br_table $l $b $l (i32.const 9))))"],
  ["a loop that ends with a branch out of an if", "(loop $l (if (i32.const 1) (then (br $l))))"],
  ["loops in loops", "(loop $a (loop $b (br_if $b (i32.const 0))) (br $a))"],
  ["recursion", "(call $again)", "(func $again (call $again) (call $again))"],
  ["a tail call", "(call $again)", "(func $again (return_call $again))"],
  [
    "an indirect tail call",
    "(call $again)",
    "(type $t (func)) (table 1 funcref) (elem (i32.const 0) $again) (func $again (return_call_indirect (type $t) (i32.const 0)))",
  ],
  ["memory.fill", "(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $l))"],
  ["memory.copy", "(loop $l (memory.copy (i32.const 0) (i32.const 1) (i32.const 65535)) (br $l))"],
  ["memory.grow", "(loop $l (drop (memory.grow (i32.const 0))) (br $l))"],
  [
    "table.grow",
    "(loop $l (drop (table.grow $t (ref.null func) (i32.const 0))) (br $l))",
    "(table $t 1 funcref)",
  ],
  [
    "table.fill",
    "(loop $l (table.fill $t (i32.const 0) (ref.null func) (i32.const 100000)) (br $l))",
    "(table $t 100000 funcref)",
  ],
  ["log_enabled", "(loop $l (drop (call $log_enabled (i32.const 0))) (br $l))"],
  ["log", "(loop $l (call $log (i32.const 0) (i32.const 0) (i32.const 4096)) (br $l))"],
  [
    "fields that are set",
    "(loop $l (call $set_header_value (i32.const 0) (i32.const 8) (i32.const 1) (i32.const 8) (i32.const 1)) (br $l))",
  ],
  [
    "fields that are read",
    "(loop $l (drop (call $get_header_names (i32.const 0) (i32.const 0) (i32.const 0))) (br $l))",
  ],
  [
    "host calls through a table",
    "(loop $l (drop (call_indirect (param i32) (result i32) (i32.const 0) (i32.const 0))) (br $l))",
    "(table 1 funcref) (elem (i32.const 0) $log_enabled)",
  ],
  [
    "a function of 50 000 locals",
    "(loop $l (call $wide) (br $l))",
    `(func $wide (local ${"i64 ".repeat(49_000)}) (local.set 0 (i64.const 1)))`,
  ],
];
for (const [name, body, more = ""] of endless) {
  test(`${name} ends when the fuel is spent`, () => {
    const environment = new TestEnvironment();
    environment.fuelPerCall = FUEL;
    const guest = createGuest(
      writeGuest({ data: { 8: "a" }, more, request: `${body} (i64.const 1)` }),
      environment,
    );
    const started = performance.now();
    // Deep recursion may use up the stack first.
    assert.throws(() => guest.handleRequest(new TestMessages()), /used all of its fuel|stack/);
    const took = performance.now() - started;
    assert.ok(took < CALL_MS_MAX, `it ran for ${took} ms`);
    assert.equal(guest.isReusable, false);
  });
}

test("start functions are charged as well", () => {
  const spin = "(loop $l (br $l))";
  for (const more of [
    `(func $s ${spin}) (start $s)`,
    `(func (export "_start") ${spin})`,
    `(func (export "_initialize") ${spin})`,
  ])
    assert.throws(() => createGuest(writeGuest({ more })), { code: "fuel-limit" });
});

test("a start may cost as much as twenty calls, and calls have their own fuel after it", () => {
  const environment = new TestEnvironment();
  const spin = (rounds: number) => `(local $i i32) (local.set $i (i32.const ${rounds}))
    (loop $l (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))`;
  // Five instructions a round.
  const guest = createGuest(
    writeGuest({ more: `(func (export "_start") ${spin(10_000_000)})` }),
    environment,
  );
  assert.ok(guest.fuelUsed > 50_000_000, String(guest.fuelUsed));
  guest.handleRequest(new TestMessages());
  assert.ok(guest.fuelUsed < 1_000, String(guest.fuelUsed));
  const more = `(func (export "_start") ${spin(20_100_000)})`;
  assert.throws(() => createGuest(writeGuest({ more }), environment), { code: "fuel-limit" });
});

test("a length that is negative as a signed number pays nothing back", () => {
  const environment = new TestEnvironment();
  environment.fuelPerCall = FUEL;
  const guest = createGuest(
    writeGuest({
      request: `(memory.fill (i32.const 0) (i32.const 0) (i32.const -1)) (i64.const 1)`,
    }),
    environment,
  );
  assert.throws(() => guest.handleRequest(new TestMessages()), { code: "fuel-limit" });
});

test("each call has its own fuel, and the use is reported", () => {
  const guest = createGuest(
    writeGuest({
      request: `(local $i i32) (local.set $i (i32.const 10000))
        (loop $l (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1))))) (i64.const 1)`,
    }),
  );
  for (let call = 0; call < 200; call++) guest.handleRequest(new TestMessages());
  // Five instructions a round.
  assert.ok(guest.fuelUsed >= 50_000 && guest.fuelUsed < 50_100, String(guest.fuelUsed));
});

test("a branch that is not taken costs little", () => {
  const long = "(drop (i32.add (i32.const 1) (i32.const 2)))".repeat(10_000);
  const guest = createGuest(
    writeGuest({ request: `(if (call $log_enabled (i32.const 9)) (then ${long})) (i64.const 1)` }),
  );
  guest.handleRequest(new TestMessages());
  assert.ok(guest.fuelUsed < 1_000, String(guest.fuelUsed));
});

const refused: [name: string, text: string, reason: RegExp][] = [
  ["exceptions", `(tag $e) (func (throw $e))`, /instruction throw .*byte \d+/],
  ["threads", `(func (atomic.fence))`, /0xfe \(threads\).*byte \d+/],
  [
    "relaxed SIMD",
    `(func (param v128) (drop (i32x4.relaxed_trunc_f32x4_s (local.get 0))))`,
    /relaxed SIMD.*byte|byte.*relaxed/,
  ],
];
for (const [name, more, reason] of refused) {
  test(`${name} are refused by name and place`, () => {
    const text = writeGuest().replace(/\)$/, `${more})`);
    assert.throws(
      () => compileHttpModule(assemble(text)),
      (error: Error) => {
        assert.match(error.message, reason);
        return true;
      },
    );
  });
}

test("a global beyond those of the module is not the fuel", () => {
  const bytes = assemble(
    writeGuest({
      more: "(global $g (mut i32) (i32.const 0))",
      request: "(global.set $g (i32.const 5)) (i64.const 1)",
    }),
  );
  const at = Buffer.from(bytes).lastIndexOf(Buffer.from([0x41, 5, 0x24, 0]));
  bytes[at + 3] = 1;
  assert.throws(() => compileHttpModule(bytes), { code: "invalid-module" });
});

test("random modules give the same results with and without fuel", () => {
  for (let seed = 1; seed <= RANDOM_MODULES; seed++) {
    const bytes = assemble(writeRandomModule(seed, false));
    const plain = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(bytes)), {});
    const metered = new WebAssembly.Instance(compileHttpModule(bytes).compiled, {});
    refuel(metered, 2_000_000_000);
    for (const [a, b] of [
      [0, 0],
      [seed, 77],
      [-1, 1 << 30],
    ] as const)
      assert.equal(run(metered, a, b), run(plain, a, b), `seed ${seed}`);
    const memory = (instance: WebAssembly.Instance) =>
      Buffer.from((instance.exports["memory"] as WebAssembly.Memory).buffer);
    assert.ok(memory(metered).equals(memory(plain)), `memory of seed ${seed}`);
  }
});

test("random modules with endless loops end", () => {
  for (let seed = 1; seed <= RANDOM_MODULES; seed++) {
    const bytes = assemble(writeRandomModule(seed, true));
    const instance = new WebAssembly.Instance(compileHttpModule(bytes).compiled, {});
    refuel(instance, 100_000);
    const started = performance.now();
    run(instance, seed, 5);
    assert.ok(performance.now() - started < CALL_MS_MAX, `seed ${seed}`);
  }
});

function refuel(instance: WebAssembly.Instance, units: number): void {
  (instance.exports["platform:fuel"] as WebAssembly.Global).value = units;
}

function run(instance: WebAssembly.Instance, a: number, b: number): string {
  try {
    return String((instance.exports["run"] as (a: number, b: number) => bigint)(a, b));
  } catch (error) {
    return String(error);
  }
}

test("a loop of many short branches pays for those that it takes, and a few more", () => {
  const branch = "(if (local.get $never) (then (drop (i32.const 1)) (drop (i32.const 2))))";
  const guest = createGuest(
    writeGuest({
      request: `(local $i i32) (local $never i32) (local.set $i (i32.const 1000))
        (loop $again
          ${branch.repeat(200)}
          (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
        (i64.const 1)`,
    }),
  );
  guest.handleRequest(new TestMessages());
  // A round executes 406 instructions of 1 206.
  assert.ok(guest.fuelUsed >= 406_000 && guest.fuelUsed < 500_000, String(guest.fuelUsed));
});
