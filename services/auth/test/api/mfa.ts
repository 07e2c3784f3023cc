// Second factors: authenticator apps, codes by email and SMS, backup codes, policies, step up, races.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { generateSync } from "otplib";
import {
  ADMIN,
  call,
  expectStatus,
  join,
  signIn,
  startWithAdmin,
  type Answer,
  type Person,
} from "../client.ts";
import { normalizeCode } from "../../src/factor/one-time-code.ts";
import { readCode, readLink, startMailbox } from "../mailbox.ts";
import { STAGE_KINDS, startStage, type Stage } from "../stage.ts";

const MFA = "/api/v1/auth/mfa";
const LOGIN = "/api/v1/auth/login";
const STEP_MS = 30_000;

interface Setup {
  id: string;
  secret: string;
  otpauth_uri: string;
  qr: string;
  backup_codes: string[];
}

function codeOf(stage: Pick<Stage, "clock">, secret: string, steps = 0): string {
  return generateSync({ secret, epoch: Math.floor(stage.clock.now() / 1000) + steps * 30 });
}

async function enrol(stage: Stage, person: Person): Promise<Setup> {
  const { body } = await expectStatus(200, stage, "POST", `${MFA}/setup`, {
    token: person.token,
    body: { type: "totp" },
  });
  const setup = body as never as Setup;
  const done = await expectStatus(200, stage, "POST", `${MFA}/verify`, {
    token: person.token,
    body: { factor_id: setup.id, code: codeOf(stage, setup.secret) },
  });
  const { access_token, session_token } = done.body as Record<string, string>;
  Object.assign(person, { token: access_token, session: session_token });
  stage.clock.advance(STEP_MS);
  return setup;
}

async function ask(stage: Pick<Stage, "url">, { username, password }: Person): Promise<string> {
  const answer = await expectStatus(403, stage, "POST", LOGIN, { body: { username, password } });
  assert.equal((answer.body as Record<string, string>)["code"], "mfa_required");
  return (answer.body as Record<string, string>)["mfa_token"]!;
}

function verify(stage: Pick<Stage, "url">, mfa_token: string, code: string): Promise<Answer> {
  return call(stage, "POST", `${MFA}/verify`, { body: { mfa_token, code } });
}

test("a code is normalized: blanks, dashes, full-width characters, upper case", () => {
  for (const typed of [
    "123456",
    "123 456",
    " 123-456\n",
    "123\u2013456",
    "\uff11\uff12\uff13 456",
  ]) {
    assert.equal(normalizeCode(typed), "123456", JSON.stringify(typed));
  }
  assert.equal(normalizeCode("ABCDE-fghjk"), "abcdefghjk");
  assert.equal(normalizeCode("12a456"), "12a456");
});

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`second factors on ${kind}`, { skip }, () => {
    test("an authenticator app is active from its first code on, and each code works once", async () => {
      const stage = await startStage({ ...(await prepare()), mfa_totp_issuer: "Acme" });
      const person = await join(stage, "ada");
      const { body } = await expectStatus(200, stage, "POST", `${MFA}/setup`, {
        token: person.token,
        body: { type: "totp" },
      });
      const setup = body as never as Setup;
      assert.match(setup.otpauth_uri, /^otpauth:\/\/totp\/Acme:ada\?/);
      assert.match(setup.qr, /^data:image\/png;base64,/);
      assert.equal(setup.backup_codes.length, 10);
      await signIn(stage, person);
      const confirm = { factor_id: setup.id, code: codeOf(stage, setup.secret) };
      await expectStatus(401, stage, "POST", `${MFA}/verify`, {
        token: person.token,
        body: { ...confirm, code: codeOf(stage, setup.secret, 9) },
      });
      const done = await expectStatus(200, stage, "POST", `${MFA}/verify`, {
        token: person.token,
        body: confirm,
      });
      assert.equal((done.body as Record<string, unknown>)["verified"], true);
      const token = await ask(stage, person);
      assert.equal(
        (await verify(stage, token, confirm.code)).status,
        401,
        "the code was used before",
      );
      stage.clock.advance(STEP_MS);
      // As apps show codes, in groups.
      const grouped = codeOf(stage, setup.secret).replace(/^(...)/, " $1 ");
      const entered = await verify(stage, token, grouped);
      assert.equal(entered.status, 200);
      const { access_token } = entered.body as Record<string, string>;
      const claims = JSON.parse(
        Buffer.from(access_token!.split(".")[1]!, "base64url").toString(),
      ) as Record<string, unknown>;
      assert.deepEqual([claims["acr"], claims["amr"]], ["2", ["pwd", "otp", "mfa"]]);
      assert.equal(
        (await verify(stage, token, codeOf(stage, setup.secret, 1))).status,
        401,
        "the token is burnt",
      );
      const list = await expectStatus(200, stage, "GET", `${MFA}/factors`, { token: access_token });
      assert.ok(!JSON.stringify(list.body).includes(setup.secret));
      const row = await stage.database.db
        .selectFrom("auth_factors")
        .selectAll()
        .executeTakeFirstOrThrow();
      assert.ok(!row.secret.includes(setup.secret), "the secret is sealed");
      await stage.close();
    });

    test("codes of adjacent time steps are valid, others are not", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      const { secret } = await enrol(stage, person);
      stage.clock.advance(10 * STEP_MS);
      for (const [steps, status] of [
        [-2, 401],
        [2, 401],
        [-1, 200],
        [0, 200],
        [1, 200],
      ] as const) {
        const answer = await verify(stage, await ask(stage, person), codeOf(stage, secret, steps));
        assert.equal(answer.status, status, `${steps} steps`);
      }
      await stage.close();
    });

    test("of 64 concurrent uses of one code, each with its own token, one succeeds", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      const { secret } = await enrol(stage, person);
      const tokens = await Promise.all(Array.from({ length: 8 }, () => ask(stage, person)));
      const code = codeOf(stage, secret);
      const byStep = await Promise.all(
        Array.from({ length: 64 }, (_, i) => verify(stage, tokens[i % 8]!, code)),
      );
      assert.equal(byStep.filter(({ status }) => status === 200).length, 1);
      // Another user, who is not throttled yet.
      const bob = await join(stage, "bob");
      const { backup_codes } = await enrol(stage, bob);
      const fresh = await Promise.all(Array.from({ length: 8 }, () => ask(stage, bob)));
      const byBackup = await Promise.all(
        Array.from({ length: 64 }, (_, i) => verify(stage, fresh[i % 8]!, backup_codes[0]!)),
      );
      assert.equal(byBackup.filter(({ status }) => status === 200).length, 1);
      await stage.close();
    });

    test("a backup code works once in any spelling, and new ones replace the old", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      const { backup_codes: codes } = await enrol(stage, person);
      const entered = await verify(
        stage,
        await ask(stage, person),
        codes[0]!.toUpperCase().replace("-", " "),
      );
      assert.equal(entered.status, 200);
      assert.equal((await verify(stage, await ask(stage, person), codes[0]!)).status, 401);
      const { session_token: token } = entered.body as Record<string, string>;
      const renewed = await expectStatus(200, stage, "POST", `${MFA}/backup-codes`, { token });
      assert.equal((await verify(stage, await ask(stage, person), codes[1]!)).status, 401);
      const [next] = (renewed.body as never as Setup).backup_codes;
      assert.equal((await verify(stage, await ask(stage, person), next!)).status, 200);
      const rows = await stage.database.db.selectFrom("auth_backup_codes").selectAll().execute();
      assert.ok(rows.every(({ hash }) => !codes.includes(hash)));
      await stage.close();
    });

    test("a token has five attempts, and codes are throttled after ten failures", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      const { secret } = await enrol(stage, person);
      const token = await ask(stage, person);
      for (let i = 0; i < 5; i += 1)
        assert.equal((await verify(stage, token, "000000")).status, 401);
      assert.equal((await verify(stage, token, codeOf(stage, secret))).status, 401);
      const second = await ask(stage, person);
      for (let i = 0; i < 5; i += 1) await verify(stage, second, "000000");
      const third = await ask(stage, person);
      const waiting = await verify(stage, third, codeOf(stage, secret));
      assert.equal(waiting.status, 429);
      assert.ok(waiting.headers.get("retry-after"));
      stage.clock.advance(60_000);
      assert.equal((await verify(stage, third, codeOf(stage, secret))).status, 200);
      const late = await ask(stage, person);
      stage.clock.advance(300_001);
      assert.equal((await verify(stage, late, codeOf(stage, secret))).status, 401);
      await stage.close();
    });

    test("malformed input and other users' tokens are rejected", async () => {
      const stage = await startStage(await prepare());
      const [ada, eve] = [await join(stage, "ada"), await join(stage, "eve")];
      const { id } = await enrol(stage, ada);
      for (const body of [
        {},
        { type: "carrier pigeon" },
        { type: "sms", phone: "123" },
        { type: "totp", name: "" },
      ]) {
        await expectStatus(400, stage, "POST", `${MFA}/setup`, { token: eve.token, body });
      }
      for (const body of [
        {},
        { code: "123456" },
        { mfa_token: "" },
        { mfa_token: "x", code: "1".repeat(33) },
      ]) {
        await expectStatus(400, stage, "POST", `${MFA}/verify`, { token: eve.token, body });
      }
      await expectStatus(401, stage, "POST", `${MFA}/verify`, {
        body: { mfa_token: "x", code: "123456" },
      });
      await expectStatus(401, stage, "POST", `${MFA}/setup`, { body: { type: "totp" } });
      await expectStatus(404, stage, "DELETE", `${MFA}/factors/${id}`, { token: eve.token });
      await expectStatus(404, stage, "POST", `${MFA}/verify`, {
        token: eve.token,
        body: { factor_id: id, code: "123456" },
      });
      await expectStatus(409, stage, "POST", `${MFA}/backup-codes`, { token: eve.token });
      const answer = await expectStatus(409, stage, "POST", `${MFA}/setup`, {
        token: eve.token,
        body: { type: "email", email: "eve@example.org" },
      });
      assert.equal((answer.body as Record<string, string>)["code"], "channel_unavailable");
      await stage.close();
    });

    test("codes by email and SMS are sent through the mail service and work once", async () => {
      const mailbox = await startMailbox();
      const stage = await startStage({ ...(await prepare()), platform_notify_url: mailbox.url });
      const person = await join(stage, "ada");
      for (const body of [
        { type: "email", email: "ada@example.org" },
        { type: "sms", phone: "+4915112345678" },
      ]) {
        const session = await stage.database.db.selectFrom("auth_factors").select("id").execute();
        const signedIn = session.length === 0 ? person : undefined;
        let token = signedIn?.token;
        if (token === undefined) {
          const mfaToken = await ask(stage, person);
          const factor = session[0]!.id;
          const sent = await expectStatus(200, stage, "POST", `${MFA}/send`, {
            body: { mfa_token: mfaToken, factor_id: factor },
          });
          assert.deepEqual(sent.body, { sent_to: "a…@example.org" });
          const code = readCode(mailbox);
          const entered = await verify(stage, mfaToken, code);
          assert.equal(entered.status, 200);
          assert.equal((await verify(stage, await ask(stage, person), code)).status, 401);
          token = (entered.body as Record<string, string>)["access_token"];
        }
        const made = await expectStatus(200, stage, "POST", `${MFA}/setup`, { token, body });
        const mail = mailbox.mails.at(-1)!;
        assert.equal(mail.to, body.email ?? body.phone);
        const code = readCode(mailbox);
        await expectStatus(200, stage, "POST", `${MFA}/verify`, {
          token,
          body: { factor_id: (made.body as never as Setup).id, code },
        });
      }
      await stage.close();
      mailbox.close();
    });

    test("a code that was sent is valid only for the sign-in that requested it", async () => {
      const mailbox = await startMailbox();
      const stage = await startStage({ ...(await prepare()), platform_notify_url: mailbox.url });
      const person = await join(stage, "ada");
      const made = await expectStatus(200, stage, "POST", `${MFA}/setup`, {
        token: person.token,
        body: { type: "email", email: "ada@example.org" },
      });
      const { id: factor_id } = made.body as never as Setup;
      await expectStatus(200, stage, "POST", `${MFA}/verify`, {
        token: person.token,
        body: { factor_id, code: readCode(mailbox).replace(/^(...)/, "$1-") },
      });
      const [mine, theirs] = [await ask(stage, person), await ask(stage, person)];
      await expectStatus(200, stage, "POST", `${MFA}/send`, {
        body: { mfa_token: mine, factor_id },
      });
      const code = readCode(mailbox);
      assert.equal((await verify(stage, theirs, code)).status, 401);
      assert.equal((await verify(stage, mine, code)).status, 200);
      await stage.close();
      mailbox.close();
    });

    test("password recovery does not bypass the second factor", async () => {
      const mailbox = await startMailbox();
      const stage = await startStage({ ...(await prepare()), platform_notify_url: mailbox.url });
      const person = await join(stage, "ada");
      await expectStatus(200, stage, "PATCH", "/api/v1/auth/account", {
        token: person.token,
        body: { email: "ada@example.org" },
      });
      await expectStatus(202, stage, "POST", "/api/v1/auth/email/verify/begin", {
        token: person.token,
      });
      await expectStatus(200, stage, "POST", "/api/v1/auth/email/verify/finish", {
        body: { token: readLink(mailbox) },
      });
      const { secret } = await enrol(stage, person);
      await mailbox.waitFor(2);
      await expectStatus(202, stage, "POST", "/api/v1/auth/recovery/begin", {
        body: { email: "ada@example.org" },
      });
      await mailbox.waitFor(3);
      const password = "another long password";
      const recovered = await expectStatus(200, stage, "POST", "/api/v1/auth/recovery/finish", {
        body: { token: readLink(mailbox), new_password: password },
      });
      assert.deepEqual(Object.keys(recovered.body), ["user"]);
      // The device becomes known, which does not identify its user.
      const cookies = recovered.headers.getSetCookie().map((cookie) => cookie.split("=")[0]);
      assert.deepEqual(cookies, ["platform_device"]);
      const token = await ask(stage, { ...person, password });
      assert.equal((await verify(stage, token, codeOf(stage, secret))).status, 200);
      await stage.close();
      mailbox.close();
    });

    test("a policy requires its subjects to set up a factor before they get a session", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      const person = await join(stage, "ada");
      await expectStatus(201, stage, "POST", "/api/v1/rbac/roles", {
        token,
        body: { name: "staff", permissions: [] },
      });
      await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${person.id}/roles`, {
        token,
        body: { roles: ["staff"] },
      });
      await expectStatus(403, stage, "POST", `${MFA}/policies`, {
        token: person.token,
        body: { scope: "role", subject: "staff", required: true },
      });
      await expectStatus(201, stage, "POST", `${MFA}/policies`, {
        token,
        body: { scope: "role", subject: "staff", required: true },
      });
      const refused = await expectStatus(403, stage, "POST", LOGIN, {
        body: { username: "ada", password: person.password },
      });
      const { mfa_token, enrolment_required, factors } = refused.body as never as {
        mfa_token: string;
        enrolment_required: boolean;
        factors: unknown[];
      };
      assert.deepEqual([enrolment_required, factors], [true, []]);
      const { body } = await expectStatus(200, stage, "POST", `${MFA}/setup`, {
        body: { type: "totp", mfa_token },
      });
      const setup = body as never as Setup;
      const entered = await expectStatus(200, stage, "POST", `${MFA}/verify`, {
        body: { mfa_token, factor_id: setup.id, code: codeOf(stage, setup.secret) },
      });
      assert.ok((entered.body as Record<string, string>)["access_token"]);
      await ask(stage, person);
      const heir = await join(stage, "heir");
      await expectStatus(201, stage, "POST", "/api/v1/rbac/roles", {
        token,
        body: { name: "lead", permissions: [], parents: ["staff"] },
      });
      await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${heir.id}/roles`, {
        token,
        body: { roles: ["lead"] },
      });
      await expectStatus(403, stage, "POST", LOGIN, {
        body: { username: "heir", password: heir.password },
      });
      await expectStatus(200, stage, "POST", LOGIN, { body: ADMIN });
      await expectStatus(204, stage, "DELETE", `${MFA}/policies/role/staff`, { token });
      await expectStatus(201, stage, "POST", `${MFA}/policies`, {
        token,
        body: { scope: "client", subject: "platform", required: true },
      });
      await expectStatus(403, stage, "POST", LOGIN, { body: ADMIN });
      await stage.close();
    });

    test("the first factor ends the tokens of others who enrol with the same password", async () => {
      const mailbox = await startMailbox();
      const settings = { ...(await prepare()), platform_notify_url: mailbox.url };
      const stage = await startWithAdmin(settings);
      const { token } = await signIn(stage, ADMIN);
      const person = await join(stage, "ada");
      await expectStatus(201, stage, "POST", `${MFA}/policies`, {
        token,
        body: { scope: "client", subject: "platform", required: true },
      });
      const [owner, thief] = [await ask(stage, person), await ask(stage, person)];
      const begin = async (mfa_token: string, factor: object): Promise<Setup> => {
        const body = { ...factor, mfa_token };
        return (await expectStatus(200, stage, "POST", `${MFA}/setup`, { body })).body as never;
      };
      const stolen = await begin(thief, { type: "email", email: "thief@example.org" });
      const stolenCode = readCode(mailbox);
      const own = await begin(owner, { type: "totp" });
      const finish = async (mfa_token: string, { id }: Setup, code: string): Promise<number> => {
        const body = { mfa_token, factor_id: id, code };
        return (await call(stage, "POST", `${MFA}/verify`, { body })).status;
      };
      assert.equal(await finish(owner, own, codeOf(stage, own.secret)), 200);
      assert.equal(await finish(thief, stolen, stolenCode), 401);
      await stage.close();
      mailbox.close();
    });

    test("a step-up returns a token with a newer auth_time and a higher acr and ends the old session token", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      const { secret } = await enrol(stage, person);
      const path = `${MFA}/step-up`;
      stage.clock.advance(700_000);
      await expectStatus(401, stage, "POST", `${MFA}/backup-codes`, { token: person.session });
      const asked = await expectStatus(200, stage, "POST", path, {
        token: person.session,
        body: { acr_values: "2", max_age: 300 },
      });
      const { challenge } = asked.body as never as {
        challenge: { mfa_token: string; factors: unknown[] };
      };
      assert.equal(challenge.factors.length, 1);
      const done = await verify(stage, challenge.mfa_token, codeOf(stage, secret));
      assert.equal(done.status, 200);
      const { access_token, session_token } = done.body as Record<string, string>;
      const read = (token: string) =>
        JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString()) as Record<
          string,
          never
        >;
      const [before, after] = [read(person.token), read(access_token!)];
      assert.equal(after["sid"], before["sid"]);
      assert.equal(after["acr"], "2");
      assert.ok(Number(after["auth_time"]) > Number(before["auth_time"]));
      await expectStatus(401, stage, "GET", "/api/v1/auth/account", { token: person.session });
      await expectStatus(200, stage, "POST", `${MFA}/backup-codes`, { token: session_token });
      const again = await expectStatus(200, stage, "POST", path, {
        token: session_token,
        body: { acr_values: "2" },
      });
      assert.deepEqual(again.body, { satisfied: true });
      await stage.close();
    });

    test("without a factor the password proves freshness but not a second factor", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      await expectStatus(409, stage, "POST", `${MFA}/step-up`, {
        token: person.session,
        body: { acr_values: "2" },
      });
      stage.clock.advance(700_000);
      const asked = await expectStatus(200, stage, "POST", `${MFA}/step-up`, {
        token: person.session,
        body: { acr_values: "1", max_age: 60 },
      });
      const { mfa_token } = (asked.body as never as { challenge: { mfa_token: string } }).challenge;
      await expectStatus(401, stage, "POST", `${MFA}/verify`, {
        body: { mfa_token, password: "wrong wrong" },
      });
      const done = await expectStatus(200, stage, "POST", `${MFA}/verify`, {
        body: { mfa_token, password: person.password },
      });
      const { session_token } = done.body as Record<string, string>;
      await expectStatus(200, stage, "POST", "/api/v1/auth/passkey/register/begin", {
        token: session_token,
        body: {},
      });
      await stage.close();
    });

    test("verification and recovery links work once and reveal nothing", async () => {
      const mailbox = await startMailbox();
      const stage = await startStage({ ...(await prepare()), platform_notify_url: mailbox.url });
      const person = { username: "ada", password: "a fine long password" };
      await expectStatus(201, stage, "POST", "/api/v1/auth/register", {
        body: { ...person, email: "Ada@example.org" },
      });
      const ada = await signIn(stage, person);
      const recover = (email: string) =>
        expectStatus(202, stage, "POST", "/api/v1/auth/recovery/begin", { body: { email } });
      assert.match(mailbox.mails.shift()!.text, /verify-email\?token=/, "sent at registration");
      const unverified = await recover("ada@example.org");
      assert.equal(mailbox.mails.length, 0, "nobody has proved the address");
      await expectStatus(202, stage, "POST", "/api/v1/auth/email/verify/begin", {
        token: ada.token,
      });
      const link = /token=([\w-]+)/.exec(mailbox.mails[0]!.text)![1]!;
      const finish = "/api/v1/auth/email/verify/finish";
      await expectStatus(200, stage, "POST", finish, { body: { token: link } });
      await expectStatus(403, stage, "POST", finish, { body: { token: link } });
      const verified = await recover("ADA@example.org");
      assert.deepEqual(unverified.body, verified.body);
      for (let i = 0; i < 2_000 && mailbox.mails.length < 2; i += 1)
        await new Promise((resolve) => setTimeout(resolve, 10));
      const token = /recover\?token=([\w-]+)/.exec(mailbox.mails[1]!.text)![1]!;
      const set = "/api/v1/auth/recovery/finish";
      await expectStatus(400, stage, "POST", set, { body: { token, new_password: "password1" } });
      const next = "another long password";
      const answers = await Promise.all(
        Array.from({ length: 64 }, () =>
          call(stage, "POST", set, { body: { token, new_password: next } }),
        ),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      for (const old of [ada.token, ada.session])
        await expectStatus(401, stage, "GET", "/api/v1/auth/account", { token: old });
      await expectStatus(401, stage, "POST", LOGIN, { body: person });
      await signIn(stage, { username: "ada", password: next });
      assert.ok(!stage.log.join("").includes(token), "no link in the log");
      await stage.close();
      mailbox.close();
    });
  });
}

test(
  "two nodes accept a TOTP step and a backup code once",
  { skip: STAGE_KINDS[1]!.skip },
  async () => {
    const settings = { ...(await STAGE_KINDS[1]!.prepare()), public_url: "http://localhost:8086" };
    const nodes = [await startStage(settings), await startStage(settings)];
    const [one, two] = nodes as [Stage, Stage];
    const person = await join(one, "ada");
    const { secret, backup_codes } = await enrol(one, person);
    for (const code of [codeOf(one, secret), backup_codes[0]!]) {
      two.clock.advance(one.clock.now() - two.clock.now());
      const tokens = await Promise.all(Array.from({ length: 8 }, () => ask(one, person)));
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, i) => verify(nodes[i % 2]!, tokens[i % 8]!, code)),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      one.clock.advance(1_000_000);
    }
    for (const node of nodes) await node.close();
  },
);
