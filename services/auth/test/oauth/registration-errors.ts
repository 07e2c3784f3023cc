// Metadata that registrations must not contain, named in the error, for operators and self-registered clients.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIN, call, expectStatus, signIn, startWithAdmin } from "../client.ts";
import { STAGE_KINDS } from "../stage.ts";

test("unknown scopes, offline_access without refresh_token and signed userinfo are rejected by name", async () => {
  const stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  const { token } = await signIn(stage, ADMIN);
  const made = await expectStatus(
    201,
    stage,
    "POST",
    "/api/v1/auth/clients/initial-access-tokens",
    { token, body: {} },
  );
  const initial = (made.body as unknown as { token: string }).token;
  const base = { redirect_uris: ["https://app.example/back"] };
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ ...base, scope: "openid nothing:here" }, /unknown scope nothing:here/],
    [{ ...base, scope: "openid offline_access" }, /offline_access requires .*refresh_token/],
    [{ ...base, userinfo_signed_response_alg: "RS256" }, /userinfo_signed_response_alg/],
    [{ ...base, client_name: "pay\u200Bpal" }, /client_name/],
  ];
  for (const [body, message] of cases) {
    const byOperator = await call(stage, "POST", "/api/v1/auth/clients", { token, body });
    assert.equal(byOperator.status, 400);
    assert.match(String(byOperator.body["detail"]), message);
    const bySelf = await call(stage, "POST", "/api/v1/auth/oauth/register", {
      token: initial,
      body,
    });
    assert.equal(bySelf.status, 400);
    assert.equal(bySelf.body["error"], "invalid_client_metadata");
    assert.match(String(bySelf.body["error_description"]), message);
  }
  const good = {
    ...base,
    scope: "openid offline_access",
    grant_types: ["authorization_code", "refresh_token"],
  };
  await expectStatus(201, stage, "POST", "/api/v1/auth/clients", { token, body: good });
  await stage.close();
});

test("the error names a scope that the client may not have", async () => {
  const stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  const { token } = await signIn(stage, ADMIN);
  const { body: client } = await expectStatus(201, stage, "POST", "/api/v1/auth/clients", {
    token,
    body: {
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      scope: "users:read",
    },
  });
  const answer = await fetch(`${stage.url}/api/v1/auth/token`, {
    method: "POST",
    headers: {
      Authorization: `Basic ${btoa(`${client["client_id"]}:${client["client_secret"]}`)}`,
    },
    body: new URLSearchParams({ grant_type: "client_credentials", scope: "audit:read" }),
  });
  const body = (await answer.json()) as Record<string, string>;
  assert.equal(body["error"], "invalid_scope");
  assert.match(body["error_description"]!, /audit:read/);
  await stage.close();
});
