// Share links in the database, on SQLite and PostgreSQL: kept, spent once, revoked, and deleted with their tunnel.
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
import { migrateAll, type TunnelDatabase, type TunnelTables } from "../../src/database/schema.ts";
import { loadSecret } from "../../src/database/secrets.ts";
import { TunnelStore } from "../../src/name/tunnel-store.ts";
import { ShareLinks } from "../../src/share/share-links.ts";

const HOUR_MS = 3_600_000;

function runSuite(makeUrl: () => Promise<string>): void {
  let database: TunnelDatabase;
  const clock = createManualClock(1_800_000_000_000);
  const ids = createIdSource({ clock });

  before(async () => {
    database = openDatabase<TunnelTables>({ url: await makeUrl(), service: "tunnel" });
    await migrateAll(database, clock.now());
  });
  after(() => database.close());

  /** As after a restart. */
  async function openLinks(): Promise<ShareLinks> {
    const secret = await loadSecret(database, "share-links");
    const links = new ShareLinks({ database, clock, ids, secret });
    await links.load();
    return links;
  }

  async function openStore(): Promise<TunnelStore> {
    const store = new TunnelStore({
      database,
      clock,
      ids,
      namesPerSubjectMax: 100,
      retentionMs: 24 * HOUR_MS,
      tcpPorts: undefined,
    });
    await store.load();
    return store;
  }

  async function claimTunnel(subdomain: string) {
    const claim = { subject: "alice", kind: "http", target: "3000", authRequired: true } as const;
    return (await openStore()).claim({ ...claim, subdomain }, () => false);
  }

  test("a link is spent only when the database has it", async () => {
    const tunnel = await claimTunnel("failing");
    const secret = await loadSecret(database, "share-links");
    let fails = true;
    const failing = new Proxy(database, {
      get: (target, name) => {
        if (name === "db" && fails) throw new Error("the disk is full");
        return Reflect.get(target, name) as unknown;
      },
    });
    const links = new ShareLinks({ database: failing, clock, ids, secret });
    fails = false;
    await links.load();
    const { share, token } = await links.create(tunnel.id, {
      expiresInMs: HOUR_MS,
      isOneTime: true,
    });
    fails = true;
    await assert.rejects(links.spend(share), /disk is full/);
    assert.equal(links.judge(tunnel.id, token).kind, "valid");
    fails = false;
    assert.deepEqual(await Promise.all([links.spend(share), links.spend(share)]), [true, false]);
    assert.equal(links.judge(tunnel.id, token).kind, "gone");
  });

  test("links of all states are there after a restart, until they expire", async () => {
    const tunnel = await claimTunnel("kept");
    const links = await openLinks();
    const lasting = { expiresInMs: HOUR_MS, isOneTime: false };
    const active = await links.create(tunnel.id, lasting);
    const used = await links.create(tunnel.id, { ...lasting, isOneTime: true });
    const revoked = await links.create(tunnel.id, lasting);
    assert.equal(await links.spend(used.share), true);
    await links.revoke(tunnel.id, revoked.share.id);
    const again = await openLinks();
    assert.deepEqual(again.list(tunnel.id), links.list(tunnel.id));
    const judge = (token: string): string => again.judge(tunnel.id, token).kind;
    assert.deepEqual(
      [active, used, revoked].map(({ token }) => judge(token)),
      ["valid", "gone", "gone"],
    );
    assert.equal(again.admitsCookie(tunnel.id, again.issueCookie(active.share)), true);
    assert.equal(again.admitsCookie(tunnel.id, again.issueCookie(revoked.share)), false);
    clock.advance(HOUR_MS);
    assert.equal(judge(active.token), "gone");
    await again.sweep();
    assert.deepEqual((await openLinks()).list(tunnel.id), []);
    assert.deepEqual(await database.db.selectFrom("tunnel_shares").selectAll().execute(), []);
  });

  test("a one-time link is spent once, also by two relays at the same time", async () => {
    const tunnel = await claimTunnel("once");
    const links = await openLinks();
    const { share } = await links.create(tunnel.id, { expiresInMs: HOUR_MS, isOneTime: true });
    const other = await openLinks();
    const spent = await Promise.all([links, other, links, other].map((one) => one.spend(share)));
    assert.equal(spent.filter(Boolean).length, 1);
  });

  test("links are deleted with their tunnel, and its next owner has none", async () => {
    const tunnel = await claimTunnel("moved");
    const links = await openLinks();
    const options = { expiresInMs: HOUR_MS, isOneTime: false };
    const { token } = await links.create(tunnel.id, options);
    const store = await openStore();
    await store.remove(store.find(tunnel.id)!);
    const next = await claimTunnel("moved");
    const reopened = await openLinks();
    assert.equal(reopened.judge(next.id, token).kind, "forged");
    assert.equal(reopened.judge(tunnel.id, token).kind, "gone");
  });
}

describe("on sqlite", () => {
  const folder = mkdtempSync(join(tmpdir(), "tunnel-links-"));
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
