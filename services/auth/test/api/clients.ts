// Operations on OAuth clients and signing keys.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { STAGE_KINDS } from "../stage.ts";

test("an administrator registers a client, which gets tokens for its roles, and deletes it", async () => {
  const stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  const { token } = await signIn(stage, ADMIN);
  const stranger = await join(stage, "stranger");
  const metadata = {
    client_name: "Robot",
    first_party: true,
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: [],
    scope: "users:read audit:read",
  };
  await expectStatus(403, stage, "POST", "/api/v1/auth/clients", {
    token: stranger.token,
    body: metadata,
  });
  const made = await expectStatus(201, stage, "POST", "/api/v1/auth/clients", {
    token,
    body: metadata,
  });
  const { client_id: id, client_secret: secret } = made.body as Record<string, string>;
  await expectStatus(201, stage, "POST", "/api/v1/rbac/roles", {
    token,
    body: { name: "robot", permissions: ["users:read"] },
  });
  await expectStatus(200, stage, "PUT", `/api/v1/rbac/clients/${id}/roles`, {
    token,
    body: { roles: ["robot"] },
  });
  const ask = () =>
    fetch(`${stage.publicUrl}/api/v1/auth/token`, {
      method: "POST",
      headers: {
        Authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`,
      },
      body: new URLSearchParams({ grant_type: "client_credentials" }),
    });
  const granted = (await (await ask()).json()) as Record<string, string>;
  assert.equal(granted["scope"], "users:read");
  const robot = granted["access_token"];
  await expectStatus(200, stage, "GET", "/api/v1/users", { token: robot });
  await expectStatus(403, stage, "GET", "/api/v1/audit", { token: robot });
  await expectStatus(403, stage, "POST", "/api/v1/auth/logout", { token: robot });
  const list = await call(stage, "GET", "/api/v1/auth/clients", { token });
  assert.ok(!JSON.stringify(list.body).includes(secret!));
  await expectStatus(204, stage, "DELETE", `/api/v1/auth/clients/${id}`, { token });
  assert.equal((await ask()).status, 401);
  await expectStatus(401, stage, "GET", "/api/v1/users", { token: robot });
  await expectStatus(404, stage, "DELETE", `/api/v1/auth/clients/${id}`, { token });
  await stage.close();
});

test("rotating keys requires a permission, and tokens of a revoked key are rejected immediately", async () => {
  const stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  const { token, session } = await signIn(stage, ADMIN);
  const stranger = await join(stage, "stranger");
  const rotate = "/api/v1/auth/keys/rotate";
  await expectStatus(403, stage, "POST", rotate, { token: stranger.session, body: {} });
  await expectStatus(400, stage, "POST", rotate, { token, body: { mode: "sometime" } });
  await expectStatus(200, stage, "POST", rotate, { token, body: { mode: "scheduled" } });
  await expectStatus(200, stage, "GET", "/api/v1/auth/account", { token });
  const list = await expectStatus(200, stage, "GET", "/api/v1/auth/keys", { token });
  const { keys } = list.body as never as { keys: { kid: string; state: string }[] };
  const active = keys.find(({ state }) => state === "active")!;
  await expectStatus(200, stage, "POST", rotate, {
    token: session,
    body: { mode: "immediate", revoke_kid: active.kid },
  });
  await expectStatus(401, stage, "GET", "/api/v1/auth/account", { token });
  const again = await signIn(stage, ADMIN);
  await expectStatus(200, stage, "GET", "/api/v1/auth/account", { token: again.token });
  await stage.close();
});
