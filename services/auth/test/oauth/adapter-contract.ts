// The contract of the core's adapter with our additions, on both databases.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, test } from "node:test";
import { openDatabase } from "@platform/kernel/db";
import { systemClock } from "@platform/kernel/time";
import { migrateAll, type AuthDatabase, type AuthTables } from "../../src/database/schema.ts";
import { createSecretBox } from "@platform/kernel/secrets";
import { ClientStore } from "../../src/oauth/client/client-store.ts";
import { ItemStore } from "../../src/oauth/token/item-store.ts";
import { createRefreshRotation } from "../../src/oauth/token/refresh-rotation.ts";
import { RevocationList } from "../../src/oauth/token/revocation-list.ts";
import { onEachDatabase } from "../databases.ts";

const box = createSecretBox("auth", [Buffer.alloc(32, 1)]);

onEachDatabase((makeUrl) => {
  let nodes: { database: AuthDatabase; items: ItemStore; revocations: RevocationList }[];
  let aheadMs = 0;
  let request: { clientId: string | undefined; jkt: string | undefined };
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };
  const rotation = createRefreshRotation(Buffer.alloc(32, 2), clock);

  beforeEach(async () => {
    aheadMs = 0;
    request = { clientId: "client", jkt: undefined };
    const url = await makeUrl();
    nodes = [];
    for (let index = 0; index < 2; index += 1) {
      const database = openDatabase<AuthTables>({ url, service: "auth" });
      await migrateAll(database, Date.now());
      const revocations = new RevocationList(database, clock);
      const items = new ItemStore({
        database,
        box,
        clock,
        revocations,
        rotation,
        getRequest: () => request,
      });
      nodes.push({ database, items, revocations });
    }
  });
  afterEach(() => Promise.all(nodes.map(({ database }) => database.close())));

  const newId = (): string => randomBytes(32).toString("base64url");
  const dump = async (): Promise<string> =>
    JSON.stringify(
      await nodes[0]!.database.db.selectFrom("auth_oauth_items").selectAll().execute(),
    );

  describe("the adapter", () => {
    for (const model of ["AccessToken", "Session", "Grant", "Interaction", "DeviceCode"]) {
      test(`what was stored as ${model} is found on the other node until it is destroyed`, async () => {
        const [one, two] = nodes.map(({ items }) => items.createAdapter(model));
        const id = newId();
        await one!.upsert(id, { jti: id, accountId: "user", uid: "sid-1" }, 60);
        const found = await two!.find(id);
        assert.equal(found?.accountId, "user");
        assert.equal(found?.jti, id);
        await one!.upsert(id, { jti: id, accountId: "changed" }, 60);
        assert.equal((await two!.find(id))?.accountId, "changed");
        await two!.destroy(id);
        assert.equal(await one!.find(id), undefined);
        assert.equal(await one!.find(newId()), undefined);
      });
    }

    test("the database contains no id of a token, code, session or device", async () => {
      const ids: string[] = [];
      for (const model of [
        "AuthorizationCode",
        "RefreshToken",
        "Session",
        "Interaction",
        "DeviceCode",
        "PushedAuthorizationRequest",
        "InitialAccessToken",
        "RegistrationAccessToken",
      ]) {
        const id = newId();
        const other = newId();
        ids.push(id, other);
        const naming =
          model === "Interaction" ? { session: { cookie: other }, deviceCode: other } : {};
        const adapter = nodes[0]!.items.createAdapter(model);
        await adapter.upsert(id, { jti: id, ...naming }, 60);
      }
      const text = await dump();
      for (const id of ids) assert.equal(text.includes(id), false);
    });

    test("sessions are found by their uid, device codes by their user code", async () => {
      const { items } = nodes[0]!;
      const id = newId();
      await items.createAdapter("Session").upsert(id, { jti: id, uid: "sid-7" }, 60);
      const device = newId();
      const devices = items.createAdapter("DeviceCode");
      await devices.upsert(device, { jti: device, userCode: "BCDFGHJK" }, 60);
      assert.equal((await items.createAdapter("Session").findByUid("sid-7"))?.uid, "sid-7");
      assert.equal((await devices.findByUserCode("BCDFGHJK"))?.jti, device);
      assert.equal(await devices.findByUserCode("XXXXXXXX"), undefined);
    });

    for (const model of ["AuthorizationCode", "DeviceCode", "PushedAuthorizationRequest"]) {
      test(`of 64 who consume one ${model} at once on two nodes one succeeds`, async () => {
        const id = newId();
        await nodes[0]!.items.createAdapter(model).upsert(id, { jti: id }, 60);
        const outcomes = await Promise.allSettled(
          Array.from({ length: 64 }, (_, index) =>
            nodes[index % 2]!.items.createAdapter(model).consume(id),
          ),
        );
        assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
      });
    }

    test("revoking a grant deletes its items and denies its access tokens", async () => {
      const [one, two] = nodes;
      const grant = newId();
      const token = newId();
      await one!.items.createAdapter("Grant").upsert(grant, { jti: grant }, 60);
      const tokens = one!.items.createAdapter("RefreshToken");
      await tokens.upsert(token, { jti: token, grantId: grant, clientId: "client" }, 60);
      await one!.revocations.noteIssued({
        jti: "jti-1",
        grantId: grant,
        claims: [],
        expiresAt: Date.now() + 60_000,
      });
      await one!.items.createAdapter("AccessToken").revokeByGrantId(grant);
      assert.equal(await two!.items.createAdapter("RefreshToken").find(token), undefined);
      assert.equal(await two!.items.createAdapter("Grant").find(grant), undefined);
      const asked = { jti: "jti-1", kid: "k", client_id: "client" };
      assert.equal(await two!.revocations.isRevoked(asked), true);
      assert.equal(await two!.revocations.isRevoked({ ...asked, jti: "jti-2" }), false);
    });

    test("a proof's id is accepted once, by one of several concurrent requests", async () => {
      const until = Math.floor(Date.now() / 1_000) + 60;
      const taken = await Promise.all(
        Array.from({ length: 32 }, (_, index) =>
          nodes[index % 2]!.items.acceptOnce("proof", until),
        ),
      );
      assert.equal(taken.filter(Boolean).length, 1);
    });

    test("expired items are deleted, redeemed codes a day later", async () => {
      const { items } = nodes[0]!;
      const [session, code] = [newId(), newId()];
      await items.createAdapter("Session").upsert(session, { jti: session }, 60);
      await items.createAdapter("AuthorizationCode").upsert(code, { jti: code }, 60);
      aheadMs = 121_000;
      await items.sweep();
      assert.equal(await items.createAdapter("Session").find(session), undefined);
      assert.ok(await items.createAdapter("AuthorizationCode").find(code));
      aheadMs = 24 * 3_600_000 + 61_000;
      await items.sweep();
      assert.equal(await items.createAdapter("AuthorizationCode").find(code), undefined);
    });
  });

  describe("used refresh tokens", () => {
    const store = async (): Promise<{
      id: string;
      adapter: ReturnType<ItemStore["createAdapter"]>;
    }> => {
      const adapter = nodes[0]!.items.createAdapter("RefreshToken");
      const id = newId();
      await adapter.upsert(id, { jti: id, grantId: "grant", clientId: "client" }, 600);
      return { id, adapter };
    };

    test("may be repeated for 30 s, then they count as stolen", async () => {
      const { id, adapter } = await store();
      await adapter.consume(id);
      aheadMs = 29_000;
      assert.equal((await adapter.find(id))?.consumed, undefined);
      await adapter.consume(id);
      aheadMs = 31_000;
      assert.ok((await adapter.find(id))?.consumed);
      await assert.rejects(adapter.consume(id), { error: "invalid_grant" });
    });

    test("may not be repeated with another DPoP key, or once the successor was used", async () => {
      const { id, adapter } = await store();
      await adapter.consume(id);
      request.jkt = "another";
      assert.ok((await adapter.find(id))?.consumed);
      request.jkt = undefined;
      const successor = rotation.deriveSuccessor(id);
      await adapter.upsert(successor, { jti: successor, grantId: "grant" }, 600);
      assert.equal((await adapter.find(id))?.consumed, undefined);
      await adapter.consume(successor);
      assert.ok((await adapter.find(id))?.consumed);
    });

    test("do not restore a used successor", async () => {
      const { id, adapter } = await store();
      const successor = rotation.deriveSuccessor(id);
      await adapter.upsert(successor, { jti: successor, grantId: "grant" }, 600);
      await adapter.consume(successor);
      await adapter.upsert(successor, { jti: successor, grantId: "grant" }, 600);
      aheadMs = 31_000;
      assert.ok((await adapter.find(successor))?.consumed);
    });
  });

  describe("the deny-list", () => {
    test("its feed returns each entry once, in order, to callers that continue from their position", async () => {
      const [one, two] = nodes;
      const expiresAt = Date.now() + 60_000;
      const add = (node: typeof one, value: string): Promise<void> =>
        node!.revocations.add([{ kind: "jti", value, expiresAt }]);
      await Promise.all(
        Array.from({ length: 20 }, (_, index) => add(nodes[index % 2], `t${index}`)),
      );
      const first = await two!.revocations.readFeed(0);
      assert.equal(first.revocations.length, 20);
      const places = first.revocations.map(({ seq }) => seq);
      assert.deepEqual(
        places,
        places.toSorted((a, b) => a - b),
      );
      await add(one, "late");
      const second = await two!.revocations.readFeed(first.next);
      assert.deepEqual(
        second.revocations.map(({ value }) => value),
        ["late"],
      );
      assert.deepEqual((await two!.revocations.readFeed(second.next)).revocations, []);
    });

    test("an epoch voids tokens of lower epochs only", async () => {
      const [one, two] = nodes;
      const expiresAt = Date.now() + 60_000;
      await one!.revocations.add([{ kind: "sub", value: "user", epoch: 3, expiresAt }]);
      await one!.revocations.add([{ kind: "sub", value: "user", epoch: 2, expiresAt }]);
      const ask = (epoch: number, sub = "user"): Promise<boolean> =>
        two!.revocations.isRevoked({ jti: "j", kid: "k", client_id: "c", sub, epoch });
      assert.deepEqual(await Promise.all([ask(2), ask(3), ask(2, "other")]), [true, false, false]);
    });

    test("entries are forgotten when their tokens have expired", async () => {
      const [one] = nodes;
      await one!.revocations.add([{ kind: "sid", value: "s", expiresAt: Date.now() + 1_000 }]);
      aheadMs = 2_000;
      await one!.revocations.sweep();
      assert.deepEqual((await one!.revocations.readFeed(0)).revocations, []);
    });
  });

  describe("the clients", () => {
    test("secrets are sealed, and a client stays valid after one of its scopes is deleted", async () => {
      const { database } = nodes[0]!;
      const scopes = new Map<string, string[]>([
        ["openid", []],
        ["a", ["a:read"]],
        ["b", ["b:read"]],
      ]);
      const clients = new ClientStore({
        database,
        box,
        clock,
        getScopes: () => scopes,
        getGranted: () => [],
        revoke: async () => {},
        onChange: () => {},
      });
      await clients.save(
        "c1",
        { client_id: "c1", client_secret: "hush-hush", scope: "openid a b" },
        { granted: ["a:*", "b:*"] },
      );
      const rows = await database.db.selectFrom("auth_oauth_clients").selectAll().execute();
      assert.equal(JSON.stringify(rows).includes("hush-hush"), false);
      scopes.delete("b");
      const found = await clients.find("c1");
      assert.equal(found?.["client_secret"], "hush-hush");
      assert.equal(found?.scope, "openid a");
      assert.deepEqual(await clients.list("", 10), [{ client_id: "c1", scope: "openid a" }]);
      scopes.set("b", ["c:write"]);
      assert.equal((await clients.find("c1"))?.scope, "openid a", "another b was never granted");
      assert.equal(await clients.delete("c1"), true);
      assert.equal(await clients.delete("c1"), false);
      assert.equal(await clients.find("c1"), undefined);
    });
  });
});
