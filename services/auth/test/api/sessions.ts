// Sessions: list, end, invalidate, silent rotation, lifetimes, cookies and origins, restart, two nodes.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { STAGE_KINDS, startStage } from "../stage.ts";

const ACCOUNT = "/api/v1/auth/account";
const HOUR_MS = 3_600_000;

interface Item {
  id: string;
  device: string;
  current: boolean;
  amr: string[];
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`sessions on ${kind}`, { skip }, () => {
    test("each session is listed with its device and can be ended individually", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      const phone = await call(stage, "POST", "/api/v1/auth/login", {
        body: { username: "ada", password: person.password },
        headers: {
          "User-Agent": "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0) Version/19.0 Safari/604.1",
        },
      });
      const list = await expectStatus(200, stage, "GET", "/api/v1/sessions", {
        token: person.token,
      });
      const { sessions } = list.body as never as { sessions: Item[] };
      assert.deepEqual(
        sessions
          .map(({ device, current, amr }) => ({ device, current, amr }))
          .sort((a, b) => a.device.localeCompare(b.device)),
        [
          { device: "Node.js", current: true, amr: ["pwd"] },
          { device: "Safari on iPhone", current: false, amr: ["pwd"] },
        ],
      );
      assert.ok(!JSON.stringify(list.body).includes("hash"));
      const other = sessions.find(({ current }) => !current)!;
      await expectStatus(204, stage, "DELETE", `/api/v1/sessions/${other.id}`, {
        token: person.token,
      });
      await expectStatus(404, stage, "DELETE", `/api/v1/sessions/${other.id}`, {
        token: person.token,
      });
      const { session_token, access_token } = phone.body as Record<string, string>;
      for (const token of [session_token, access_token]) {
        await expectStatus(401, stage, "GET", ACCOUNT, { token });
      }
      await expectStatus(200, stage, "GET", ACCOUNT, { token: person.token });
      await stage.close();
    });

    test("only administrators can list and end sessions of others", async () => {
      const stage = await startWithAdmin(await prepare());
      const [alice, bob] = [await join(stage, "alice"), await join(stage, "bob")];
      const root = await signIn(stage, ADMIN);
      const list = await expectStatus(200, stage, "GET", `/api/v1/sessions?user_id=${bob.id}`, {
        token: root.token,
      });
      const [item] = (list.body as never as { sessions: Item[] }).sessions;
      await expectStatus(403, stage, "GET", `/api/v1/sessions?user_id=${bob.id}`, {
        token: alice.token,
      });
      await expectStatus(404, stage, "DELETE", `/api/v1/sessions/${item!.id}`, {
        token: alice.token,
      });
      await expectStatus(403, stage, "POST", "/api/v1/sessions/invalidate", {
        token: alice.token,
        body: { user_id: bob.id },
      });
      await expectStatus(200, stage, "GET", ACCOUNT, { token: bob.token });
      const ended = await expectStatus(200, stage, "POST", "/api/v1/sessions/invalidate", {
        token: root.token,
        body: { user_id: bob.id },
      });
      assert.deepEqual(ended.body, { invalidated: 1 });
      await expectStatus(401, stage, "GET", ACCOUNT, { token: bob.token });
      await expectStatus(404, stage, "POST", "/api/v1/sessions/invalidate", {
        token: root.token,
        body: { user_id: "nobody" },
      });
      await stage.close();
    });

    test("in the second half of its lifetime a token is renewed; the old one stays valid for 30 s", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      stage.clock.advance(11 * HOUR_MS);
      let answer = await expectStatus(200, stage, "GET", ACCOUNT, { token: person.session });
      assert.equal(answer.headers.get("x-session-token"), null);
      stage.clock.advance(2 * HOUR_MS);
      const many = await Promise.all(
        Array.from({ length: 16 }, () =>
          expectStatus(200, stage, "GET", ACCOUNT, { token: person.session }),
        ),
      );
      const renewed = many.flatMap(({ headers }) => headers.get("x-session-token") ?? []);
      assert.equal(renewed.length, 1);
      answer = await expectStatus(200, stage, "GET", ACCOUNT, { token: renewed[0] });
      assert.equal(answer.headers.get("x-session-token"), null);
      stage.clock.advance(31_000);
      await expectStatus(401, stage, "GET", ACCOUNT, { token: person.session });
      await expectStatus(200, stage, "GET", ACCOUNT, { token: renewed[0] });
      await stage.close();
    });

    test("a session ends a day after its last use, and after two weeks in any case", async () => {
      const stage = await startStage(await prepare());
      const idle = await join(stage, "idle");
      stage.clock.advance(24 * HOUR_MS + 1);
      await expectStatus(401, stage, "GET", ACCOUNT, { token: idle.session });
      let { session } = await signIn(stage, idle);
      // An hour less than two weeks.
      for (const hours of [15, ...Array.from({ length: 16 }, () => 20)]) {
        stage.clock.advance(hours * HOUR_MS);
        const { headers } = await expectStatus(200, stage, "GET", ACCOUNT, { token: session });
        session = headers.get("x-session-token") ?? session;
      }
      stage.clock.advance(2 * HOUR_MS);
      await expectStatus(401, stage, "GET", ACCOUNT, { token: session });
      await stage.close();
    });

    test("a cookie allows reads, and writes only from the service's own origin", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      const Cookie = `platform_session=${person.session}`;
      await expectStatus(200, stage, "GET", ACCOUNT, { headers: { Cookie } });
      for (const headers of [
        { Cookie },
        { Cookie, Origin: "https://evil.example" },
        { Cookie, Origin: "null" },
        { Cookie, Origin: `${stage.publicUrl}.evil.example` },
      ]) {
        await expectStatus(403, stage, "POST", "/api/v1/auth/logout", { headers });
      }
      const done = await expectStatus(204, stage, "POST", "/api/v1/auth/logout", {
        headers: { Cookie, Origin: stage.publicUrl },
      });
      assert.match(done.headers.getSetCookie().join(), /platform_session=; .*Max-Age=0/);
      await expectStatus(401, stage, "GET", ACCOUNT, { headers: { Cookie } });
      await expectStatus(401, stage, "GET", ACCOUNT, { token: person.token });
      await stage.close();
    });

    test("unsigned and malformed tokens are rejected", async () => {
      const stage = await startStage(await prepare());
      const { session } = await join(stage, "ada");
      // Not at the end, where base64url has unused bits.
      const flipped = session.slice(0, 40) + (session[40] === "A" ? "B" : "A") + session.slice(41);
      for (const token of [
        flipped,
        session.slice(0, -4),
        `${session}AAAA`,
        "ps_",
        `ps_${"A".repeat(86)}`,
        "x",
        "a.b.c",
      ]) {
        const answer = await expectStatus(401, stage, "GET", ACCOUNT, { token });
        assert.match(answer.headers.get("www-authenticate")!, /invalid_token/);
      }
      await stage.close();
    });

    test("ended sessions stay ended after a restart", async () => {
      const settings = { ...(await prepare()), public_url: "http://localhost:8086" };
      const stage = await startStage(settings);
      const ended = await join(stage, "ada");
      await expectStatus(200, stage, "POST", "/api/v1/sessions/invalidate", {
        token: ended.session,
        body: {},
      });
      const kept = await signIn(stage, ended);
      await stage.close();
      const again = await startStage(settings);
      for (const token of [ended.session, ended.token]) {
        await expectStatus(401, again, "GET", ACCOUNT, { token });
      }
      for (const token of [kept.session, kept.token]) {
        await expectStatus(200, again, "GET", ACCOUNT, { token });
      }
      await again.close();
    });

    test("the 101st session of a user ends the least recently seen one", async () => {
      const stage = await startStage({ ...(await prepare()), password_hash_concurrency: 2 });
      const person = await join(stage, "ada");
      stage.clock.advance(1000);
      for (let i = 0; i < 100; i += 1) await signIn(stage, person);
      await expectStatus(401, stage, "GET", ACCOUNT, { token: person.session });
      const { token } = await signIn(stage, person);
      const list = await expectStatus(200, stage, "GET", "/api/v1/sessions", { token });
      assert.equal((list.body as never as { sessions: Item[] }).sessions.length, 100);
      await stage.close();
    });
  });
}

test(
  "sessions ended on one node are ended on the other immediately",
  { skip: STAGE_KINDS[1]!.skip },
  async () => {
    const settings = { ...(await STAGE_KINDS[1]!.prepare()), public_url: "http://localhost:8086" };
    const [one, two] = [await startStage(settings), await startStage(settings)];
    const person = await join(one, "ada");
    for (const token of [person.token, person.session]) {
      await expectStatus(200, two, "GET", ACCOUNT, { token });
    }
    await expectStatus(200, two, "POST", "/api/v1/sessions/invalidate", {
      token: person.token,
      body: {},
    });
    for (const token of [person.token, person.session]) {
      await expectStatus(401, one, "GET", ACCOUNT, { token });
    }
    await one.close();
    await two.close();
  },
);
