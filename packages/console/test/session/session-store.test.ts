// The contract of stores of sessions, on both: in memory, and in a real Redis that two stores share.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test, type TestContext } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { findRedisSkip, startRedis } from "@platform/redis/testing";
import { MemorySessions } from "../../src/session/memory-sessions.ts";
import { nameSession, SESSIONS_MAX, type SessionStore } from "../../src/session/session-store.ts";
import type { Grant, IdentityTokens } from "../../src/session/session.ts";
import { createMovedClock } from "../stage.ts";
import { openRedisSessions } from "./redis-stage.ts";

const HOUR_MS = 3_600_000;
const GRANT: Grant = {
  method: "credentials",
  user: { id: "operator", name: "operator" },
  isAdmin: true,
  permissions: ["users:read"],
  roles: ["admin"],
  credentials: new Map([["notify", { kind: "bearer", token: "t" }]]),
};
const TOKENS: IdentityTokens = {
  accessToken: "access",
  refreshToken: "refresh",
  idToken: "id",
  renewAtMs: 0,
};

interface Stores {
  /** Two views of the same sessions. */
  one: SessionStore;
  other: SessionStore;
  advance: (ms: number) => void;
}

const kinds: { name: string; skip: string | false; open: (t: TestContext) => Promise<Stores> }[] = [
  {
    name: "in memory",
    skip: false,
    open: () => {
      const { clock, advance } = createMovedClock();
      const store = new MemorySessions(clock);
      return Promise.resolve({ one: store, other: store, advance });
    },
  },
  {
    name: "in Redis",
    skip: findRedisSkip(),
    open: async (t) => {
      const { url } = await startRedis(t, await findFreePort());
      const { clock, advance } = createMovedClock();
      const keys = [randomBytes(32)];
      const one = await openRedisSessions(t, { url, clock, keys });
      const other = await openRedisSessions(t, { url, clock, keys });
      return { one, other, advance };
    },
  },
];

for (const { name, skip, open } of kinds) {
  describe(`sessions ${name}`, { skip }, () => {
    test("a session is read as it began, until it ends", async (t) => {
      const { one, other } = await open(t);
      const { token, session } = await one.begin({ ...GRANT, tokens: TOKENS });
      assert.equal(session.id, nameSession(token));
      const found = await other.find(session.id);
      assert.deepEqual(found, session);
      assert.deepEqual((await other.end(session.id))?.id, session.id);
      assert.equal(await one.find(session.id), undefined);
      assert.equal(await one.use(session.id), undefined);
      assert.equal(await one.end(session.id), undefined);
      assert.equal(await one.find(nameSession("another token")), undefined);
    });

    test("a session ends after an hour without use, and after twelve hours in any case", async (t) => {
      const { one, other, advance } = await open(t);
      const { session: idle } = await one.begin(GRANT);
      advance(HOUR_MS - 1_000);
      assert.ok(await other.find(idle.id), "reading does not count as use");
      advance(1_001);
      assert.equal(await other.use(idle.id), undefined);
      const { session: used } = await one.begin(GRANT);
      for (let half = 1; half < 24; half += 1) {
        advance(HOUR_MS / 2);
        assert.ok(await other.use(used.id), `after ${half / 2} hours`);
      }
      advance(HOUR_MS / 2);
      assert.equal(await other.use(used.id), undefined);
    });

    test("beyond the maximum the session that was unused for longest ends", async (t) => {
      const { one, other, advance } = await open(t);
      const first = (await one.begin(GRANT)).session.id;
      advance(1);
      const second = (await one.begin(GRANT)).session.id;
      advance(1);
      assert.ok(await other.use(first), "used, so that it is not the oldest any more");
      for (let count = 2; count <= SESSIONS_MAX; count += 1) {
        advance(1);
        await one.begin(GRANT);
      }
      assert.ok(await other.find(first));
      assert.equal(await other.find(second), undefined);
    });

    test("concurrent changes of one session are all kept", async (t) => {
      const { one, other } = await open(t);
      const { session } = await one.begin({ ...GRANT, credentials: new Map() });
      const ids = ["auth", "gate", "notify", "pulse", "runtime", "tunnel", "vault"] as const;
      await Promise.all(
        ids.map((id, at) =>
          (at % 2 === 0 ? one : other).update(session.id, ({ credentials }) => ({
            credentials: new Map([...credentials, [id, { kind: "bearer", token: id }]]),
          })),
        ),
      );
      const changed = await one.find(session.id);
      assert.deepEqual([...changed!.credentials.keys()].sort(), [...ids]);
      await one.end(session.id);
      assert.equal(await other.update(session.id, () => ({})), undefined);
      assert.equal(await other.find(session.id), undefined, "a change does not revive it");
    });

    test("a renewal that many ask for at a time happens once", async (t) => {
      const { one, other } = await open(t);
      const { session } = await one.begin({ ...GRANT, tokens: TOKENS });
      let count = 0;
      const renew = (store: SessionStore) =>
        store.renew(
          session.id,
          ({ tokens }) => tokens?.accessToken === "access",
          async () => {
            count += 1;
            await new Promise((resolve) => setTimeout(resolve, 50));
            return { tokens: { ...TOKENS, accessToken: `renewed ${count}` } };
          },
        );
      const renewed = await Promise.all([one, other, one, other, other].map(renew));
      assert.equal(count, 1);
      for (const one_ of renewed) assert.equal(one_?.tokens?.accessToken, "renewed 1");
      const after = await renew(other);
      assert.deepEqual([count, after?.tokens?.accessToken], [1, "renewed 1"]);
    });

    test("a failed renewal leaves the session, and the next one may succeed", async (t) => {
      const { one, other } = await open(t);
      const { session } = await one.begin({ ...GRANT, tokens: TOKENS });
      const failed = one.renew(
        session.id,
        () => true,
        () => Promise.reject(new Error("identity is down")),
      );
      await assert.rejects(failed, /identity is down/);
      const renewed = await other.renew(
        session.id,
        () => true,
        () => Promise.resolve({ tokens: { ...TOKENS, accessToken: "second" } }),
      );
      assert.equal(renewed?.tokens?.accessToken, "second");
      await one.end(session.id);
      const ended = await other.renew(
        session.id,
        () => true,
        () => assert.fail("a session that has ended is not renewed"),
      );
      assert.equal(ended, undefined);
    });

    test("identity ends one session, or all of a subject", async (t) => {
      const { one, other } = await open(t);
      const begin = async (sub: string, sid: string | undefined): Promise<string> =>
        (await one.begin({ ...GRANT, subject: { sub, sid } })).session.id;
      const first = await begin("ada", "1");
      const second = await begin("ada", "2");
      const unnamed = await begin("ada", undefined);
      const bob = await begin("bob", "3");
      const operator = (await one.begin(GRANT)).session.id;
      const list = async (): Promise<string[]> => {
        const all = [first, second, unnamed, bob, operator];
        const live = await Promise.all(all.map(async (id) => (await other.find(id))?.id));
        return live.filter((id) => id !== undefined);
      };
      assert.equal(await other.endSubject({ sub: undefined, sid: "unknown" }), 0);
      assert.equal(await other.endSubject({ sub: "bob", sid: "1" }), 0);
      assert.equal(await other.endSubject({ sub: undefined, sid: "1" }), 1);
      assert.deepEqual(await list(), [second, unnamed, bob, operator]);
      assert.equal(await other.endSubject({ sub: "ada", sid: undefined }), 2);
      assert.deepEqual(await list(), [bob, operator]);
    });

    test("an end is reported once, whatever ends the session", async (t) => {
      const { one, other, advance } = await open(t);
      const ended: string[] = [];
      const begin = async (title: string): Promise<string> => {
        const { session } = await one.begin({ ...GRANT, subject: { sub: title, sid: undefined } });
        other.watch(session.id, (reason) => ended.push(`${title}: ${reason}`));
        return session.id;
      };
      const signedOut = await begin("signed out");
      await one.end(signedOut);
      await one.end(signedOut);
      await begin("logged out");
      await one.endSubject({ sub: "logged out", sid: undefined });
      await begin("expired");
      advance(HOUR_MS);
      await other.sweep();
      await other.sweep();
      assert.deepEqual(ended.sort(), ["expired: ended", "logged out: ended", "signed out: ended"]);
      const kept = await begin("kept");
      const forgotten = (await one.begin(GRANT)).session.id;
      other.watch(forgotten, () => ended.push("forgotten"))();
      other.watch(nameSession("never began"), () => ended.push("never began"));
      await one.end(forgotten);
      await other.sweep();
      assert.equal(ended.length, 4);
      assert.equal(ended[3], "never began", "what ended before it was watched");
      assert.ok(await one.find(kept));
    });
  });
}
