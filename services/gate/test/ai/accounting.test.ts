// Budgets and token limits over all threads of a process: reserved, refused, settled; and their memory.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { PlatformError } from "@platform/kernel/errors";
import { Accounting, type Reservation } from "../../src/ai/ledger/accounting.ts";
import { SharedAccounts } from "../../src/ai/ledger/shared-accounts.ts";
import { LedgerWriter } from "../../src/ai/ledger/ledger-writer.ts";
import { ModelCall } from "../../src/ai/meter/model-call.ts";
import { Price } from "../../src/ai/price/price-table.ts";
import { findAiKind } from "../../src/ai/shape/ai-shape.ts";
import { JsonScanner } from "../../src/ai/shape/json-scan.ts";
import { readAiRequest } from "../../src/ai/shape/read-request.ts";
import {
  AI_ACCOUNTS_BYTES,
  AiAccounts,
  DAY_MS,
  TOKEN_WINDOWS_BYTES,
  TokenWindows,
} from "../../src/shared-state/index.ts";

/** One dollar per token of output, nothing for input: the cost is the bound of the answer. */
const PRICE = new Price({ input: 0, output: 100_000 });
const TENTH = 100_000_000_000n;

class Clock {
  nowMs = 1_000_000;
  timeMs = 20_000 * DAY_MS + 3_600_000;
}

function open(t: TestContext, clock = new Clock()) {
  const folder = mkdtempSync(join(tmpdir(), "gate-accounting-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const accounts = new AiAccounts(new SharedArrayBuffer(AI_ACCOUNTS_BYTES));
  const accounting = new Accounting({
    accounts,
    windows: new TokenWindows(new SharedArrayBuffer(TOKEN_WINDOWS_BYTES)),
    seed: 7,
    readNowMs: () => clock.nowMs,
    readTimeMs: () => clock.timeMs,
    writer: new LedgerWriter({ folder, instance: "1-1-1", onError: assert.fail }),
    shared: new SharedAccounts({
      gateway: "gate",
      readNowMs: () => clock.nowMs,
      onLocal: assert.fail,
      log: assert.fail,
    }),
  });
  const reserve = (tokens: number, tenant = "acme", perMinute?: number): Reservation =>
    // Without Redis there is nothing to wait for.
    accounting.reserve({
      call: makeCall(tokens),
      tenant,
      routeLabel: "/",
      routeLimit: perMinute === undefined ? undefined : { perMinute, by: tenant },
    }) as Reservation;
  return { accounting, reserve, clock };
}

function makeCall(tokens: number, price: Price | undefined = PRICE): ModelCall {
  const tree = new JsonScanner();
  assert.ok(tree.scan(Buffer.from(`{"model":"m","max_tokens":${tokens}}`)));
  const request = readAiRequest({ shape: "completions", isCount: false }, tree);
  return new ModelCall({
    request,
    tree,
    price,
    hidesUsage: false,
    pii: undefined,
    onSettled: () => undefined,
  });
}

function settle(reservation: Reservation, output: number): void {
  const usage = { input: 0, cachedInput: 0, cacheWrite: 0, output };
  reservation.settle({ usage, costPico: PRICE.cost(usage), savedPico: 0n, isEstimated: false });
}

function refused(work: () => unknown): PlatformError {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof PlatformError);
    return error;
  }
  return assert.fail("was not refused");
}

test("a budget holds for what is reserved, and settling gives back what was not used", (t) => {
  const { accounting, reserve, clock } = open(t);
  accounting.setBudgets([{ tenant: "acme", maxPicoPerDay: 3n * TENTH }]);
  const first = reserve(1);
  reserve(1);
  const third = reserve(1);
  const error = refused(() => reserve(1));
  assert.equal(error.code, "insufficient_quota");
  assert.equal(error.status, 429);
  assert.equal(error.headers["x-should-retry"], "false");
  assert.equal(Number(error.headers["Retry-After"]), 23 * 3_600);
  settle(first, 0);
  reserve(1);
  refused(() => reserve(1));
  // More than was reserved counts, too.
  settle(third, 2);
  refused(() => reserve(1));
  reserve(5, "other");
  clock.timeMs += DAY_MS;
  reserve(3);
  refused(() => reserve(1));
});

test("a reservation that ends after midnight belongs to the day on which it began", (t) => {
  const { accounting, reserve, clock } = open(t);
  accounting.setBudgets([{ tenant: "acme", maxPicoPerDay: 2n * TENTH }]);
  const late = reserve(2);
  clock.timeMs += DAY_MS;
  const today = reserve(2);
  settle(late, 0);
  refused(() => reserve(1));
  settle(today, 1);
  reserve(1);
  // A clock that is set back finds the sums of the former day.
  clock.timeMs -= DAY_MS;
  reserve(2);
  refused(() => reserve(1));
});

test("without a price a tenant with a budget in USD is refused; with a price of 0 it is let through", (t) => {
  const { accounting } = open(t);
  const ask = (price: Price | undefined): Reservation =>
    accounting.reserve({
      call: makeCall(1, price),
      tenant: "acme",
      routeLabel: "/",
      routeLimit: undefined,
    }) as Reservation;
  const unpriced = (): Reservation => {
    const call = makeCall(1);
    Object.assign(call, { price: undefined });
    const request = { call, tenant: "acme", routeLabel: "/", routeLimit: undefined };
    return accounting.reserve(request) as Reservation;
  };
  unpriced();
  accounting.setBudgets([{ tenant: "acme", maxPicoPerDay: 0n }]);
  assert.equal(refused(unpriced).code, "model_price_unknown");
  assert.equal(refused(() => ask(PRICE)).code, "insufficient_quota");
  // 0 allows nothing; a budget that is spent allows what costs nothing.
  const free = new Price({ input: 0, output: 0 });
  assert.equal(refused(() => ask(free)).code, "insufficient_quota");
  accounting.setBudgets([{ tenant: "acme", maxPicoPerDay: 1n }]);
  assert.equal(refused(() => ask(PRICE)).code, "insufficient_quota");
  ask(free);
});

test("a file in a request reserves its size, one at an address as much as an image", () => {
  const file = (bytes: number): string => Buffer.alloc(bytes).toString("base64");
  const pdf = (bytes: number): string => `data:application/pdf;base64,${file(bytes)}`;
  const document = (source: object) => ({ type: "document", source });
  const cases: [path: string, part: object, tokens: number][] = [
    ["/chat/completions", { type: "file", file: { file_data: pdf(150_000) } }, 100_000],
    ["/chat/completions", { type: "input_audio", input_audio: { data: file(15_000) } }, 10_000],
    ["/responses", { type: "input_file", file_data: pdf(150_000) }, 100_000],
    ["/responses", { type: "input_file", file_url: `https://a/${"b".repeat(9_000)}` }, 1_500],
    ["/messages", document({ type: "base64", data: file(150_000) }), 100_000],
    ["/messages", document({ type: "base64", data: file(3) }), 1_500],
    ["/messages", document({ type: "base64", data: file(3_000_000) }), 1_000_000],
    ["/messages", { type: "image", source: { type: "base64", data: file(150_000) } }, 1_500],
  ];
  for (const [path, part, tokens] of cases) {
    const message = { role: "user", content: [part] };
    const list = path === "/responses" ? { input: [message] } : { messages: [message] };
    const tree = new JsonScanner();
    assert.ok(tree.scan(Buffer.from(JSON.stringify({ model: "m", ...list }))));
    const request = readAiRequest(findAiKind(path)!, tree);
    const options = { request, tree, price: PRICE, hidesUsage: false, pii: undefined };
    const call = new ModelCall({ ...options, onSettled: () => undefined });
    const { input } = call.reserved;
    assert.ok(
      input >= tokens && input <= tokens + 30,
      `${path} ${JSON.stringify(part).slice(0, 60)}: ${input}`,
    );
    // Without a report, usage is estimated lower, but not as nothing.
    call.settle("answered");
    assert.ok(call.settled!.usage.input >= 1_500 && call.settled!.usage.input <= input, path);
  }
});

test("tokens per minute: of the route and of the tenant, the smaller one counts", (t) => {
  const { accounting, reserve, clock } = open(t);
  accounting.setBudgets([{ tenant: "acme", maxTokensPerMinute: 50 }]);
  const first = reserve(40, "acme", 100);
  const error = refused(() => reserve(20, "acme", 100));
  assert.equal(error.code, "rate_limit_exceeded");
  assert.match(error.headers["RateLimit"]!, /^"tenant-tokens";r=10;t=\d+$/);
  settle(first, 10);
  reserve(40, "acme", 100);
  refused(() => reserve(1, "acme", 100));
  clock.nowMs += 61_000;
  reserve(50, "acme", 100);
  // At most the whole limit is taken.
  clock.nowMs += 61_000;
  reserve(1_000_000, "free", 100);
  assert.match(refused(() => reserve(1, "free", 100)).headers["RateLimit"]!, /^"tokens";r=0/);
  assert.ok(Number(refused(() => reserve(1, "free", 100)).headers["Retry-After"]) <= 61);
});

test("threads that race for the last money get exactly what is there", async () => {
  const buffer = new SharedArrayBuffer(AI_ACCOUNTS_BYTES);
  const worker = `
    const { parentPort, workerData } = require("node:worker_threads");
    import(workerData.module).then(({ AiAccounts }) => {
      const accounts = new AiAccounts(workerData.buffer);
      const gate = new Int32Array(workerData.gate);
      Atomics.add(gate, 0, 1);
      while (Atomics.load(gate, 1) === 0);
      let admitted = 0;
      for (let round = 0; round < 2000; round++)
        if (accounts.reserve(accounts.find(9n), 20000 + Math.floor(round / 200), 10n, 1005n)) admitted++;
      parentPort.postMessage(admitted);
    });`;
  const module = new URL("../../src/shared-state/index.ts", import.meta.url).href;
  const gate = new SharedArrayBuffer(8);
  const threads = [0, 1].map(
    () => new Worker(worker, { eval: true, workerData: { buffer, gate, module } }),
  );
  const outcomes = threads.map(
    (thread) => new Promise<number>((resolve) => thread.once("message", resolve)),
  );
  const view = new Int32Array(gate);
  while (Atomics.load(view, 0) < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  Atomics.store(view, 1, 1);
  const admitted = (await Promise.all(outcomes)).reduce((sum, count) => sum + count, 0);
  // Ten days with money for a hundred each.
  assert.equal(admitted, 1_000);
});
