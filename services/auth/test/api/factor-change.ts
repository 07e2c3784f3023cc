// A password alone, in an old or a new session, does not remove second factors or passkeys.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { generateSync } from "otplib";
import { Authenticator } from "../authenticator.ts";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin, type Person } from "../client.ts";
import { PageBrowser } from "../pages/page-browser.ts";
import { STAGE_KINDS, startStage, type Stage } from "../stage.ts";

const MFA = "/api/v1/auth/mfa";
const PASSKEY = "/api/v1/auth/passkey";
const ACCOUNT = "/api/v1/auth/account";

type Options = Parameters<Authenticator["create"]>[0];
type Texts = Record<string, string>;

function codeOf(stage: Stage, secret: string): string {
  return generateSync({ secret, epoch: Math.floor(stage.clock.now() / 1000) });
}

async function setUp(stage: Stage, credential: { token?: string; mfa_token?: string }) {
  const { token, mfa_token } = credential;
  const { body } = await expectStatus(200, stage, "POST", `${MFA}/setup`, {
    token,
    body: { type: "totp", ...(mfa_token === undefined ? {} : { mfa_token }) },
  });
  return body as never as { id: string; secret: string };
}

/** Sets up an authenticator app in the user's session; returns the response. */
async function enrol(stage: Stage, { token }: Person): Promise<Texts & { id: string }> {
  const { id, secret } = await setUp(stage, { token });
  const { body } = await expectStatus(200, stage, "POST", `${MFA}/verify`, {
    token,
    body: { factor_id: id, code: codeOf(stage, secret) },
  });
  return { ...(body as never as Texts), id };
}

async function beginPasskey(stage: Stage, token: string): Promise<Options> {
  const { body } = await expectStatus(200, stage, "POST", `${PASSKEY}/register/begin`, {
    token,
    body: {},
  });
  return (body as never as { challenge: { publicKey: Options } }).challenge.publicKey;
}

async function requireRefusal(
  stage: Stage,
  attempts: readonly (readonly [string, string, unknown?])[],
  tokens: readonly string[],
): Promise<void> {
  for (const token of tokens) {
    for (const [method, path, body] of attempts) {
      const answer = await expectStatus(401, stage, method, path, { token, body });
      assert.match(answer.headers.get("www-authenticate") ?? "", /acr_values="2"/);
    }
  }
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`factor changes on ${kind}`, { skip }, () => {
    test("a new factor ends sessions without a second factor and raises its own", async () => {
      const stage = await startStage(await prepare());
      const owner = await join(stage, "ada");
      const thief = await signIn(stage, owner);
      const begun = await beginPasskey(stage, thief.token);
      const login = await expectStatus(200, stage, "POST", "/api/v1/auth/login", {
        body: { username: owner.username, password: owner.password },
      });
      const { refresh_token } = login.body as never as Texts;
      const lifted = await enrol(stage, owner);

      for (const token of [thief.token, thief.session])
        await expectStatus(401, stage, "GET", ACCOUNT, { token });
      const refreshed = await fetch(`${stage.url}/api/v1/auth/token`, {
        method: "POST",
        body: new URLSearchParams({
          grant_type: "refresh_token",
          client_id: "platform",
          refresh_token: refresh_token!,
        }),
      });
      assert.equal(refreshed.status, 400);
      const late = await call(stage, "POST", `${PASSKEY}/register/finish`, {
        body: new Authenticator(stage.publicUrl).create(begun),
      });
      assert.equal(late.status, 401, "a registration that was begun before");

      await expectStatus(401, stage, "GET", ACCOUNT, { token: owner.session });
      await expectStatus(200, stage, "GET", ACCOUNT, { token: lifted["session_token"] });
      for (const token of [lifted["session_token"], lifted["access_token"]])
        await expectStatus(200, stage, "POST", `${MFA}/backup-codes`, { token });
      await stage.close();
    });

    test("changing factors requires a factor, not an older token of the same session", async () => {
      const stage = await startStage(await prepare());
      const owner = await join(stage, "ada");
      const lifted = await enrol(stage, owner);
      const attempts = [
        ["DELETE", `${MFA}/factors/${lifted.id}`],
        ["POST", `${MFA}/backup-codes`],
        ["POST", `${MFA}/setup`, { type: "totp" }],
        ["POST", `${MFA}/verify`, { factor_id: "any", code: "123456" }],
        ["POST", `${PASSKEY}/register/begin`, {}],
      ] as const;
      await requireRefusal(stage, attempts, [owner.token]);
      const token = lifted["access_token"];
      const factors = await expectStatus(200, stage, "GET", `${MFA}/factors`, { token });
      assert.equal((factors.body as never as { factors: unknown[] }).factors.length, 1);
      await expectStatus(204, stage, "DELETE", `${MFA}/factors/${lifted.id}`, { token });
      await stage.close();
    });

    test("a password alone cannot add, rename or remove passkeys", async () => {
      const stage = await startStage(await prepare());
      const owner = await join(stage, "ada");
      const authenticator = new Authenticator(stage.publicUrl);
      const made = await expectStatus(201, stage, "POST", `${PASSKEY}/register/finish`, {
        body: authenticator.create(await beginPasskey(stage, owner.token)),
      });
      const path = `/api/v1/auth/passkeys/${authenticator.id.toString("base64url")}`;
      const thief = await signIn(stage, owner);
      const attempts = [
        ["DELETE", path],
        ["PATCH", path, { name: "Gone" }],
        ["POST", `${PASSKEY}/register/begin`, {}],
        ["POST", `${MFA}/setup`, { type: "totp" }],
      ] as const;
      await requireRefusal(stage, attempts, [thief.token, thief.session, owner.token]);
      const { access_token: token } = made.body as never as Texts;
      await expectStatus(200, stage, "PATCH", path, { token, body: { name: "Mine" } });
      await expectStatus(204, stage, "DELETE", path, { token });
      await stage.close();
    });

    test("a passkey registration ends with its session", async () => {
      const stage = await startStage(await prepare());
      const thief = await join(stage, "ada");
      const begun = await beginPasskey(stage, thief.token);
      await expectStatus(204, stage, "POST", "/api/v1/auth/logout", { token: thief.token });
      await expectStatus(401, stage, "POST", `${PASSKEY}/register/finish`, {
        body: new Authenticator(stage.publicUrl).create(begun),
      });
      await stage.close();
    });

    test("enrolment required by a policy is limited to users without a factor", async () => {
      const stage = await startWithAdmin(await prepare());
      const root = await signIn(stage, ADMIN);
      const owner = await join(stage, "ada");
      await expectStatus(201, stage, "POST", `${MFA}/policies`, {
        token: root.token,
        body: { scope: "client", subject: "platform", required: true },
      });
      const ask = async (): Promise<string> => {
        const { username, password } = owner;
        const { body } = await expectStatus(403, stage, "POST", "/api/v1/auth/login", {
          body: { username, password },
        });
        return (body as never as Texts)["mfa_token"]!;
      };
      const theirs = await ask();
      const mine = await ask();
      const { id, secret } = await setUp(stage, { mfa_token: mine });
      await expectStatus(200, stage, "POST", `${MFA}/verify`, {
        body: { mfa_token: mine, factor_id: id, code: codeOf(stage, secret) },
      });
      await expectStatus(401, stage, "POST", `${MFA}/setup`, {
        body: { type: "totp", mfa_token: theirs },
      });
      await expectStatus(401, stage, "GET", ACCOUNT, { token: owner.token });
      await stage.close();
    });

    test("a policy does not let a password alone add a factor to an account with a passkey", async () => {
      const stage = await startWithAdmin(await prepare());
      const root = await signIn(stage, ADMIN);
      const owner = await join(stage, "ada");
      const { username, password } = owner;
      const required = (isRequired: boolean) =>
        expectStatus(201, stage, "POST", `${MFA}/policies`, {
          token: root.token,
          body: { scope: "client", subject: "platform", required: isRequired },
        });
      const authenticator = new Authenticator(stage.publicUrl);
      const begun = await beginPasskey(stage, owner.token);
      await expectStatus(201, stage, "POST", `${PASSKEY}/register/finish`, {
        body: authenticator.create(begun),
      });
      await required(true);
      const refused = await expectStatus(403, stage, "POST", "/api/v1/auth/login", {
        body: { username, password },
      });
      const problem = refused.body as Record<string, unknown>;
      assert.equal(problem["code"], "mfa_required");
      assert.equal(problem["passkey_required"], true);
      assert.equal(problem["mfa_token"], undefined, "no enrolment is offered");

      const { body } = await expectStatus(200, stage, "POST", `${PASSKEY}/login/begin`, {
        body: {},
      });
      const { publicKey } = (body as never as { challenge: { publicKey: never } }).challenge;
      const signedIn = await expectStatus(200, stage, "POST", `${PASSKEY}/login/finish`, {
        body: authenticator.get(publicKey),
      });
      const { access_token: token } = signedIn.body as never as Texts;
      await setUp(stage, { token: token! });
      await stage.close();
    });
  });
}

test("pages require a factor to change factors, and end sessions without one", async () => {
  const stage = await startStage(await STAGE_KINDS[0]!.prepare());
  const owner = await join(stage, "ada");
  const { username, password } = owner;
  const authenticator = new Authenticator(stage.publicUrl);
  const enter = async (): Promise<PageBrowser> => {
    const browser = new PageBrowser(stage);
    await browser.submit(await browser.open("/sign-in"), { username, password }, "/sign-in");
    return browser;
  };
  const before = await enter();
  await expectStatus(201, stage, "POST", `${PASSKEY}/register/finish`, {
    body: authenticator.create(await beginPasskey(stage, owner.token)),
  });
  const ended = await before.open("/account/security");
  assert.equal(ended.url.pathname, "/sign-in");
  const browser = await enter();
  const page = await browser.open("/account/security");
  const asked = await browser.submit(page, {}, "/account/factors/totp");
  assert.equal(asked.url.pathname, "/confirm");
  assert.equal(asked.url.searchParams.get("level"), "2");
  const removal = await browser.submit(page, {}, "/account/passkeys/remove");
  assert.equal(removal.url.pathname, "/confirm");
  await stage.close();
});
