// RFC 8707, Resource Indicators: tokens for the platform's services, for other resources, and for userinfo only.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openDatabase } from "@platform/kernel/db";
import { OAUTH_MIGRATIONS } from "../../src/database/oauth.ts";
import type { AuthTables } from "../../src/database/schema.ts";
import { USER_MIGRATIONS } from "../../src/database/user.ts";
import { onEachDatabase } from "../databases.ts";
import { addRole, bindClient, startHost, type Host } from "./host.ts";
import {
  authorize,
  createPkce,
  obtainTokens,
  postToken,
  readClaims,
  refresh,
  register,
  toAnswer,
  type TestClient,
} from "./relying-party.ts";

const ORDERS = "https://orders.example/";
const PLATFORM = "urn:platform";

onEachDatabase((makeUrl) => {
  let host: Host;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
  });
  after(() => host.close());

  const readAudience = (token: unknown): unknown => readClaims(String(token))["aud"];
  const obtainAudience = async (
    client: TestClient,
    params: Record<string, string> = {},
  ): Promise<unknown> => readAudience((await obtainTokens(host, client, params)).access_token);
  const askMachine = (client: TestClient, more: Record<string, string> = {}) =>
    postToken(host, { grant_type: "client_credentials", ...more }, { as: client });
  const isRefused = async (client: TestClient, resource: string): Promise<void> => {
    const { challenge } = createPkce();
    const answer = await authorize(host, client, {
      code_challenge: challenge,
      code_challenge_method: "S256",
      resource,
    });
    assert.equal(answer.get("error"), "invalid_target", resource);
    const { status, body } = await askMachine(client, { resource });
    assert.deepEqual([status, body["error"]], [400, "invalid_target"], resource);
  };

  test("a third-party client's tokens are for userinfo or for the resource that it names", async () => {
    const client = await register(host);
    await bindClient(host, client.client_id);
    const tokens = await obtainTokens(host, client);
    assert.equal(readAudience(tokens.access_token), host.issuer);
    const again = await refresh(host, client, tokens.refresh_token);
    assert.equal(readAudience(again.body["access_token"]), host.issuer);
    assert.equal(await obtainAudience(client, { resource: ORDERS }), ORDERS);
    const machine = await askMachine(client);
    assert.equal(readAudience(machine.body["access_token"]), host.issuer);
    const named = await askMachine(client, { resource: ORDERS });
    assert.equal(readAudience(named.body["access_token"]), ORDERS);
    assert.equal(named.body["scope"], "orders.read", "all that it may have, as without a resource");
  });

  test("the platform's resource requires an administrator's permission in any spelling", async () => {
    const client = await register(host);
    for (const resource of [
      PLATFORM,
      "URN:platform",
      "urn:PLATFORM",
      "platform",
      "#",
      "x".repeat(600),
    ])
      await isRefused(client, resource);
    await isRefused(client, `https://long.example/${"x".repeat(512)}`);
    const allowed = await register(host, { platform_audience: "requested" });
    await bindClient(host, allowed.client_id);
    assert.equal(await obtainAudience(allowed), host.issuer);
    assert.equal(await obtainAudience(allowed, { resource: PLATFORM }), "platform");
    const machine = await askMachine(allowed, { resource: PLATFORM });
    assert.equal(readAudience(machine.body["access_token"]), "platform");
    const always = await register(host, { platform_audience: "always" });
    assert.equal(await obtainAudience(always), "platform");
  });

  test("a first-party client's tokens are for the platform's services", async () => {
    const client = await register(host, { first_party: true });
    const tokens = await obtainTokens(host, client);
    assert.equal(readAudience(tokens.access_token), "platform");
    const again = await refresh(host, client, tokens.refresh_token);
    assert.equal(readAudience(again.body["access_token"]), "platform");
    assert.equal(await obtainAudience(client, { resource: ORDERS }), ORDERS);
  });

  test("a resource cannot use a token sent to it at userinfo", async () => {
    const client = await register(host);
    const ask = async (token: string): Promise<number> =>
      (
        await toAnswer(
          await fetch(`${host.origin}/api/v1/auth/userinfo`, {
            headers: { authorization: `Bearer ${token}` },
          }),
        )
      ).status;
    assert.equal(await ask((await obtainTokens(host, client)).access_token), 200);
    const other = await obtainTokens(host, client, { resource: ORDERS });
    assert.equal(await ask(other.access_token), 401);
  });

  test("an exchanged token never has a wider audience than its subject token", async () => {
    const type = "urn:ietf:params:oauth:grant-type:token-exchange";
    const service = await register(host, { grant_types: [type], platform_audience: "requested" });
    const plain = await register(host, { grant_types: [type] });
    await addRole(host, "exchanger", "tokens:exchange");
    for (const { client_id } of [service, plain]) await bindClient(host, client_id, "exchanger");
    const swap = async (as: TestClient, token: string, more: Record<string, string> = {}) => {
      const { status, body } = await postToken(
        host,
        {
          grant_type: type,
          subject_token: token,
          subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
          ...more,
        },
        { as },
      );
      return status === 200 ? readAudience(body["access_token"]) : body["error"];
    };
    const own = await register(host, { first_party: true });
    const { access_token: wide } = await obtainTokens(host, own);
    const third = await register(host);
    const { access_token: narrow } = await obtainTokens(host, third);
    const { access_token: other } = await obtainTokens(host, third, { resource: ORDERS });
    assert.equal(await swap(service, wide), "platform");
    assert.equal(await swap(service, wide, { audience: "platform" }), "platform");
    assert.equal(await swap(service, wide, { resource: ORDERS }), ORDERS);
    assert.equal(await swap(plain, wide), "invalid_target");
    assert.equal(await swap(plain, wide, { resource: ORDERS }), ORDERS);
    for (const token of [narrow, other]) {
      assert.equal(await swap(service, token, { resource: PLATFORM }), "invalid_target");
      assert.equal(await swap(service, token, { audience: "platform" }), "invalid_target");
    }
    assert.equal(await swap(service, narrow, { resource: ORDERS }), "invalid_target");
    assert.equal(await swap(service, other), ORDERS);
  });

  test("clients registered before the upgrade keep their audience", async () => {
    const database = openDatabase<AuthTables>({ url: await makeUrl(), service: "auth" });
    await database.migrate(USER_MIGRATIONS, 0, "user");
    await database.migrate(OAUTH_MIGRATIONS.slice(0, 3), 0, "oauth");
    const old = { secret: null, created_at: 0, updated_at: 0 };
    for (const id of ["operators", "dynamic"]) {
      const row = { ...old, client_id: id, metadata: JSON.stringify({ client_id: id }) };
      await database.db
        .insertInto("auth_oauth_clients")
        .values(row as never)
        .execute();
    }
    await database.db
      .insertInto("auth_oauth_items")
      .values({
        id_hash: "1",
        model: "RegistrationAccessToken",
        payload: "{}",
        grant_id: null,
        sid: null,
        account_id: null,
        client_id: "dynamic",
        user_code_hash: null,
        consumed_at: null,
        consumed_jkt: null,
        expires_at: null,
      })
      .execute();
    await database.migrate(OAUTH_MIGRATIONS, 0, "oauth");
    const rows = await database.db
      .selectFrom("auth_oauth_clients")
      .select(["client_id", "granted", "is_dynamic", "keeps_audience"])
      .orderBy("client_id")
      .execute();
    const kept = { granted: '["*:*"]', keeps_audience: 1 };
    assert.deepEqual(
      rows.map((row) => ({ ...row })),
      [
        { client_id: "dynamic", is_dynamic: 1, ...kept },
        { client_id: "operators", is_dynamic: 0, ...kept },
      ],
    );
    await database.close();
    const { client_id } = await register(host);
    await host.database.db
      .updateTable("auth_oauth_clients")
      .set({ keeps_audience: 1 })
      .where("client_id", "=", client_id)
      .execute();
    const listed = await host.oauth.clients.find(client_id);
    assert.equal(listed?.["platform_audience"], "always");
  });
});
