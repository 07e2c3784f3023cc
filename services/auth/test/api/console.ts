// The web console of identity: sign-in with a password, permissions, renewal of its token, sign-out.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ADMIN, call, expectStatus, join, startWithAdmin } from "../client.ts";
import { STAGE_KINDS } from "../stage.ts";

const HOUR_MS = 3_600_000;

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`the console on ${kind}`, { skip }, () => {
    test("a person signs in with a password and acts with their permissions", async () => {
      const stage = await startWithAdmin(await prepare());
      const person = await join(stage, "ada");
      const begin = async (username: string, password: string) => {
        const answer = await call(stage, "POST", "/console/login", {
          body: { username, password },
        });
        return { ...answer, cookie: answer.headers.getSetCookie()[0]?.split(";")[0] ?? "" };
      };
      assert.equal((await begin("ada", "wrong password")).status, 401);
      const ada = await begin("ada", person.password);
      assert.equal(ada.status, 200);
      const { user, is_admin: isAdmin } = ada.body as never as {
        user: { name: string };
        is_admin: boolean;
      };
      assert.deepEqual([user.name, isAdmin], ["ada", false]);
      const headers = { cookie: ada.cookie };
      await expectStatus(200, stage, "GET", "/api/v1/auth/account", { headers });
      await expectStatus(403, stage, "GET", "/api/v1/users", { headers });

      const root = await begin(ADMIN.username, ADMIN.password);
      assert.deepEqual(root.body["permissions"], ["*:*"]);
      const page = { cookie: root.cookie, origin: stage.url };
      await expectStatus(200, stage, "GET", "/api/v1/users", { headers: page });
      const foreign = { headers: { ...page, origin: "https://evil.example" }, body: {} };
      await expectStatus(403, stage, "POST", "/api/v1/groups", foreign);

      const out = { headers: page, body: {} };
      await expectStatus(200, stage, "POST", "/console/logout", out);
      await expectStatus(401, stage, "GET", "/api/v1/users", { headers: page });
      await stage.close();
    });

    test("the session's token is renewed on the server, and never sent to the page", async () => {
      const stage = await startWithAdmin({ ...(await prepare()), session_idle_ms: HOUR_MS });
      const login = await expectStatus(200, stage, "POST", "/console/login", { body: ADMIN });
      const cookie = login.headers.getSetCookie()[0]!.split(";")[0]!;
      for (let round = 0; round < 4; round += 1) {
        stage.clock.advance(0.7 * HOUR_MS);
        const answer = await expectStatus(200, stage, "GET", "/api/v1/auth/account", {
          headers: { cookie },
        });
        assert.equal(answer.headers.get("x-session-token"), null);
        assert.deepEqual(answer.headers.getSetCookie(), []);
      }
      await stage.close();
    });
  });
}
