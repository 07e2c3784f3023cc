// Names in the database: they survive restarts and are given back after the retention time; on SQLite and PostgreSQL.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openDatabase } from "@platform/kernel/db";
import {
  findPostgresSkip,
  startPostgresCluster,
  type PostgresCluster,
} from "@platform/kernel/db-testing";
import { createIdSource } from "@platform/kernel/ids";
import { createManualClock } from "@platform/kernel/time";
import { loadSecret } from "../../src/database/secrets.ts";
import { migrateAll, type TunnelDatabase, type TunnelTables } from "../../src/database/schema.ts";
import { Subjects } from "../../src/name/subjects.ts";
import { TunnelStore } from "../../src/name/tunnel-store.ts";

const DAY_MS = 86_400_000;
const free = (): boolean => false;

function runSuite(makeUrl: () => Promise<string>): void {
  let database: TunnelDatabase;
  const clock = createManualClock(1_800_000_000_000);

  before(async () => {
    database = openDatabase<TunnelTables>({ url: await makeUrl(), service: "tunnel" });
    await migrateAll(database, clock.now());
  });
  after(() => database.close());

  async function openStore(): Promise<TunnelStore> {
    const store = new TunnelStore({
      database,
      clock,
      ids: createIdSource({ clock }),
      namesPerSubjectMax: 5,
      retentionMs: 30 * DAY_MS,
      tcpPorts: { first: 20_000, last: 20_001 },
    });
    await store.load();
    return store;
  }

  const claim = (subject: string, subdomain: string | undefined) => ({
    subject,
    kind: "http" as const,
    target: "3000",
    authRequired: false,
    subdomain,
    clientKey: "k".repeat(43),
  });

  test("a claimed name is there after a restart, with the same id", async () => {
    const row = await (await openStore()).claim(claim("alice", "kept"), free);
    const again = await openStore();
    assert.deepEqual(again.findLabel("kept"), row);
    assert.equal((await again.claim(claim("alice", "kept"), free)).id, row.id);
    await assert.rejects(again.claim(claim("bob", "kept"), free), { code: "conflict" });
  });

  test("two relays on one database do not give a name to two subjects", async () => {
    const [one, two] = [await openStore(), await openStore()];
    await one.claim(claim("alice", "raced"), free);
    await assert.rejects(two.claim(claim("bob", "raced"), free), { code: "conflict" });
  });

  test("an unused name is free after the retention time; one in use is kept", async () => {
    const store = await openStore();
    const used = await store.claim(claim("carol", "used"), free);
    await store.claim(claim("carol", "unused"), free);
    clock.advance(31 * DAY_MS);
    await store.sweep((row) => row.id === used.id);
    assert.equal(store.findLabel("unused"), undefined);
    assert.equal((await openStore()).findLabel("unused"), undefined);
    assert.equal(store.findLabel("used")?.id, used.id);
    await store.claim(claim("dave", "unused"), free);
    await store.noteSeen(used, "hash");
    assert.equal((await openStore()).findLabel("used")?.last_seen_at, clock.now());
  });

  test("a name that was served for longer than the retention time is kept after the disconnect", async () => {
    const store = await openStore();
    const generated = await store.claim(claim("frank", undefined), free);
    const chosen = await store.claim(claim("frank", "always-on"), free);
    for (let day = 0; day < 40; day++) {
      clock.advance(DAY_MS);
      await store.sweep((row) => row.subject === "frank");
    }
    clock.advance(DAY_MS / 2);
    await store.sweep(free);
    assert.equal(store.findLabel("always-on")?.id, chosen.id);
    assert.ok(store.find(generated.id) !== undefined);
    const reopened = await openStore();
    clock.advance(DAY_MS);
    await reopened.sweep(free);
    assert.equal(reopened.find(generated.id), undefined, "generated names are kept for a day");
    assert.equal(reopened.findLabel("always-on")?.id, chosen.id);
  });

  test("names that are claimed at the same time do not exceed the quota", async () => {
    const store = await openStore();
    const labels = Array.from({ length: 12 }, (_, index) => `grace-${index}`);
    const claims = labels.map((label) => store.claim(claim("grace", label), free));
    const settled = await Promise.allSettled(claims);
    assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 5);
    assert.equal(store.list("grace").length, 5);
  });

  test("TCP tunnels get the ports of the range, and keep them", async () => {
    const store = await openStore();
    const tcp = (subject: string, port?: number) => ({
      ...claim(subject, undefined),
      kind: "tcp" as const,
      port,
    });
    const first = await store.claim(tcp("alice"), free);
    assert.equal(first.port, 20_000);
    assert.equal((await store.claim(tcp("bob", 20_001), free)).port, 20_001);
    await assert.rejects(store.claim(tcp("carol", 20_001), free), { code: "conflict" });
    await assert.rejects(store.claim(tcp("carol", 22), free), { code: "validation_failed" });
    await assert.rejects(store.claim(tcp("carol"), free), { code: "unavailable" });
    assert.equal((await (await openStore()).claim(tcp("alice"), free)).id, first.id);
  });

  test("secrets and cut-off subjects survive restarts", async () => {
    const secret = await loadSecret(database, "test");
    assert.equal(secret.length, 32);
    assert.deepEqual(await loadSecret(database, "test"), secret);
    const subjects = new Subjects(database, clock);
    await subjects.cutOff("mallory", "spam");
    const again = new Subjects(database, clock);
    await again.load();
    assert.throws(() => again.expectAllowed("mallory"), { code: "forbidden" });
    await again.readmit("mallory");
    const last = new Subjects(database, clock);
    await last.load();
    last.expectAllowed("mallory");
  });
}

describe("on sqlite", () => {
  const folder = mkdtempSync(join(tmpdir(), "tunnel-store-"));
  runSuite(async () => `sqlite:${join(folder, "tunnel.db")}`);
  after(() => rmSync(folder, { recursive: true, force: true }));
});

describe("on postgres", { skip: findPostgresSkip() ?? false }, () => {
  let cluster: PostgresCluster | undefined;
  before(async () => {
    cluster = await startPostgresCluster();
  });
  runSuite(async () => cluster!.createDatabase());
  after(() => cluster?.stop());
});
