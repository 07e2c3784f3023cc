// Guests on streams: chains, back-pressure, limits, environment, cancellation.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { getEventListeners } from "node:events";
import { after, test } from "node:test";
import { assemble } from "@platform/testing/guests";
import { GuestError, type GuestErrorCode, GuestStreams } from "../src/stream/index.ts";
import { assembleCommand, assembleTransform, copyInputTo, lowerCase, pack } from "./assemble.ts";

const streams = new GuestStreams();
after(() => streams.close());

/** Copies all of its input to its output. */
const identity = assembleCommand(`
  (i32.store (i32.const 0) (i32.const 1024))
  (block $end
    (loop $next
      (i32.store (i32.const 4) (i32.const 65536))
      (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (br_if $end (i32.eqz (i32.load (i32.const 8))))
      (i32.store (i32.const 4) (i32.load (i32.const 8)))
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
      (br $next)))`);
const spin = assembleCommand("(loop $forever (br $forever))");
const times = { workingMs: 10_000, wallMs: 20_000 };

async function* pieces(count: number, piece: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index += 1) yield piece;
}

const only = (text: string): AsyncGenerator<Uint8Array> => pieces(1, Buffer.from(text));

async function collect(output: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of output) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
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

test("a chain of commands and transforms passes bytes from one to the next", async () => {
  const command = await streams.load(identity);
  const transform = await streams.load(lowerCase);
  const guests = [{ module: command }, { module: transform }, { module: command }];
  const run = streams.run({ guests, input: only("HELLO World"), ...times });
  assert.equal(await collect(run.output), "hello world");
  assert.deepEqual(await run.result, { outputBytes: 11, stderr: "" });
  const empty = streams.run({ guests, input: pieces(0, Buffer.alloc(0)), ...times });
  assert.equal(await collect(empty.output), "");
});

test("a long stream passes two guests with flat memory, at the pace of its reader", async () => {
  const module = await streams.load(identity);
  const piece = Buffer.alloc(1024 * 1024, "0123456789abcdef");
  const count = 300;
  let given = 0;
  async function* counted(): AsyncGenerator<Uint8Array> {
    for (; given < count; given += 1) yield piece;
  }
  const before = process.memoryUsage().rss;
  let peak = before;
  const run = streams.run({ guests: [{ module }, { module }], input: counted(), ...times });
  const hash = createHash("sha256");
  let size = 0;
  let isFirst = true;
  for await (const chunk of run.output) {
    if (isFirst) await new Promise((resolve) => setTimeout(resolve, 200));
    if (isFirst) assert.ok(given < 10, `${given} MiB were read ahead of a slow reader`);
    isFirst = false;
    hash.update(chunk);
    size += chunk.length;
    peak = Math.max(peak, process.memoryUsage().rss);
  }
  const expected = createHash("sha256");
  for (let index = 0; index < count; index += 1) expected.update(piece);
  assert.equal(size, count * piece.length);
  assert.equal(hash.digest("hex"), expected.digest("hex"));
  assert.ok(peak - before < 150e6, `memory grew by ${Math.round((peak - before) / 1e6)} MB`);
});

test("a guest sees its environment and nothing else", async () => {
  const module = await streams.load(
    assemble(`(module
      (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "environ_get" (func $get (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "_start")
        (drop (call $sizes (i32.const 0) (i32.const 4)))
        (drop (call $get (i32.const 100) (i32.const 1000)))
        (i32.store (i32.const 8) (i32.const 1000))
        (i32.store (i32.const 12) (i32.load (i32.const 4)))
        (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 16)))))`),
  );
  const environment = { STORE_KEY: "a/ä.txt", STORE_SIZE: "7" };
  const run = streams.run({ guests: [{ module, environment }], input: only("x"), ...times });
  assert.equal(await collect(run.output), "STORE_KEY=a/ä.txt\0STORE_SIZE=7\0");
});

test("standard error is kept up to 4 KiB, and a failure reaches the reader after the last byte", async () => {
  const module = await streams.load(
    assembleCommand(`${copyInputTo(1)} ${copyInputTo(2)} (call $exit (i32.const 3))`),
  );
  const input = pieces(2, Buffer.alloc(60_000, "e"));
  const run = streams.run({ guests: [{ module }], input, ...times });
  assert.match(await fails("exited", collect(run.output)), /exit code 3/);
  assert.equal(run.stderr.length, 4_096);
  await fails("exited", run.result);
});

test("limits of working time, wall time, output and input end a guest, and the others go on", async () => {
  const [slow, copy] = await Promise.all([streams.load(spin), streams.load(identity)]);
  const endless = streams.run({
    guests: [{ module: slow }],
    input: only("x"),
    workingMs: 300,
    wallMs: 20_000,
  });
  const other = streams.run({ guests: [{ module: copy }], input: only("fine"), ...times });
  assert.equal(await collect(other.output), "fine");
  assert.match(await fails("time-limit", endless.result), /worked for more than 300 ms/);

  // It waits for its input, which is no work.
  const never = new Promise<never>(() => undefined);
  async function* stuck(): AsyncGenerator<Uint8Array> {
    yield await never;
  }
  const waiting = { guests: [{ module: copy }], input: stuck(), workingMs: 50, wallMs: 400 };
  const run = streams.run(waiting);
  assert.match(await fails("time-limit", collect(run.output)), /ran for more than 400 ms/);

  const flood = await streams.load(
    assembleCommand(`
      (i32.store (i32.const 4) (i32.const 65536))
      (loop $more
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
        (br $more))`),
  );
  const flooding = streams.run({ guests: [{ module: flood }], input: only("x"), ...times });
  assert.match(await fails("output-too-large", collect(flooding.output)), /67108864/);

  const small = new GuestStreams({ wholeBytesMax: 1_000 });
  const whole = await small.load(lowerCase);
  const large = small.run({
    guests: [{ module: whole }],
    input: pieces(3, Buffer.alloc(500)),
    ...times,
  });
  await fails("input-too-large", collect(large.output));
  await small.close();
});

test("an error of the input fails the run, and a guest that reads nothing does not hold it up", async () => {
  const module = await streams.load(identity);
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("first");
    throw new Error("the disk is damaged");
  }
  const run = streams.run({ guests: [{ module }], input: broken(), ...times });
  await assert.rejects(collect(run.output), /the disk is damaged/);

  const deaf = await streams.load(assembleCommand("(call $exit (i32.const 0))"));
  const piece = Buffer.alloc(1024 * 1024);
  const guests = [{ module }, { module: deaf }];
  const ignored = streams.run({ guests, input: pieces(40, piece), ...times });
  assert.equal(await collect(ignored.output), "");
});

test("a cancelled run ends, one whose reader leaves as well, and both free their place", async () => {
  const copy = await streams.load(identity);
  const slow = await streams.load(spin);
  const cancelled = streams.run({ guests: [{ module: slow }], input: only("x"), ...times });
  setTimeout(() => cancelled.cancel(), 100);
  await fails("cancelled", collect(cancelled.output));
  const piece = Buffer.alloc(1024 * 1024);
  const left = streams.run({ guests: [{ module: copy }], input: pieces(50, piece), ...times });
  for await (const chunk of left.output) if (chunk.length > 0) break;
  await fails("cancelled", left.result);
  const next = streams.run({ guests: [{ module: copy }], input: only("next"), ...times });
  assert.equal(await collect(next.output), "next");
  assert.deepEqual(streams.counts, { running: 0, waiting: 0 });
});

test("many runs take no more memory than some, and a signal that outlives them does not keep them", async () => {
  const module = await streams.load(identity);
  const { signal } = new AbortController();
  const piece = Buffer.alloc(4_096, 5);
  const runOne = async (): Promise<void> => {
    const run = streams.run({ guests: [{ module }], input: pieces(1, piece), ...times });
    run.cancelWith(signal);
    for await (const chunk of run.output) assert.equal(chunk[0], 5);
  };
  const runMany = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index += 1) await runOne();
  };
  await runMany(20);
  const before = process.memoryUsage.rss();
  await runMany(500);
  const grown = (process.memoryUsage.rss() - before) / (1024 * 1024);
  assert.ok(grown < 100, `grown by ${grown} MiB`);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a signal ends its run, also if it was aborted before", async () => {
  const module = await streams.load(spin);
  const stopping = new AbortController();
  const run = streams.run({ guests: [{ module }], input: only(""), ...times });
  run.cancelWith(stopping.signal);
  stopping.abort();
  await fails("cancelled", run.result);
  const late = streams.run({ guests: [{ module }], input: only(""), ...times });
  late.cancelWith(stopping.signal);
  await fails("cancelled", late.result);
});

test("a module never holds all places, and the queue has a limit", async () => {
  const pool = new GuestStreams({ waitingMax: 2 });
  const [slow, copy] = await Promise.all([pool.load(spin), pool.load(identity)]);
  const call = { guests: [{ module: slow }], workingMs: 500, wallMs: 5_000 };
  const runs = Array.from({ length: 3 }, () => pool.run({ ...call, input: only("x") }));
  assert.deepEqual(pool.counts, { running: 1, waiting: 2 });
  await fails("overloaded", pool.run({ ...call, input: only("x") }).result);
  runs[2]!.cancel();
  await fails("cancelled", runs[2]!.result);
  const quick = pool.run({ guests: [{ module: copy }], input: only("quick"), ...times });
  assert.equal(await collect(quick.output), "quick");
  await fails("time-limit", runs[0]!.result);
  await pool.close();
  await fails("closed", runs[1]!.result);
  await fails("closed", pool.load(spin));
});

test("bad modules are refused with their reason", async () => {
  await fails("invalid-module", streams.load(Buffer.from("no module")));
  await fails("unsupported-module", streams.load(assemble("(module)")));
  const foreign = assemble(`(module (import "env" "x" (func)) (memory (export "memory") 1)
    (func (export "_start")))`);
  assert.match(await fails("unsupported-module", streams.load(foreign)), /env\.x/);
  const huge = assembleTransform(pack("(i32.const 0)", "(i32.const 0)"), "5000");
  await fails("memory-limit", streams.load(huge));
  const lying = await streams.load(assembleTransform(pack("(i32.const -1)", "(i32.const 9)")));
  const run = streams.run({ guests: [{ module: lying }], input: only("x"), ...times });
  await fails("invalid-result", collect(run.output));
});
