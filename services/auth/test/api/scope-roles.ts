// Scopes that map to roles: issued to holders, conveying the roles' current permissions, without escalation.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin, type Person } from "../client.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";

const SCOPES = "/api/v1/auth/scopes";
const ROLES = "/api/v1/rbac/roles";
const CLIENTS = "/api/v1/auth/clients";
const CALLBACK = "https://app.example/callback";

interface Cast {
  stage: Stage;
  root: Person;
}

async function begin(settings: Record<string, unknown>): Promise<Cast> {
  const stage = await startWithAdmin(settings);
  const root = await signIn(stage, ADMIN);
  return { stage, root };
}

async function makeRole(
  { stage, root }: Cast,
  name: string,
  permissions: readonly string[],
  parents: readonly string[] = [],
): Promise<void> {
  const body = { name, permissions, parents };
  await expectStatus(201, stage, "POST", ROLES, { token: root.session, body });
}

async function bind(
  { stage, root }: Cast,
  id: string,
  names: readonly string[],
  kind = "users",
): Promise<void> {
  await expectStatus(200, stage, "PUT", `/api/v1/rbac/${kind}/${id}/roles`, {
    token: root.session,
    body: { roles: names },
  });
}

async function issue(
  stage: Stage,
  person: Pick<Person, "username" | "password">,
  scope: string,
): Promise<{ token: string; granted: string[] }> {
  const { username, password } = person;
  const { body } = await expectStatus(200, stage, "POST", "/api/v1/auth/login", {
    body: { username, password, scope },
  });
  const { access_token: token } = body as unknown as { access_token: string };
  const claims = JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString("utf8")) as {
    scope?: string;
  };
  return { token, granted: claims.scope?.split(" ") ?? [] };
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`scopes of roles on ${kind}`, { skip }, () => {
    test("a scope is granted to holders of its roles and conveys their current permissions", async () => {
      const cast = await begin(await prepare());
      const { stage, root } = cast;
      const carol = await join(stage, "carol");
      const dave = await join(stage, "dave");
      await makeRole(cast, "reader", ["users:read"]);
      await makeRole(cast, "keeper", ["sessions:read"], ["reader"]);
      await makeRole(cast, "lookalike", ["sessions:read"]);
      await bind(cast, carol.id, ["keeper"]);
      await bind(cast, dave.id, ["lookalike"]);
      const item = { name: "keeping", roles: ["keeper"] };
      const made = await expectStatus(201, stage, "POST", SCOPES, {
        token: root.session,
        body: item,
      });
      const expected = { ...item, permissions: [], description: "", first_party: false };
      assert.deepEqual(made.body, expected);
      const { body } = await expectStatus(200, stage, "GET", SCOPES, { token: root.session });
      const listed = (body as never as { scopes: { name: string }[] }).scopes;
      assert.deepEqual(
        listed.find(({ name }) => name === "keeping"),
        expected,
      );

      assert.ok((await issue(stage, carol, "openid keeping")).granted.includes("keeping"));
      const others = await issue(stage, dave, "openid keeping");
      assert.ok(!others.granted.includes("keeping"), "one permission of the role is not the role");
      assert.ok((await issue(stage, root, "openid keeping")).granted.includes("keeping"));

      const { token } = await issue(stage, carol, "openid keeping");
      const ask = async (path: string): Promise<number> =>
        (await call(stage, "GET", path, { token })).status;
      assert.deepEqual(
        [await ask("/api/v1/users"), await ask(ROLES)],
        [200, 403],
        "inherited permissions are conveyed, others are not",
      );
      const change = (method: string, permissions: string[]) =>
        expectStatus(200, stage, method, `${ROLES}/reader/permissions`, {
          token: root.session,
          body: { permissions },
        });
      await change("POST", ["rbac:read"]);
      await waitFor(async () => (await ask(ROLES)) === 200);
      await change("PUT", ["rbac:read"]);
      assert.equal(await ask("/api/v1/users"), 403, "taken from the role, taken from the token");
      await stage.close();
    });

    test("a client gets the scope through its role, and the scope can be replaced", async () => {
      const cast = await begin(await prepare());
      const { stage, root } = cast;
      await makeRole(cast, "robot", ["orders:read"]);
      await expectStatus(201, stage, "POST", SCOPES, {
        token: root.session,
        body: { name: "robotics", permissions: ["cash:take"] },
      });
      await expectStatus(200, stage, "PUT", `${SCOPES}/robotics`, {
        token: root.session,
        body: { roles: ["robot"] },
      });
      const body = {
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        scope: "robotics",
      };
      const made = await expectStatus(201, stage, "POST", CLIENTS, { token: root.session, body });
      const { client_id: id, client_secret: secret } = made.body as never as Record<string, string>;
      const ask = async (): Promise<Record<string, unknown>> => {
        const response = await fetch(`${stage.url}/api/v1/auth/token`, {
          method: "POST",
          headers: { Authorization: `Basic ${btoa(`${id}:${secret}`)}` },
          body: new URLSearchParams({ grant_type: "client_credentials", scope: "robotics" }),
        });
        return (await response.json()) as Record<string, unknown>;
      };
      assert.equal((await ask())["scope"], undefined, "without the role there is no such scope");
      await bind(cast, id!, ["robot"], "clients");
      await waitFor(async () => (await ask())["scope"] === "robotics");
      await stage.close();
    });

    test("a scope cannot convey roles that the grantor does not hold", async () => {
      const cast = await begin(await prepare());
      const { stage, root } = cast;
      const eve = await join(stage, "eve");
      await makeRole(cast, "clerk", ["orders:read"]);
      await makeRole(cast, "cashier", ["cash:take"], ["clerk"]);
      await makeRole(cast, "deputy", ["rbac:*", "clients:*", "orders:read", "orders:write"]);
      await bind(cast, eve.id, ["deputy"]);
      const byRoot = { token: root.session };
      for (const body of [
        { name: "cash", roles: ["cashier"] },
        { name: "easy", roles: ["clerk"], first_party: true },
        { name: "plain", roles: ["clerk"] },
      ]) {
        await expectStatus(201, stage, "POST", SCOPES, { ...byRoot, body });
      }
      const token = eve.session;
      const attempts: [string, string, unknown?][] = [
        ["POST", SCOPES, { name: "mine", roles: ["admin"] }],
        ["POST", SCOPES, { name: "mine", roles: ["cashier"] }],
        ["PUT", `${SCOPES}/mine`, { permissions: ["orders:read"], roles: ["cashier"] }],
        ["POST", SCOPES, { name: "cash", roles: ["clerk"] }],
        ["DELETE", `${SCOPES}/cash`],
        ["PUT", `${SCOPES}/easy`, { roles: ["clerk"] }],
        ["POST", `${ROLES}/clerk/permissions`, { permissions: ["cash:take"] }],
        // Within eve's rights, but only administrators may widen what first-party clients get without consent.
        ["POST", `${ROLES}/clerk/permissions`, { permissions: ["orders:write"] }],
        ["POST", `${ROLES}/clerk/parents`, { parents: ["deputy"] }],
      ];
      for (const [method, path, body] of attempts) {
        await expectStatus(403, stage, method, path, { token, body });
      }
      await expectStatus(404, stage, "POST", SCOPES, {
        ...byRoot,
        body: { name: "mine", roles: ["nowhere"] },
      });
      for (const body of [{ name: "mine" }, { name: "mine", roles: [], permissions: [] }]) {
        const { status } = await call(stage, "POST", SCOPES, { ...byRoot, body });
        assert.equal(status, 400);
      }
      const used = await expectStatus(409, stage, "DELETE", `${ROLES}/cashier`, byRoot);
      assert.match(JSON.stringify(used.body), /cash/);
      await expectStatus(403, stage, "DELETE", `${ROLES}/cashier`, { token });
      await waitFor(async () => {
        const made = await call(stage, "POST", CLIENTS, {
          token,
          body: { redirect_uris: [CALLBACK], scope: "plain" },
        });
        return made.status === 201;
      });
      await expectStatus(403, stage, "POST", CLIENTS, {
        token,
        body: { redirect_uris: [CALLBACK], scope: "cash" },
      });
      await stage.close();
    });

    test("clients do not convey permissions added to a role later that their grantor lacked", async () => {
      const cast = await begin(await prepare());
      const { stage, root } = cast;
      const eve = await join(stage, "eve");
      await makeRole(cast, "clerk", ["orders:read"]);
      await makeRole(cast, "deputy", ["clients:*", "orders:read"]);
      await bind(cast, eve.id, ["deputy"]);
      await expectStatus(201, stage, "POST", SCOPES, {
        token: root.session,
        body: { name: "clerking", roles: ["clerk"] },
      });
      let id = "";
      await waitFor(async () => {
        const { status, body } = await call(stage, "POST", CLIENTS, {
          token: eve.session,
          body: { redirect_uris: [CALLBACK], scope: "openid clerking" },
        });
        id = String((body as Record<string, unknown>)["client_id"]);
        return status === 201;
      });
      const read = async (): Promise<unknown> => {
        const { body } = await expectStatus(200, stage, "GET", `${CLIENTS}/${id}`, {
          token: root.session,
        });
        return (body as Record<string, unknown>)["scope"];
      };
      assert.equal(await read(), "openid clerking");
      await expectStatus(200, stage, "POST", `${ROLES}/clerk/permissions`, {
        token: root.session,
        body: { permissions: ["users:write"] },
      });
      await waitFor(async () => (await read()) === "openid");
      await expectStatus(204, stage, "DELETE", `${SCOPES}/clerking`, { token: root.session });
      await expectStatus(204, stage, "DELETE", `${ROLES}/clerk`, { token: root.session });
      await stage.close();
    });
  });
}
