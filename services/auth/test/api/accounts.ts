// Accounts: register, sign in, throttling, passwords, disabled users, first and last administrator.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { STAGE_KINDS, startStage } from "../stage.ts";

const REGISTER = "/api/v1/auth/register";
const LOGIN = "/api/v1/auth/login";

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`accounts on ${kind}`, { skip }, () => {
    test("the quickstart's paths register and sign in, and the token works", async () => {
      const stage = await startStage({ ...(await prepare()), jwt_algorithm: "RS256" });
      const person = { username: "ada", password: "a fine long password" };
      const made = await expectStatus(201, stage, "POST", "/api/auth/register", { body: person });
      assert.deepEqual(Object.keys((made.body as never as { user: object }).user), [
        "id",
        "username",
        "created_at",
      ]);
      const answer = await expectStatus(200, stage, "POST", "/api/auth/login", { body: person });
      const body = answer.body as never as Record<string, string>;
      assert.equal(body["token_type"], "Bearer");
      assert.equal(body["token"], body["access_token"]);
      assert.ok(body["refresh_token"]);
      const cookies = answer.headers.getSetCookie();
      assert.match(cookies[0]!, /^platform_session=ps_[^;]+; Path=\/; HttpOnly; SameSite=Lax/);
      for (const token of [body["access_token"], body["session_token"]]) {
        const me = await expectStatus(200, stage, "GET", "/api/v1/auth/account", { token });
        assert.equal((me.body as never as { user: { username: string } }).user.username, "ada");
      }
      await stage.close();
    });

    test("equivalent names are registered once by 64 concurrent requests", async () => {
      const stage = await startStage({
        ...(await prepare()),
        registration_hash_queue: 64,
        registrations_per_address_hourly: 64,
      });
      const password = "a fine long password";
      const made = await Promise.all(
        Array.from({ length: 64 }, (_, i) =>
          call(stage, "POST", REGISTER, {
            body: { username: ["Straße", "STRASSE", "ｓtrasse"][i % 3], password },
          }),
        ),
      );
      assert.equal(made.filter(({ status }) => status === 201).length, 1);
      assert.equal(made.filter(({ status }) => status === 409).length, 63);
      await signIn(stage, { username: "strasse", password });
      await stage.close();
    });

    test("invalid registrations are rejected with the reason", async () => {
      const stage = await startStage(await prepare());
      const good = { username: "bob", password: "a fine long password" };
      const cases: [object, RegExp][] = [
        [{ ...good, password: "short" }, /at least 8 characters/],
        [{ ...good, password: "x".repeat(129) }, /at most 128 characters/],
        [{ ...good, password: "Password123" }, /one of the most common/],
        [{ ...good, username: "bobbobbob", password: "BobBobBob" }, /your name/],
        [{ ...good, username: "" }, /username/],
        [{ ...good, username: "a b" }, /letters, digits/],
        [{ ...good, username: "x".repeat(65) }, /1 to 64/],
        [{ ...good, username: "a\u0000b" }, /U\+0000/],
        [{ ...good, email: "nobody" }, /email address/],
        [{ ...good, email: "a@b\r\nBcc: c@d" }, /email address/],
        [{ ...good, admin: true }, /admin/],
        [{ username: "bob" }, /password/],
        [{ username: ["bob"], password: {} }, /username/],
      ];
      for (const [body, message] of cases) {
        const answer = await expectStatus(400, stage, "POST", REGISTER, { body });
        assert.match(JSON.stringify(answer.body), message);
      }
      await expectStatus(413, stage, "POST", REGISTER, {
        body: { ...good, password: "x".repeat(70_000) },
      });
      const raw = await fetch(`${stage.url}${REGISTER}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: '{"username": "bob", ',
      });
      assert.equal(raw.status, 400);
      await expectStatus(201, stage, "POST", REGISTER, {
        body: { ...good, password: "x".repeat(128) },
      });
      await stage.close();
    });

    test("unknown names, wrong passwords and disabled users are indistinguishable", async () => {
      const stage = await startWithAdmin(await prepare());
      const eve = await join(stage, "eve");
      const mallory = await join(stage, "mallory");
      const root = await signIn(stage, ADMIN);
      await expectStatus(200, stage, "PATCH", `/api/v1/users/${mallory.id}`, {
        token: root.token,
        body: { disabled: true },
      });
      const seen = new Set<string>();
      for (const body of [
        { username: "nobody", password: eve.password },
        { username: "eve", password: "wrong" },
        { username: "mallory", password: mallory.password },
      ]) {
        const answer = await expectStatus(401, stage, "POST", LOGIN, { body });
        const { trace_id: _trace, ...problem } = answer.body as Record<string, unknown>;
        seen.add(JSON.stringify(problem));
        assert.ok(answer.headers.get("www-authenticate"));
        assert.deepEqual(answer.headers.getSetCookie(), []);
      }
      assert.equal(seen.size, 1);
      await stage.close();
    });

    test("ten failures throttle the account but not its owner's device, and a success resets the count", async () => {
      const stage = await startStage(await prepare());
      const owner = await join(stage, "owner");
      const first = await call(stage, "POST", LOGIN, {
        body: { username: owner.username, password: owner.password },
      });
      const device = first.headers
        .getSetCookie()
        .find((cookie) => cookie.startsWith("platform_device="))!
        .split(";")[0]!;
      stage.clock.stop();
      const wrong = { username: "OWNER", password: "wrong wrong" };
      const statuses: number[] = [];
      for (let i = 0; i < 12; i += 1) {
        statuses.push((await call(stage, "POST", LOGIN, { body: wrong })).status);
      }
      assert.deepEqual(statuses, [...Array.from({ length: 10 }, () => 401), 429, 429]);
      const right = { username: "owner", password: owner.password };
      const refused = await expectStatus(429, stage, "POST", LOGIN, { body: right });
      assert.equal(refused.headers.get("retry-after"), "1");
      await expectStatus(200, stage, "POST", LOGIN, { body: right, headers: { Cookie: device } });
      await expectStatus(429, stage, "POST", LOGIN, {
        body: right,
        headers: { Cookie: `${device.slice(0, -4)}AAAA` },
      });
      stage.clock.advance(1001);
      await expectStatus(401, stage, "POST", LOGIN, { body: wrong });
      stage.clock.advance(1001);
      await expectStatus(429, stage, "POST", LOGIN, { body: right });
      stage.clock.advance(1000);
      await expectStatus(200, stage, "POST", LOGIN, { body: right });
      await expectStatus(401, stage, "POST", LOGIN, { body: wrong });
      await expectStatus(200, stage, "POST", LOGIN, { body: right });
      await stage.close();
    });

    test("64 concurrent guesses get ten tries", async () => {
      const stage = await startStage(await prepare());
      await join(stage, "target");
      stage.clock.stop();
      const answers = await Promise.all(
        Array.from({ length: 64 }, () =>
          call(stage, "POST", LOGIN, { body: { username: "target", password: "wrong wrong" } }),
        ),
      );
      const tried = answers.filter(({ status }) => status === 401).length;
      assert.ok(tried <= 10, `${tried} tries`);
      assert.equal(tried + answers.filter(({ status }) => status === 429).length, 64);
      await stage.close();
    });

    test("disabling a user ends sessions and tokens immediately, including refresh", async () => {
      const stage = await startWithAdmin(await prepare());
      const person = await join(stage, "leaver");
      const root = await signIn(stage, ADMIN);
      await expectStatus(200, stage, "PATCH", `/api/v1/users/${person.id}`, {
        token: root.token,
        body: { disabled: true },
      });
      for (const token of [person.token, person.session]) {
        await expectStatus(401, stage, "GET", "/api/v1/auth/account", { token });
      }
      await expectStatus(200, stage, "PATCH", `/api/v1/users/${person.id}`, {
        token: root.token,
        body: { disabled: false },
      });
      for (const token of [person.token, person.session]) {
        await expectStatus(401, stage, "GET", "/api/v1/auth/account", { token });
      }
      await signIn(stage, person);
      await stage.close();
    });

    test("a password change ends other sessions and all earlier tokens", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "carol");
      const other = await signIn(stage, person);
      const change = "/api/v1/auth/password/change";
      const next = "another long password";
      await expectStatus(401, stage, "POST", change, {
        token: person.session,
        body: { current_password: "wrong", new_password: next },
      });
      await expectStatus(400, stage, "POST", change, {
        token: person.session,
        body: { current_password: person.password, new_password: "password1" },
      });
      await expectStatus(200, stage, "POST", change, {
        token: person.session,
        body: { current_password: person.password, new_password: next },
      });
      await expectStatus(200, stage, "GET", "/api/v1/auth/account", { token: person.session });
      for (const token of [person.token, other.token, other.session]) {
        await expectStatus(401, stage, "GET", "/api/v1/auth/account", { token });
      }
      await expectStatus(401, stage, "POST", LOGIN, {
        body: { username: "carol", password: person.password },
      });
      await signIn(stage, { username: "carol", password: next });

      // The session continues: it can get new tokens.
      stage.clock.advance(60_000);
      const stepUp = await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/step-up", {
        token: person.session,
        body: { acr_values: "1", max_age: 0 },
      });
      const { challenge } = stepUp.body as never as { challenge: { mfa_token: string } };
      const stepped = await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/verify", {
        body: { mfa_token: challenge.mfa_token, password: next },
      });
      const { access_token: token } = stepped.body as Record<string, string>;
      await expectStatus(200, stage, "GET", "/api/v1/auth/account", { token });
      await stage.close();
    });

    test("the start-up link creates one administrator under concurrency", async () => {
      const settings = await prepare();
      const stage = await startStage(settings);
      const line = stage.log.find((text) => text.includes("no administrator yet"))!;
      const token = /setup\?token=([\w-]+)/.exec(line)![1]!;
      await expectStatus(403, stage, "POST", "/api/v1/auth/setup", {
        body: { ...ADMIN, token: token.replace(/^./, (c) => (c === "A" ? "B" : "A")) },
      });
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, i) =>
          call(stage, "POST", "/api/v1/auth/setup", {
            body: { token, username: `root${i}`, password: ADMIN.password },
          }),
        ),
      );
      assert.equal(answers.filter(({ status }) => status === 201).length, 1);
      await stage.close();
      const again = await startStage(settings);
      assert.ok(!again.log.some((text) => text.includes("no administrator yet")));
      await again.close();
    });

    test("a registered user does not become administrator through the configuration", async () => {
      const settings = await prepare();
      const stage = await startStage(settings);
      await join(stage, ADMIN.username);
      await stage.close();
      await assert.rejects(startWithAdmin(settings), /PLATFORM_AUTH_ADMIN_USER: The name is taken/);
    });

    test("the last administrator cannot be disabled, deleted or unbound", async () => {
      const stage = await startWithAdmin(await prepare());
      const root = await signIn(stage, ADMIN);
      const { token } = root;
      const attempts: [string, string, unknown?][] = [
        ["PATCH", `/api/v1/users/${root.id}`, { disabled: true }],
        ["DELETE", `/api/v1/users/${root.id}`],
        ["PUT", `/api/v1/rbac/users/${root.id}/roles`, { roles: [] }],
        ["DELETE", `/api/v1/rbac/users/${root.id}/roles`, { roles: ["admin"] }],
        ["DELETE", "/api/v1/rbac/roles/admin"],
        ["PUT", "/api/v1/rbac/roles/admin/permissions", { permissions: [] }],
      ];
      for (const [method, path, body] of attempts) {
        await expectStatus(409, stage, method, path, { token, body });
      }
      await expectStatus(200, stage, "GET", "/api/v1/users", { token });
      const second = await join(stage, "second");
      await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${second.id}/roles`, {
        token,
        body: { roles: ["admin"] },
      });
      const both = await Promise.all(
        [root, second].map(({ id }) =>
          call(stage, "DELETE", `/api/v1/rbac/users/${id}/roles`, {
            token,
            body: { roles: ["admin"] },
          }),
        ),
      );
      const kept = both.filter(({ status }) => status !== 200);
      assert.equal(kept.length, 1, JSON.stringify(both));
      await stage.close();
    });

    test("an invitation allows one registration if registration is not open", async () => {
      const stage = await startWithAdmin({
        ...(await prepare()),
        registration: "invitation",
        // All 64 may wait for their hash.
        registration_hash_queue: 100,
      });
      const root = await signIn(stage, ADMIN);
      const body = { username: "guest", password: "a fine long password" };
      await expectStatus(403, stage, "POST", REGISTER, { body });
      const { body: invited } = await expectStatus(201, stage, "POST", "/api/v1/invitations", {
        token: root.token,
      });
      const invitation = (invited as never as { token: string }).token;
      await expectStatus(400, stage, "POST", REGISTER, {
        body: { ...body, password: "short", invitation },
      });
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, i) =>
          call(stage, "POST", REGISTER, { body: { ...body, username: `guest${i}`, invitation } }),
        ),
      );
      assert.equal(answers.filter(({ status }) => status === 201).length, 1);
      const others = answers.filter(({ status }) => status !== 201 && status !== 403);
      assert.deepEqual(others, []);
      await stage.close();
    });

    test("invitations are listed without their tokens, and can be revoked", async () => {
      const stage = await startWithAdmin({ ...(await prepare()), registration: "invitation" });
      const { token } = await signIn(stage, ADMIN);
      const invitations = "/api/v1/invitations";
      const issue = async () =>
        (await expectStatus(201, stage, "POST", invitations, { token })).body as Record<
          string,
          string
        >;
      const [one, two] = [await issue(), await issue()];
      const list = async () => {
        const { body } = await expectStatus(200, stage, "GET", invitations, { token });
        assert.ok(!JSON.stringify(body).includes(one["token"]!));
        return (body as never as { invitations: { id: string }[] }).invitations.map(({ id }) => id);
      };
      assert.deepEqual(new Set(await list()), new Set([one["id"], two["id"]]));
      await expectStatus(204, stage, "DELETE", `${invitations}/${one["id"]}`, { token });
      await expectStatus(404, stage, "DELETE", `${invitations}/${one["id"]}`, { token });
      assert.deepEqual(await list(), [two["id"]]);
      const body = { username: "guest", password: "a fine long password" };
      await expectStatus(403, stage, "POST", REGISTER, {
        body: { ...body, invitation: one["token"] },
      });
      // The id is not the token.
      await expectStatus(403, stage, "POST", REGISTER, {
        body: { ...body, invitation: two["id"] },
      });
      await expectStatus(201, stage, "POST", REGISTER, {
        body: { ...body, invitation: two["token"] },
      });
      assert.deepEqual(await list(), []);
      await stage.close();
    });
  });
}
