// The life cycle of signing keys, on both databases.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { openDatabase, type Database } from "@platform/kernel/db";
import { createLogger } from "@platform/kernel/log";
import { createManualClock, type ManualClock } from "@platform/kernel/time";
import { KEY_MIGRATIONS, type KeyTables } from "../../src/database/key.ts";
import { KeyRing, type KeyRingOptions } from "../../src/key/key-ring.ts";
import { createSecretBox } from "@platform/kernel/secrets";
import { generateSigningKey } from "../../src/key/signing-key.ts";
import { onEachDatabase } from "../databases.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const log = createLogger({ service: "test", level: "off" });

onEachDatabase((makeUrl) => {
  const open: { close(): Promise<void> }[] = [];
  const rings: KeyRing[] = [];
  afterEach(async () => {
    for (const ring of rings.splice(0)) ring.stop();
    await Promise.all(open.splice(0).map((database) => database.close()));
  });

  const connect = async (url: string): Promise<Database<KeyTables>> => {
    const database = openDatabase<KeyTables>({ url, service: "auth" });
    open.push(database);
    await database.migrate(KEY_MIGRATIONS);
    return database;
  };

  const startRing = async (
    url: string,
    clock: ManualClock,
    more: Partial<KeyRingOptions> = {},
  ): Promise<KeyRing> => {
    const ring = new KeyRing({
      database: await connect(url),
      box: createSecretBox("auth", [encryptionKey]),
      clock,
      log,
      algorithm: "ES256",
      pollMs: 60_000,
      ...more,
    });
    rings.push(ring);
    await ring.start();
    return ring;
  };
  const encryptionKey = randomBytes(32);

  test("the key survives a restart, and the database contains no private key in plain text", async () => {
    const url = await makeUrl();
    const clock = createManualClock(Date.now());
    const first = await startRing(url, clock);
    const second = await startRing(url, clock);
    assert.equal(second.current.active.kid, first.current.active.kid);
    const database = await connect(url);
    const stored = await database.db.selectFrom("auth_signing_keys").selectAll().execute();
    assert.equal(stored.length, 1);
    assert.doesNotMatch(stored[0]!.private_key, /PRIVATE KEY/);
    const members = Object.keys(first.current.jwks.keys[0]!).sort();
    assert.deepEqual(members, ["alg", "crv", "kid", "kty", "use", "x", "y"]);
  });

  test("nodes that start concurrently on an empty database agree on one key", async () => {
    const url = await makeUrl();
    await connect(url);
    const clock = createManualClock(Date.now());
    const nodes = await Promise.all([1, 2, 3, 4].map(() => startRing(url, clock)));
    await Promise.all(nodes.map((node) => node.refresh()));
    assert.equal(new Set(nodes.map((node) => node.current.active.kid)).size, 1);
  });

  test("a scheduled successor is published a day ahead, then signs, and the old key stays until its tokens are gone", async () => {
    const url = await makeUrl();
    const clock = createManualClock(Date.now());
    const [one, two] = [await startRing(url, clock), await startRing(url, clock)];
    const old = one.current.active.kid;
    const { kid } = await one.rotate({ mode: "scheduled" });
    const follow = (): Promise<unknown> => Promise.all([one.refresh(), two.refresh()]);
    await follow();
    for (const node of [one, two]) {
      assert.equal(node.current.active.kid, old);
      assert.deepEqual(
        node.current.jwks.keys.map((key) => key.kid),
        [old, kid],
      );
    }
    await assert.rejects(one.rotate({ mode: "scheduled" }), { code: "conflict" });
    clock.advance(DAY_MS);
    await follow();
    for (const node of [one, two]) assert.equal(node.current.active.kid, kid);
    clock.advance(DAY_MS + HOUR_MS - 1);
    await follow();
    assert.ok(two.peek(old), "kept for the token's life and a day");
    clock.advance(1);
    await follow();
    assert.equal(two.peek(old), undefined);
  });

  test("keys rotate automatically by age", async () => {
    const url = await makeUrl();
    const clock = createManualClock(Date.now());
    const ring = await startRing(url, clock);
    const old = ring.current.active.kid;
    clock.advance(29 * DAY_MS);
    await ring.refresh();
    await ring.refresh();
    assert.equal(ring.current.published.length, 2);
    assert.equal(ring.current.active.kid, old);
    clock.advance(DAY_MS);
    await ring.refresh();
    assert.notEqual(ring.current.active.kid, old);
    assert.ok(ring.ageSeconds < 1);
  });

  test("an immediate rotation removes the revoked key on every node", async () => {
    const url = await makeUrl();
    const clock = createManualClock(Date.now());
    const [one, two] = [await startRing(url, clock), await startRing(url, clock)];
    const old = one.current.active.kid;
    const { kid } = await one.rotate({ mode: "immediate", revokeKid: old });
    assert.equal(one.current.active.kid, kid);
    assert.equal(one.peek(old), undefined);
    assert.ok(await two.find(kid), "an unknown kid is looked up at once");
    assert.equal(two.current.active.kid, kid);
    assert.equal(two.peek(old), undefined);
    await assert.rejects(one.rotate({ mode: "immediate", revokeKid: "none" }), {
      code: "not_found",
    });
    const states = (await one.list()).map((key) => key.state);
    assert.deepEqual(states, ["active", "revoked"]);
  });

  test("nodes that rotate concurrently create one successor", async () => {
    const url = await makeUrl();
    const clock = createManualClock(Date.now());
    const nodes = [await startRing(url, clock), await startRing(url, clock)];
    const made = await Promise.allSettled(nodes.map((node) => node.rotate({ mode: "scheduled" })));
    assert.ok(made.some(({ status }) => status === "fulfilled"));
    await nodes[0]!.refresh();
    assert.equal(nodes[0]!.current.published.length, 2);
  });

  test("a node that has decided on an old view creates no second successor", async () => {
    const url = await makeUrl();
    const clock = createManualClock(Date.now());
    const quick = await startRing(url, clock);
    let isRotating = false;
    const database = await connect(url);
    const db = database.db.withPlugin({
      transformQuery: ({ node }) => node,
      // After each read of the late node, before it goes on, the other one tries to rotate.
      transformResult: async ({ result }) => {
        if (isRotating) await Promise.allSettled([quick.rotate({ mode: "scheduled" })]);
        return result;
      },
    });
    const late = await startRing(url, clock, { database: { ...database, db } });
    isRotating = true;
    const { kid } = await late.rotate({ mode: "scheduled" });
    isRotating = false;
    await late.refresh();
    assert.equal(late.current.published.length, 2);
    assert.ok(late.peek(kid), "the successor of the other node is the answer");
  });

  test("rows move to a new first encryption key, and the old one can be removed", async () => {
    const url = await makeUrl();
    const clock = createManualClock(Date.now());
    const fresh = randomBytes(32);
    const { kid } = (await startRing(url, clock)).current.active;
    await startRing(url, clock, { box: createSecretBox("auth", [fresh, encryptionKey]) });
    const third = await startRing(url, clock, { box: createSecretBox("auth", [fresh]) });
    assert.equal(third.current.active.kid, kid);
    await assert.rejects(startRing(url, clock), /PLATFORM_AUTH_ENCRYPTION_KEYS/);
  });

  test("a key file becomes the first key, and a key of another type fails the start", async () => {
    const folder = mkdtempSync(join(tmpdir(), "auth-key-"));
    try {
      const key = await generateSigningKey("ES256");
      const seedPath = join(folder, "key.pem");
      writeFileSync(seedPath, key.pem);
      const clock = createManualClock(Date.now());
      const ring = await startRing(await makeUrl(), clock, { seedPath });
      assert.equal(ring.current.active.kid, key.kid);
      const other = startRing(await makeUrl(), clock, { seedPath, algorithm: "RS256" });
      await assert.rejects(other, /an RS256 key is RSA/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("a changed algorithm creates a new key, and earlier tokens stay verifiable", async () => {
    const url = await makeUrl();
    const clock = createManualClock(Date.now());
    const before = (await startRing(url, clock)).current.active.kid;
    const ring = await startRing(url, clock, { algorithm: "RS256" });
    assert.equal(ring.current.active.algorithm, "RS256");
    assert.ok(ring.peek(before));
  });
});
