// Credential changes: who may make them, what they invalidate, and who is notified.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { generateSync } from "otplib";
import { Authenticator } from "../authenticator.ts";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin, type Person } from "../client.ts";
import { readLink, startMailbox, type Mailbox } from "../mailbox.ts";
import { STAGE_KINDS, startStage, type Stage } from "../stage.ts";

const ACCOUNT = "/api/v1/auth/account";
const bin = fileURLToPath(new URL("../../../../bin/platform-auth.js", import.meta.url));

async function joinVerified(stage: Stage, mailbox: Mailbox, email: string): Promise<Person> {
  const person = await join(stage, "ada");
  await expectStatus(200, stage, "PATCH", ACCOUNT, { token: person.token, body: { email } });
  await expectStatus(202, stage, "POST", "/api/v1/auth/email/verify/begin", {
    token: person.token,
  });
  await expectStatus(200, stage, "POST", "/api/v1/auth/email/verify/finish", {
    body: { token: readLink(mailbox) },
  });
  mailbox.mails.length = 0;
  return person;
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`changes on ${kind}`, { skip }, () => {
    test("changes of credentials are reported to the verified address", async () => {
      const mailbox = await startMailbox();
      const stage = await startStage({ ...(await prepare()), platform_notify_url: mailbox.url });
      const { token: first, password } = await joinVerified(stage, mailbox, "ada@example.org");
      const made = await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/setup", {
        token: first,
        body: { type: "totp" },
      });
      const { id, secret } = made.body as Record<string, string>;
      const epoch = Math.floor(stage.clock.now() / 1000);
      const verified = await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/verify", {
        token: first,
        body: { factor_id: id, code: generateSync({ secret: secret!, epoch }) },
      });
      const { access_token: token } = verified.body as Record<string, string>;
      await mailbox.waitFor(1);
      await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/backup-codes", { token });
      await mailbox.waitFor(2);
      await expectStatus(204, stage, "DELETE", `/api/v1/auth/mfa/factors/${id}`, { token });
      await mailbox.waitFor(3);
      const authenticator = new Authenticator(stage.publicUrl);
      const begun = await expectStatus(200, stage, "POST", "/api/v1/auth/passkey/register/begin", {
        token,
        body: {},
      });
      const { challenge } = begun.body as never as { challenge: { publicKey: never } };
      const finished = await expectStatus(
        201,
        stage,
        "POST",
        "/api/v1/auth/passkey/register/finish",
        {
          body: authenticator.create(challenge.publicKey),
        },
      );
      const { session_token: session } = finished.body as Record<string, string>;
      await mailbox.waitFor(4);
      const passkey = `/api/v1/auth/passkeys/${authenticator.id.toString("base64url")}`;
      await expectStatus(204, stage, "DELETE", passkey, { token });
      await mailbox.waitFor(5);
      await expectStatus(200, stage, "POST", "/api/v1/auth/password/change", {
        token: session,
        body: { current_password: password, new_password: "another long password" },
      });
      await mailbox.waitFor(6);
      await expectStatus(200, stage, "PATCH", ACCOUNT, { token: session, body: { email: null } });
      await mailbox.waitFor(7);
      assert.deepEqual(
        mailbox.mails.map(({ to, text }) => [to, text.split("\n", 1)[0]]),
        [
          "A second factor was added.",
          "New backup codes were created; the previous ones are invalid.",
          "A second factor was removed.",
          "A passkey was added.",
          "A passkey was removed.",
          "Your password was changed.",
          "The address of your account was changed.",
        ].map((sentence) => ["ada@example.org", sentence]),
      );
      await stage.close();
      mailbox.close();
    });

    test("a new address requires a fresh sign-in and verification, and voids links to the previous one", async () => {
      const mailbox = await startMailbox();
      const stage = await startStage({ ...(await prepare()), platform_notify_url: mailbox.url });
      const person = await joinVerified(stage, mailbox, "ada@example.org");
      await expectStatus(202, stage, "POST", "/api/v1/auth/recovery/begin", {
        body: { email: "ada@example.org" },
      });
      await mailbox.waitFor(1);
      const link = readLink(mailbox);
      const change = (token: string, email: string) =>
        call(stage, "PATCH", ACCOUNT, { token, body: { email } });
      assert.equal((await change(person.token, "not an address")).status, 400);
      const changed = await change(person.token, "eve@example.org");
      assert.deepEqual(
        [
          changed.status,
          (changed.body as { user?: { email_verified?: boolean } }).user?.email_verified,
        ],
        [200, false],
        JSON.stringify(changed.body),
      );
      await expectStatus(403, stage, "POST", "/api/v1/auth/recovery/finish", {
        body: { token: link, new_password: "another long password" },
      });
      stage.clock.advance(11 * 60_000);
      const late = await change(person.session, "mallory@example.org");
      assert.equal(late.status, 401);
      assert.match(late.headers.get("www-authenticate") ?? "", /insufficient_user_authentication/);
      await stage.close();
      mailbox.close();
    });

    test("an administrator sends a recovery link without seeing it", async () => {
      const mailbox = await startMailbox();
      const stage = await startWithAdmin({
        ...(await prepare()),
        platform_notify_url: mailbox.url,
      });
      const { token } = await signIn(stage, ADMIN);
      const ada = await joinVerified(stage, mailbox, "ada@example.org");
      const bob = await join(stage, "bob");
      const path = `/api/v1/users/${ada.id}/recovery`;
      await expectStatus(403, stage, "POST", path, { token: bob.token });
      await expectStatus(409, stage, "POST", `/api/v1/users/${bob.id}/recovery`, { token });
      await expectStatus(404, stage, "POST", "/api/v1/users/nobody/recovery", { token });
      const answer = await expectStatus(202, stage, "POST", path, { token });
      assert.deepEqual(answer.body, { sent_to: "ada@example.org" });
      const link = readLink(mailbox);
      assert.ok(!stage.log.join("").includes(link));
      await expectStatus(200, stage, "POST", "/api/v1/auth/recovery/finish", {
        body: { token: link, new_password: "another long password" },
      });
      await signIn(stage, { username: "ada", password: "another long password" });
      await stage.close();
      mailbox.close();
    });

    test("an administrator removes lost factors of a user and ends their sessions", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      const ada = await join(stage, "ada");
      const bob = await join(stage, "bob");
      const made = await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/setup", {
        token: ada.token,
        body: { type: "totp" },
      });
      const { id, secret } = made.body as Record<string, string>;
      const epoch = Math.floor(stage.clock.now() / 1000);
      await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/verify", {
        token: ada.token,
        body: { factor_id: id, code: generateSync({ secret: secret!, epoch }) },
      });
      const path = `/api/v1/users/${ada.id}/factors`;
      await expectStatus(403, stage, "DELETE", path, { token: bob.token });
      await expectStatus(204, stage, "DELETE", path, { token });
      for (const old of [ada.token, ada.session]) {
        await expectStatus(401, stage, "GET", ACCOUNT, { token: old });
      }
      await signIn(stage, ada);

      // Administrators need a fresh sign-in to do to themselves what they may do to others.
      const { id: self, session } = await signIn(stage, ADMIN);
      stage.clock.advance(11 * 60_000);
      await expectStatus(401, stage, "DELETE", `/api/v1/users/${self}/factors`, { token: session });
      const email = { token: session, body: { email: "root@example.org" } };
      await expectStatus(401, stage, "PATCH", `/api/v1/users/${self}`, email);
      await expectStatus(200, stage, "PATCH", `/api/v1/users/${ada.id}`, {
        token: session,
        body: { email: "ada@example.org" },
      });
      await stage.close();
    });
  });
}

test("an operator restores a locked-out administrator on the command line", async () => {
  const settings = await STAGE_KINDS[0]!.prepare();
  const stage = await startWithAdmin(settings);
  const root = await signIn(stage, ADMIN);
  const made = await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/setup", {
    token: root.token,
    body: { type: "totp" },
  });
  const { id, secret } = made.body as Record<string, string>;
  const epoch = Math.floor(stage.clock.now() / 1000);
  await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/verify", {
    token: root.token,
    body: { factor_id: id, code: generateSync({ secret: secret!, epoch }) },
  });
  const reset = (username: string) =>
    spawnSync(process.execPath, [bin, "admin", "reset", username], {
      encoding: "utf8",
      env: { ...process.env, PLATFORM_AUTH_DATA_DIR: String(settings["data_dir"]) },
    });
  const unknown = reset("nobody");
  assert.deepEqual([unknown.status, unknown.stdout], [1, ""]);
  assert.match(unknown.stderr, /there is no user nobody/);
  const done = reset("root");
  assert.equal(done.status, 0, done.stderr);
  const [, token] = /^http:\/\/localhost:8086\/recover\?token=([\w-]+)\n$/.exec(done.stdout)!;
  await expectStatus(200, stage, "POST", "/api/v1/auth/recovery/finish", {
    body: { token, new_password: "another long password" },
  });
  await expectStatus(401, stage, "GET", ACCOUNT, { token: root.session });
  const back = await signIn(stage, { username: "root", password: "another long password" });
  const seen = await expectStatus(200, stage, "GET", ACCOUNT, { token: back.token });
  assert.deepEqual(seen.body["roles"], ["admin"]);
  await stage.close();
});
