// Identity for the platform's other services: the revocation feed, tenants, scopes, and the end of sessions in tokens.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ADMIN, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { STAGE_KINDS, startStage, type Stage } from "../stage.ts";

const FEED_TOKEN = "a-token-of-the-feed-of-more-than-32-characters";
const SCOPES = ["pulse:publish", "pulse:subscribe", "pulse:manage", "vault:read", "vault:write"];

interface Feed {
  revocations: { seq: number; kind: string; value: string }[];
  next: number;
  latest: number;
  policy_version: number;
}

async function readFeed(stage: Stage, since: number, token = FEED_TOKEN) {
  const response = await fetch(`${stage.url}/api/v1/auth/revocations?since=${since}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return { status: response.status, feed: (await response.json()) as Feed };
}

function readClaims(token: string): Record<string, unknown> {
  const [, body = ""] = token.split(".");
  return JSON.parse(Buffer.from(body, "base64url").toString()) as Record<string, unknown>;
}

async function getToken(stage: Stage, client: { client_id: string; client_secret: string }) {
  const response = await fetch(`${stage.url}/api/v1/auth/token`, {
    method: "POST",
    body: new URLSearchParams({ grant_type: "client_credentials", ...client }),
  });
  const { access_token } = (await response.json()) as { access_token: string };
  return readClaims(access_token);
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`for other services on ${kind}`, { skip }, () => {
    test("the token of the feed opens the feed and nothing else", async () => {
      const stage = await startWithAdmin({ ...(await prepare()), revocations_token: FEED_TOKEN });
      assert.equal((await readFeed(stage, 0)).status, 200);
      for (const wrong of ["", "x", `${FEED_TOKEN}x`, FEED_TOKEN.slice(0, -1)]) {
        assert.equal((await readFeed(stage, 0, wrong)).status, 401, wrong);
      }
      const token = FEED_TOKEN;
      for (const path of [
        "/api/v1/auth/account",
        "/api/v1/users",
        "/api/v1/audit",
        "/api/v1/sessions",
      ])
        await expectStatus(401, stage, "GET", path, { token });
      const introspected = await fetch(`${stage.url}/api/v1/auth/token/introspect`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        body: new URLSearchParams({ token: "x" }),
      });
      assert.equal(introspected.status, 401);
      await stage.close();
    });

    test("the feed names its last position, also to followers that are ahead of it", async () => {
      const stage = await startWithAdmin({ ...(await prepare()), revocations_token: FEED_TOKEN });
      const { feed: before } = await readFeed(stage, 0);
      const ada = await join(stage, "ada");
      await expectStatus(204, stage, "POST", "/api/v1/auth/logout", { token: ada.token });
      const { feed } = await readFeed(stage, before.next);
      const { sid } = readClaims(ada.token);
      assert.deepEqual(
        feed.revocations.map(({ kind: of, value }) => [of, value]).filter(([of]) => of === "sid"),
        [["sid", sid]],
      );
      assert.equal(feed.latest, feed.next);
      const { feed: ahead } = await readFeed(stage, 1_000_000);
      assert.deepEqual([ahead.revocations, ahead.next], [[], 1_000_000]);
      assert.equal(ahead.latest, feed.latest);
      await stage.close();
    });

    test("the feed has the policy version of new tokens, which rises with a change of roles", async () => {
      const stage = await startWithAdmin({ ...(await prepare()), revocations_token: FEED_TOKEN });
      const root = await signIn(stage, ADMIN);
      const { feed: before } = await readFeed(stage, 0);
      assert.equal(readClaims(root.token)["policy_version"], before.policy_version);
      await expectStatus(201, stage, "POST", "/api/v1/rbac/roles", {
        token: root.token,
        body: { name: "reader", permissions: ["vault:read"] },
      });
      const { feed: after } = await readFeed(stage, 0);
      assert.ok(after.policy_version > before.policy_version);
      const { token } = await signIn(stage, ADMIN);
      assert.equal(readClaims(token)["policy_version"], after.policy_version);
      await stage.close();
    });

    test("without a token of the feed, no bearer is taken for it", async () => {
      const stage = await startWithAdmin(await prepare());
      for (const token of ["undefined", "x"])
        assert.equal((await readFeed(stage, 0, token)).status, 401);
      await stage.close();
    });
  });
}

test("tokens name the tenant of the user, or the default, of users and of machines", async () => {
  const settings = await STAGE_KINDS[0]!.prepare();
  const stage = await startWithAdmin({ ...settings, default_tenant: "main" });
  const root = await signIn(stage, ADMIN);
  const ada = await join(stage, "ada");
  assert.equal(readClaims(ada.token)["tenant"], "main");
  await expectStatus(200, stage, "PATCH", `/api/v1/users/${ada.id}`, {
    token: root.token,
    body: { tenant: "acme" },
  });
  assert.equal(readClaims((await signIn(stage, ada)).token)["tenant"], "acme");
  const made = await expectStatus(201, stage, "POST", "/api/v1/auth/clients", {
    token: root.token,
    body: { grant_types: ["client_credentials"], redirect_uris: [], response_types: [] },
  });
  const { client_id, client_secret } = made.body as never;
  assert.equal((await getToken(stage, { client_id, client_secret }))["tenant"], "main");
  await stage.close();

  const without = await startStage(settings);
  const bob = await join(without, "bob");
  assert.equal(readClaims(bob.token)["tenant"], undefined);
  await without.close();
});

test("the scopes of services exist, administrators have them, users need a role", async () => {
  const stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  const root = await signIn(stage, ADMIN);
  const scopesOf = (token: string) => String(readClaims(token)["scope"]).split(" ");
  for (const scope of SCOPES) assert.ok(scopesOf(root.token).includes(scope), scope);
  const ada = await join(stage, "ada");
  assert.ok(!scopesOf(ada.token).some((scope) => SCOPES.includes(scope)));
  await expectStatus(201, stage, "POST", "/api/v1/rbac/roles", {
    token: root.token,
    body: { name: "reader", permissions: ["pulse:subscribe", "vault:read"] },
  });
  await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${ada.id}/roles`, {
    token: root.token,
    body: { roles: ["reader"] },
  });
  const { token } = await signIn(stage, ada);
  const found = scopesOf(token).filter((scope) => SCOPES.includes(scope));
  assert.deepEqual(found.sort(), ["pulse:subscribe", "vault:read"]);
  assert.deepEqual(readClaims(token)["roles"], ["reader"]);
  await stage.close();
});

test("tokens of a session name its end, which is the idle timeout or the maximum lifetime", async () => {
  const hour = 3_600_000;
  for (const [idleMs, absoluteMs, hours] of [
    [2 * hour, 24 * hour, 2],
    [24 * hour, 3 * hour, 3],
  ] as const) {
    const stage = await startWithAdmin({
      ...(await STAGE_KINDS[0]!.prepare()),
      session_idle_ms: idleMs,
      session_absolute_ms: absoluteMs,
    });
    const { token } = await signIn(stage, ADMIN);
    const left = Number(readClaims(token)["session_exp"]) - stage.clock.now() / 1_000;
    assert.ok(Math.abs(left - hours * 3_600) < 30, `${left} s`);
    await stage.close();
  }
});

test("a session that ends to make room for another one is revoked", async () => {
  const settings = { ...(await STAGE_KINDS[0]!.prepare()), revocations_token: FEED_TOKEN };
  const stage = await startWithAdmin(settings);
  const ada = await join(stage, "ada");
  const { sid } = readClaims(ada.token);
  const { feed: before } = await readFeed(stage, 0);
  for (let session = 0; session < 100; session += 1) await signIn(stage, ada);
  const { feed } = await readFeed(stage, before.next);
  assert.deepEqual(
    feed.revocations.map(({ value }) => value),
    [sid],
  );
  await stage.close();
});
