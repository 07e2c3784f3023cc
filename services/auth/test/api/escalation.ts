// Holders of `clients:write` and `rbac:write` who try to gain rights through clients, scopes, policies and tokens.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin, type Person } from "../client.ts";
import { PageBrowser, readText } from "../pages/page-browser.ts";
import { startApplication } from "../pages/relying-party.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";

const CLIENTS = "/api/v1/auth/clients";
const SCOPES = "/api/v1/auth/scopes";
const ROLES = "/api/v1/rbac/roles";
const POLICIES = "/api/v1/auth/mfa/policies";
const CALLBACK = "https://eve.example/callback";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

interface Cast {
  stage: Stage;
  root: Person;
  /** Holds the permissions of `begin`. */
  eve: Person;
}

async function begin(
  settings: Record<string, unknown>,
  permissions: readonly string[],
): Promise<Cast> {
  const stage = await startWithAdmin(settings);
  const root = await signIn(stage, ADMIN);
  const { id } = await join(stage, "eve");
  await expectStatus(201, stage, "POST", ROLES, {
    token: root.session,
    body: { name: "deputy", permissions },
  });
  await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${id}/roles`, {
    token: root.session,
    body: { roles: ["deputy"] },
  });
  const eve = await signIn(stage, { username: "eve", password: "eve has a long password" });
  return { stage, root, eve };
}

async function register(
  stage: Stage,
  { session: token }: Person,
  body: Record<string, unknown>,
): Promise<Record<string, string>> {
  const made = await expectStatus(201, stage, "POST", CLIENTS, {
    token,
    body: { redirect_uris: [CALLBACK], ...body },
  });
  return made.body;
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`escalation on ${kind}`, { skip }, () => {
    test("registering a client requires all of its permissions", async () => {
      const { stage, eve } = await begin(await prepare(), ["clients:*", "users:read"]);
      const attempts: Record<string, unknown>[] = [
        { scope: "openid users:write" },
        { scope: "rbac:write" },
        { scope: "openid", first_party: true },
        { first_party: true },
        { platform_audience: "requested" },
        { platform_audience: "always" },
        { grant_types: ["authorization_code", EXCHANGE] },
      ];
      for (const body of attempts) {
        await expectStatus(403, stage, "POST", CLIENTS, {
          token: eve.session,
          body: { redirect_uris: [CALLBACK], ...body },
        });
      }
      const { client_id: id } = await register(stage, eve, { scope: "openid users:read" });
      for (const body of attempts) {
        await expectStatus(403, stage, "PATCH", `${CLIENTS}/${id}`, { token: eve.session, body });
      }
      const kept = await expectStatus(200, stage, "GET", `${CLIENTS}/${id}`, {
        token: eve.session,
      });
      assert.equal((kept.body as Record<string, unknown>)["scope"], "openid users:read");
      await stage.close();
    });

    test("changing or deleting a client requires all of its permissions", async () => {
      const { stage, root, eve } = await begin(await prepare(), ["clients:*"]);
      const machine = await register(stage, root, { grant_types: ["client_credentials"] });
      await expectStatus(200, stage, "PUT", `/api/v1/rbac/clients/${machine["client_id"]}/roles`, {
        token: root.session,
        body: { roles: ["admin"] },
      });
      const powerful = [
        machine,
        await register(stage, root, { first_party: true }),
        await register(stage, root, { platform_audience: "requested" }),
        await register(stage, root, { scope: "openid keys:write" }),
        await register(stage, root, { grant_types: ["authorization_code", EXCHANGE] }),
      ];
      for (const { client_id: id, client_secret: secret } of powerful) {
        const path = `${CLIENTS}/${id}`;
        const token = eve.session;
        for (const [method, at, body] of [
          ["PATCH", path, { redirect_uris: [CALLBACK] }],
          ["PATCH", path, { token_endpoint_auth_method: "none" }],
          ["PATCH", path, { scope: "openid", first_party: null }],
          ["POST", `${path}/secret`, undefined],
          ["DELETE", path, undefined],
        ] as const) {
          const answer = await expectStatus(403, stage, method, at, { token, body });
          assert.ok(!JSON.stringify(answer.body).includes(secret!));
        }
        await expectStatus(403, stage, "POST", POLICIES, {
          token: eve.session,
          body: { scope: "client", subject: id, required: false },
        });
      }
      await stage.close();
    });

    test("the secret of a client of one's own is replaced at once, or after an overlap", async () => {
      const { stage, eve } = await begin(await prepare(), ["clients:*"]);
      const token = eve.session;
      const own = await register(stage, eve, {});
      const path = `${CLIENTS}/${own["client_id"]}`;
      const replace = async (query: string): Promise<string> => {
        const { body } = await expectStatus(200, stage, "POST", `${path}/secret${query}`, {
          token,
        });
        return (body as unknown as Record<string, string>)["client_secret"]!;
      };
      const ask = async (secret: string): Promise<number> =>
        (
          await fetch(`${stage.url}/api/v1/auth/token/introspect`, {
            method: "POST",
            headers: { Authorization: `Basic ${btoa(`${own["client_id"]}:${secret}`)}` },
            body: new URLSearchParams({ token: "x" }),
          })
        ).status;
      const first = own["client_secret"]!;
      const next = await replace("");
      assert.notEqual(next, first);
      assert.deepEqual([await ask(first), await ask(next)], [401, 200]);
      const last = await replace("?overlap_seconds=60");
      assert.deepEqual(
        [await ask(first), await ask(next), await ask(last)],
        [401, 200, 200],
        "the secret before the last is accepted for the overlap, and none before it",
      );
      const current = await replace("");
      assert.deepEqual([await ask(next), await ask(last)], [401, 401], "without an overlap");
      await expectStatus(400, stage, "POST", `${path}/secret?overlap_seconds=99999999`, { token });
      const changed = await expectStatus(200, stage, "PATCH", path, {
        token,
        body: { client_name: "Mine" },
      });
      assert.equal((changed.body as Record<string, unknown>)["client_name"], "Mine");
      assert.equal((changed.body as Record<string, unknown>)["client_secret"], undefined);
      assert.equal(await ask(current), 200, "another name is no other secret");
      await expectStatus(204, stage, "DELETE", path, { token });
      await stage.close();
    });

    test("a self-registered client conveys no more than the issuer of its initial access token", async () => {
      const { stage, root, eve } = await begin(await prepare(), ["clients:write", "users:read"]);
      const invite = async ({ session: token }: Person): Promise<string> => {
        const { body } = await expectStatus(
          201,
          stage,
          "POST",
          `${CLIENTS}/initial-access-tokens`,
          { token, body: {} },
        );
        return String((body as Record<string, unknown>)["token"]);
      };
      const token = await invite(eve);
      const path = "/api/v1/auth/oauth/register";
      const metadata = { redirect_uris: [CALLBACK] };
      for (const more of [
        { scope: "openid rbac:write" },
        { grant_types: ["authorization_code", EXCHANGE] },
        { first_party: true },
        { platform_audience: "always" },
      ]) {
        await expectStatus(400, stage, "POST", path, { token, body: { ...metadata, ...more } });
      }
      const made = await expectStatus(201, stage, "POST", path, {
        token,
        body: { ...metadata, scope: "openid users:read" },
      });
      const { client_id: id, registration_access_token: manage } = made.body as Record<
        string,
        string
      >;
      const own = { ...metadata, client_id: id, scope: "openid users:read" };
      for (const more of [{ scope: "openid rbac:write" }, { first_party: true }]) {
        await expectStatus(400, stage, "PUT", `${path}/${id}`, {
          token: manage,
          body: { ...own, ...more },
        });
      }
      // An administrator's change does not widen what the client may set itself.
      await expectStatus(200, stage, "PATCH", `${CLIENTS}/${id}`, {
        token: root.session,
        body: { client_name: "Known" },
      });
      await expectStatus(400, stage, "PUT", `${path}/${id}`, {
        token: manage,
        body: { ...own, scope: "openid rbac:write" },
      });
      for (const body of [{ first_party: true }, { platform_audience: "requested" }]) {
        await expectStatus(409, stage, "PATCH", `${CLIENTS}/${id}`, { token: root.session, body });
      }
      await expectStatus(200, stage, "PUT", `${path}/${id}`, { token: manage, body: own });
      const byRoot = await expectStatus(201, stage, "POST", path, {
        token: await invite(root),
        body: { ...metadata, scope: "openid rbac:write" },
      });
      assert.equal((byRoot.body as Record<string, unknown>)["scope"], "openid rbac:write");
      await stage.close();
    });

    test("clients do not convey permissions added to a scope later that their grantor lacked", async () => {
      const { stage, root, eve } = await begin(await prepare(), ["clients:*", "orders:read"]);
      const put = (permissions: string[]) =>
        expectStatus(201, stage, "POST", SCOPES, {
          token: root.session,
          body: { name: "orders", permissions },
        });
      await put(["orders:read"]);
      const read = async (id: string): Promise<unknown> => {
        const { body } = await expectStatus(200, stage, "GET", `${CLIENTS}/${id}`, {
          token: root.session,
        });
        return (body as Record<string, unknown>)["scope"];
      };
      await waitFor(async () => {
        const { status } = await call(stage, "POST", CLIENTS, {
          token: root.session,
          body: { redirect_uris: [CALLBACK], scope: "orders" },
        });
        return status === 201;
      });
      const { client_id: id } = await register(stage, eve, { scope: "openid orders" });
      assert.equal(await read(id!), "openid orders");
      await put(["orders:read", "users:write"]);
      await waitFor(async () => (await read(id!)) === "openid");
      await expectStatus(403, stage, "PATCH", `${CLIENTS}/${id}`, {
        token: eve.session,
        body: { scope: "openid orders" },
      });
      await stage.close();
    });

    test("rbac:write does not allow changing scopes or lifting policies beyond the holder's permissions", async () => {
      const { stage, root, eve } = await begin(await prepare(), [
        "rbac:*",
        "users:*",
        "orders:read",
      ]);
      const token = root.session;
      const put = (body: Record<string, unknown>) =>
        expectStatus(201, stage, "POST", SCOPES, { token, body });
      await put({ name: "orders", permissions: ["orders:read"] });
      await put({ name: "cash", permissions: ["cash:take"] });
      await put({ name: "easy", permissions: ["orders:read"], first_party: true });
      const group = await expectStatus(201, stage, "POST", "/api/v1/groups", {
        token,
        body: { name: "careful" },
      });
      const { id: groupId } = (group.body as never as { group: { id: string } }).group;
      await expectStatus(204, stage, "PUT", `/api/v1/groups/${groupId}/members/${root.id}`, {
        token,
      });
      await expectStatus(201, stage, "POST", ROLES, {
        token,
        body: { name: "employee", permissions: ["orders:read"] },
      });
      await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${root.id}/roles`, {
        token,
        body: { roles: ["employee"] },
      });
      for (const [scope, subject] of [
        ["group", groupId],
        ["role", "employee"],
        ["role", "admin"],
      ]) {
        await expectStatus(201, stage, "POST", POLICIES, {
          token,
          body: { scope, subject, required: true },
        });
      }
      const member = `/api/v1/groups/${groupId}/members/${root.id}`;
      const attempts: [string, string, unknown?][] = [
        ["POST", SCOPES, { name: "cash", permissions: ["orders:read"] }],
        ["POST", SCOPES, { name: "keys:write", permissions: ["orders:read"] }],
        ["POST", SCOPES, { name: "cash:give", permissions: ["orders:read"] }],
        ["POST", SCOPES, { name: "orders", permissions: ["orders:read"], first_party: true }],
        ["POST", SCOPES, { name: "easy", permissions: ["orders:read"] }],
        ["DELETE", `${SCOPES}/cash`],
        ["DELETE", `${SCOPES}/easy`],
        ["DELETE", `${SCOPES}/keys:write`],
        ["POST", POLICIES, { scope: "role", subject: "admin", required: false }],
        ["POST", POLICIES, { scope: "role", subject: "employee", required: false }],
        ["POST", POLICIES, { scope: "group", subject: groupId, required: false }],
        ["POST", POLICIES, { scope: "client", subject: "platform", required: false }],
        ["DELETE", `${POLICIES}/role/employee`],
        ["DELETE", `${POLICIES}/group/${groupId}`],
        ["DELETE", member],
        ["DELETE", `/api/v1/groups/${groupId}`],
        ["DELETE", `/api/v1/rbac/users/${root.id}/roles`, { roles: ["employee"] }],
        ["DELETE", `${ROLES}/employee`],
      ];
      for (const [method, path, body] of attempts) {
        await expectStatus(403, stage, method, path, { token: eve.session, body });
      }
      for (const name of ["openid", "offline_access", "profile", "email"]) {
        await expectStatus(409, stage, "POST", SCOPES, {
          token: eve.session,
          body: { name, permissions: ["rbac:write"] },
        });
      }
      await expectStatus(201, stage, "POST", SCOPES, {
        token: eve.session,
        body: { name: "orders", permissions: ["orders:read"], description: "Mine to describe" },
      });
      await expectStatus(204, stage, "DELETE", `${SCOPES}/orders`, { token: eve.session });
      await expectStatus(204, stage, "DELETE", member, { token });
      await stage.close();
    });

    test("a token cannot grant more than its scope conveys", async () => {
      const { stage, root, eve } = await begin(await prepare(), ["users:read"]);
      const narrowed = await expectStatus(200, stage, "POST", "/api/v1/auth/login", {
        body: { ...ADMIN, scope: "rbac:write clients:write" },
      });
      const { access_token: token } = narrowed.body as unknown as Record<string, string>;
      const bindings = `/api/v1/rbac/users/${eve.id}/roles`;
      const attempts: [string, string, unknown][] = [
        ["POST", bindings, { roles: ["admin"] }],
        ["DELETE", bindings, { roles: ["deputy"] }],
        ["POST", ROLES, { name: "more", permissions: ["audit:read"] }],
        ["POST", CLIENTS, { redirect_uris: [CALLBACK], first_party: true }],
        ["POST", CLIENTS, { redirect_uris: [CALLBACK], scope: "keys:write" }],
      ];
      for (const [method, path, body] of attempts) {
        await expectStatus(403, stage, method, path, { token, body });
      }
      await expectStatus(403, stage, "GET", "/metrics", {
        token,
        headers: { "X-Forwarded-For": "192.0.2.1" },
      });
      await expectStatus(200, stage, "POST", bindings, {
        token: root.token,
        body: { roles: ["admin"] },
      });
      await stage.close();
    });
  });
}

test("a first-party client gets only marked scopes without consent", async () => {
  const stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  const root = await signIn(stage, ADMIN);
  const application = await startApplication(stage, "Backoffice", {
    first_party: true,
    scope: "openid profile users:read audit:read",
  });
  const browser = new PageBrowser(stage);
  await browser.submit(await browser.open("/sign-in"), ADMIN, "/sign-in");
  const scope = "openid profile users:read";
  const asked = await browser.open(await application.begin({ scope }));
  assert.match(readText(asked), /Allow Backoffice/);
  const usual = await browser.open(await application.begin({ scope: "openid profile" }));
  assert.equal(usual.status, 0, "identity alone needs no consent");
  await expectStatus(201, stage, "POST", SCOPES, {
    token: root.token,
    body: { name: "users:read", permissions: ["users:read"], first_party: true },
  });
  await waitFor(async () => (await browser.open(await application.begin({ scope }))).status === 0);
  const other = await browser.open(await application.begin({ scope: `${scope} audit:read` }));
  assert.match(readText(other), /Allow Backoffice/);
  application.close();
  await stage.close();
});
