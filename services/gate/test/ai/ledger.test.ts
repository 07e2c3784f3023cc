// The ledger of AI routes: what workers have written is counted once, whatever ends when.
import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLogger } from "@platform/kernel/log";
import { LedgerWriter } from "../../src/ai/ledger/ledger-writer.ts";
import { AiLedger } from "../../src/control/ai-ledger.ts";
import { ADJUSTMENT, LedgerDays } from "../../src/control/ledger-days.ts";
import { AI_ACCOUNTS_BYTES, AiAccounts, DAY_MS, readDay } from "../../src/shared-state/index.ts";
import { accountKey, makeAccountTag } from "../../src/ai/ledger/accounting.ts";

const SEED = 3;
let threads = 0;

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gate-ledger-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function open(
  folder: string,
  clock = { ms: 20_000 * DAY_MS },
): Promise<{ ledger: AiLedger; accounts: AiAccounts; log: string[] }> {
  const log: string[] = [];
  const accounts = new AiAccounts(new SharedArrayBuffer(AI_ACCOUNTS_BYTES));
  const ledger = new AiLedger({
    folder,
    accounts,
    seed: SEED,
    readTimeMs: () => clock.ms,
    log: createLogger({ service: "gate", format: "json", write: (line) => void log.push(line) }),
    hasBudget: () => false,
  });
  await ledger.open();
  return { ledger, accounts, log };
}

function openWriter(ledger: AiLedger): { writer: LedgerWriter; instance: string } {
  const instance = `1-${process.pid}-${++threads}`;
  ledger.addInstance(instance);
  const writer = new LedgerWriter({ folder: ledger.folder, instance, onError: assert.fail });
  return { writer, instance };
}

const ENTRY = { day: 20_000, tenant: "acme", route: "/", model: "m", pico: "100", tokens: 10 };

test("results count instead of their reservations; an open reservation counts when its worker ends", async (t) => {
  const { ledger } = await open(makeFolder(t));
  const { writer, instance } = openWriter(ledger);
  const first = writer.reserve(ENTRY);
  writer.reserve({ ...ENTRY, pico: "1000" });
  writer.settle({ id: first, pico: "40", tokens: 4 });
  await setImmediate();
  ledger.refresh();
  assert.equal(ledger.days.readSpent("acme", 20_000), 40n);
  assert.equal(ledger.readReserved("acme", 20_000), 1_000n);
  ledger.removeInstance(instance);
  assert.equal(ledger.days.readSpent("acme", 20_000), 1_040n);
  assert.equal(ledger.readReserved("acme", 20_000), 0n);
  writer.close();
});

test("results of a turn are written together, before the next reservation", async (t) => {
  const { ledger } = await open(makeFolder(t));
  const { writer } = openWriter(ledger);
  const [first, second] = [writer.reserve(ENTRY), writer.reserve(ENTRY)];
  writer.settle({ id: first, pico: "1", tokens: 1 });
  writer.settle({ id: second, pico: "2", tokens: 1 });
  const third = writer.reserve(ENTRY);
  ledger.refresh();
  assert.equal(ledger.days.readSpent("acme", 20_000), 3n);
  assert.equal(ledger.readReserved("acme", 20_000), 100n);
  writer.settle({ id: third, pico: "4", tokens: 1 });
  writer.close();
  ledger.refresh();
  assert.equal(ledger.days.readSpent("acme", 20_000), 7n);
  await setImmediate();
});

test("a start after kill -9 counts everything once, whether the sums were stored or not", async (t) => {
  const folder = makeFolder(t);
  const before = await open(folder);
  const { writer } = openWriter(before.ledger);
  const stored = writer.reserve(ENTRY);
  await before.ledger.save();
  writer.settle({ id: stored, pico: "60", tokens: 6 });
  writer.reserve({ ...ENTRY, pico: "7" });
  writer.close();
  // The end of a record that was being written when the power went.
  const [file] = readdirSync(before.ledger.folder).filter((name) => name.endsWith(".ledger"));
  appendFileSync(join(before.ledger.folder, file!), '0000 {"k":"res');
  for (let start = 0; start < 3; start++) {
    const { ledger, accounts } = await open(folder);
    assert.equal(ledger.days.readSpent("acme", 20_000), 67n);
    const account = accounts.find(makeAccountTag(accountKey("acme"), SEED))!;
    assert.equal(accounts.read(account, 20_000), 67n, "budgets continue");
    assert.deepEqual(
      readdirSync(ledger.folder).filter((name) => name.endsWith(".ledger")),
      [],
    );
  }
});

test("files grow, are replaced and removed; none of their records is lost or counted twice", async (t) => {
  const folder = makeFolder(t);
  const { ledger } = await open(folder);
  const { writer } = openWriter(ledger);
  const long = "x".repeat(4_000);
  for (let index = 0; index < 2_500; index++) {
    const id = writer.reserve({ ...ENTRY, model: long });
    if (index % 1_000 === 0) await ledger.save();
    writer.settle({ id, pico: "1", tokens: 1 });
  }
  await setImmediate();
  const files = readdirSync(ledger.folder).filter((name) => name.endsWith(".ledger"));
  assert.ok(files.length >= 2, files.join());
  await ledger.save();
  assert.equal(ledger.days.readSpent("acme", 20_000), 2_500n);
  assert.equal(readdirSync(ledger.folder).filter((name) => name.endsWith(".ledger")).length, 1);
  writer.close();
  const again = await open(folder);
  assert.equal(again.ledger.days.readSpent("acme", 20_000), 2_500n);
});

test("a damaged line is reported, is not counted, and its file is kept", async (t) => {
  const folder = makeFolder(t);
  const before = await open(folder);
  const { writer } = openWriter(before.ledger);
  writer.settle({ id: writer.reserve(ENTRY), pico: "5", tokens: 1 });
  writer.settle({ id: writer.reserve(ENTRY), pico: "6", tokens: 1 });
  writer.close();
  const name = readdirSync(before.ledger.folder).find((file) => file.endsWith(".ledger"))!;
  const path = join(before.ledger.folder, name);
  writeFileSync(path, readFileSync(path, "utf8").replace('"pico":"6"', '"pico":"9"'));
  const { ledger, log } = await open(folder);
  // The reservation of the damaged result counts in full.
  assert.equal(ledger.days.readSpent("acme", 20_000), 105n);
  assert.match(log.join("\n"), /ledger is damaged/);
  assert.ok(readdirSync(ledger.folder).includes(name));
});

test("damaged sums stop the start, with the name of the file", async (t) => {
  const folder = makeFolder(t);
  const { ledger } = await open(folder);
  await ledger.adjust("acme", 5n);
  for (const name of readdirSync(ledger.folder))
    writeFileSync(join(ledger.folder, name), "damaged");
  await assert.rejects(open(folder), /ledger\.json is not usable/);
});

test("corrections count, survive, and may be negative", async (t) => {
  const folder = makeFolder(t);
  const { ledger, accounts } = await open(folder);
  await ledger.adjust("acme", 500n);
  await ledger.adjust("acme", -200n);
  const account = accounts.find(makeAccountTag(accountKey("acme"), SEED))!;
  assert.equal(accounts.read(account, 20_000), 300n);
  const again = await open(folder);
  assert.equal(again.ledger.days.readSpent("acme", 20_000), 300n);
  const [day] = await again.ledger.listDays(0, 20_000);
  assert.equal(day?.sums[0]?.route, ADJUSTMENT);
});

test("a correction that cannot be stored has no effect, and can be repeated", async (t) => {
  const folder = makeFolder(t);
  const { ledger, accounts } = await open(folder);
  const blocked = join(folder, "ai", "ledger.json");
  mkdirSync(blocked, { recursive: true });
  await assert.rejects(ledger.adjust("acme", 500n));
  const account = accounts.find(makeAccountTag(accountKey("acme"), SEED))!;
  assert.equal(accounts.read(account, 20_000), 0n);
  assert.equal(ledger.days.readSpent("acme", 20_000), 0n);
  rmSync(blocked, { recursive: true });
  await ledger.adjust("acme", 500n);
  assert.equal(accounts.read(account, 20_000), 500n);
  const again = await open(folder);
  assert.equal(again.ledger.days.readSpent("acme", 20_000), 500n);
});

test("days move to files of their own and are still found; the oldest go", async (t) => {
  const folder = makeFolder(t);
  const clock = { ms: 20_000 * DAY_MS };
  const { ledger } = await open(folder, clock);
  await ledger.adjust("acme", 1n);
  clock.ms += 10 * DAY_MS;
  await ledger.adjust("acme", 2n);
  assert.equal(ledger.days.has(20_000), false);
  const days = await ledger.listDays(19_990, 20_010);
  assert.deepEqual(
    days.map(({ day, sums }) => [day, sums[0]?.pico]),
    [
      [20_000, "1"],
      [20_010, "2"],
    ],
  );
  clock.ms = (20_000 + 401) * DAY_MS;
  await ledger.adjust("acme", 3n);
  assert.deepEqual(
    (await ledger.listDays(0, readDay(clock.ms))).map(({ day }) => day),
    [20_010, 20_401],
  );
  // The gateway did not run on the days between.
  clock.ms = (20_000 + 900) * DAY_MS;
  const later = await open(folder, clock);
  await later.ledger.adjust("acme", 4n);
  const stored = readdirSync(join(folder, "ai", "days"));
  assert.deepEqual(stored, []);
});

test("tenants and models beyond the bounds are counted together", () => {
  const days = new LedgerDays((tenant) => tenant === "with budget");
  const add = (tenant: string, model: string): void =>
    days.add({ day: 1, tenant, route: "/", model, pico: "1", tokens: 1 }, undefined);
  for (let index = 0; index < 10_100; index++) add(`t${index}`, "m");
  add("with budget", "m");
  for (let index = 0; index < 300; index++) add("t0", `m${index}`);
  const [{ sums } = { sums: [] }] = days.list(1, 1);
  const tenants = new Map<string, bigint>();
  for (const { tenant, pico } of sums)
    tenants.set(tenant, (tenants.get(tenant) ?? 0n) + BigInt(pico));
  assert.equal(tenants.size, 10_002);
  assert.equal(tenants.get("other"), 100n);
  assert.equal(tenants.get("with budget"), 1n);
  assert.equal(sums.filter(({ tenant }) => tenant === "t0").length, 201);
  assert.equal(tenants.get("t0"), 301n);
});
