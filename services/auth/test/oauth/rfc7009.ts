// RFC 7009, Token Revocation, and everything else that voids tokens early.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { onEachDatabase } from "../databases.ts";
import { addRole, bindClient, startHost, USER_ID, type Host } from "./host.ts";
import {
  basic,
  introspect,
  obtainCode,
  obtainTokens,
  post,
  postToken,
  readClaims,
  refresh,
  register,
  toAnswer,
  type Answer,
  type TestClient,
} from "./relying-party.ts";

const PATH = "/api/v1/auth/token/revoke";

onEachDatabase((makeUrl) => {
  let url: string;
  let host: Host;
  let other: Host;
  let client: TestClient;
  before(async () => {
    url = await makeUrl();
    host = await startHost({ url });
    other = await startHost({ url, issuer: host.issuer });
    client = await register(host);
  });
  after(() => Promise.all([host.close(), other.close()]));

  const revoke = (token: string, as: TestClient = client): Promise<Answer> =>
    post(host, PATH, { token }, { as });
  const isActive = async (token: string, at: Host = other): Promise<unknown> =>
    (await introspect(host, client, token, { at: at.origin })).active;

  test("2.1: a revoked access token is void on every node immediately; the refresh token stays valid", async () => {
    const { access_token, refresh_token } = await obtainTokens(host, client);
    assert.equal(await isActive(access_token), true);
    assert.equal((await revoke(access_token)).status, 200);
    assert.equal(await isActive(access_token), false);
    assert.equal(await isActive(access_token, host), false);
    assert.equal((await refresh(host, client, refresh_token)).status, 200);
  });

  test("2.1: revoking a refresh token revokes the access tokens of its grant", async () => {
    const { access_token, refresh_token } = await obtainTokens(host, client);
    assert.equal((await revoke(refresh_token)).status, 200);
    assert.equal(await isActive(access_token), false);
    const answer = await refresh(host, client, refresh_token, { at: other.origin });
    assert.equal(answer.body["error"], "invalid_grant");
  });

  test("2.2: unknown, malformed and already revoked tokens return 200", async () => {
    const { access_token } = await obtainTokens(host, client);
    for (const token of ["unknown", "a.b.c", access_token, access_token]) {
      assert.equal((await revoke(token)).status, 200);
    }
  });

  test("2.1: a client cannot revoke another client's token", async () => {
    const { access_token, refresh_token } = await obtainTokens(host, client);
    const thief = await register(host);
    for (const token of [access_token, refresh_token]) {
      assert.equal((await revoke(token, thief)).body["error"], "invalid_request");
      assert.equal(await isActive(token), true);
    }
    assert.equal((await post(host, PATH, { token: access_token })).status, 401);
  });

  test("a public client revokes its own tokens with its client id", async () => {
    const spa = await register(host, { token_endpoint_auth_method: "none" });
    const form = { ...(await obtainCode(host, spa)), client_id: spa.client_id };
    const own = String((await postToken(host, form)).body["access_token"]);
    assert.equal((await post(host, PATH, { token: own, client_id: spa.client_id })).status, 200);
    assert.equal(await isActive(own), false);
    const tokens = await obtainTokens(host, client);
    const foreign = await post(host, PATH, {
      token: tokens.access_token,
      client_id: spa.client_id,
    });
    assert.equal(foreign.status, 400);
    assert.equal(await isActive(tokens.access_token), true);
  });

  test("machine tokens are revoked individually", async () => {
    const mint = async (): Promise<string> =>
      String(
        (await postToken(host, { grant_type: "client_credentials" }, { as: client })).body[
          "access_token"
        ],
      );
    const [one, two] = [await mint(), await mint()];
    await revoke(one);
    assert.deepEqual([await isActive(one), await isActive(two)], [false, true]);
  });

  test("ending a session revokes all of its tokens and no others", async () => {
    const tokens = await obtainTokens(host, client);
    const another = await obtainTokens(host, client);
    await host.oauth.revoker.revokeSession(String(readClaims(tokens.access_token)["sid"]));
    assert.equal(await isActive(tokens.access_token), false);
    const late = await refresh(host, client, tokens.refresh_token, { at: other.origin });
    assert.equal(late.body["error"], "invalid_grant");
    assert.equal(await isActive(another.access_token), true);
    assert.equal((await refresh(host, client, another.refresh_token)).status, 200);
  });

  test("a new epoch of a user voids earlier tokens only", async () => {
    const tokens = await obtainTokens(host, client);
    const login = await host.oauth.loginTokens.mint(await host.findAccount(), await host.signIn());
    await host.database.db
      .updateTable("auth_users")
      .set((row) => ({ epoch: row("epoch", "+", 1) }))
      .where("id", "=", USER_ID)
      .execute();
    await host.oauth.revoker.revokeUser(USER_ID, host.database.db);
    for (const token of [tokens.access_token, login.access_token]) {
      assert.equal(await isActive(token), false);
    }
    assert.equal(
      (await refresh(host, client, tokens.refresh_token)).body["error"],
      "invalid_grant",
    );
    const form = {
      grant_type: "refresh_token",
      refresh_token: login.refresh_token,
      client_id: "platform",
    };
    assert.equal((await postToken(host, form)).body["error"], "invalid_grant");
    // In the same second: epochs distinguish them, issue times would not.
    const fresh = await obtainTokens(host, client);
    assert.equal(await isActive(fresh.access_token), true);
  });

  test("deleting a client voids its tokens", async () => {
    const doomed = await register(host);
    const { access_token } = await obtainTokens(host, doomed);
    const ask = (at: Host): Promise<Answer> =>
      postToken(at, { grant_type: "client_credentials" }, { as: doomed });
    assert.equal((await ask(other)).status, 200);
    assert.equal(await host.oauth.clients.delete(doomed.client_id, undefined), true);
    assert.equal(await isActive(access_token), false);
    assert.equal((await ask(host)).status, 401);
    // Another node may know a client for a second longer; tokens it issues meanwhile are void.
    const late = await ask(other);
    if (late.status === 200) assert.equal(await isActive(String(late.body["access_token"])), false);
    await new Promise((resolve) => setTimeout(resolve, 1_050));
    assert.equal((await ask(other)).status, 401);
  });

  test("revoking a key voids its tokens immediately on every node", async () => {
    const { access_token } = await obtainTokens(host, client);
    const old = host.keys.current.active.kid;
    await host.oauth.rotateKeys({ mode: "immediate", revokeKid: old });
    assert.equal(await isActive(access_token), false);
    assert.equal(await isActive(access_token, host), false);
    await other.oauth.refresh();
    const fresh = await obtainTokens(host, client);
    assert.equal(await isActive(fresh.access_token), true);
  });

  test("the feed reports revocations to callers who may introspect tokens", async () => {
    const read = async (since: number, as?: TestClient): Promise<Answer> =>
      toAnswer(
        await fetch(`${other.origin}/api/v1/auth/revocations?since=${since}`, {
          headers: as === undefined ? {} : { authorization: basic(as) },
        }),
      );
    assert.equal((await read(0)).status, 401);
    const denied = await read(0, client);
    assert.deepEqual([denied.status, denied.body["error"]], [403, "insufficient_scope"]);
    await addRole(host, "follower", "tokens:introspect");
    await bindClient(host, client.client_id, "follower");
    const deadline = Date.now() + 20_000;
    // Rights of clients are cached for a second.
    while ((await read(0, client)).status !== 200) {
      assert.ok(Date.now() < deadline, "the permission does not count");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const { next } = (await read(0, client)).body as { next: number };
    const { access_token } = await obtainTokens(host, client);
    await revoke(access_token);
    const { body } = await read(next, client);
    const list = ({ revocations }: Answer["body"]): unknown[] =>
      (revocations as Record<string, unknown>[]).map(({ kind, value }) => ({ kind, value }));
    assert.deepEqual(list(body), [{ kind: "jti", value: readClaims(access_token)["jti"] }]);
    const doomed = await register(host);
    await host.oauth.clients.delete(doomed.client_id, undefined);
    const later = await read(Number(body["next"]), client);
    assert.deepEqual(list(later.body), [{ kind: "client", value: doomed.client_id }]);
    const bad = await fetch(`${other.origin}/api/v1/auth/revocations?since=-1`, {
      headers: { authorization: basic(client) },
    });
    assert.equal(bad.status, 400);
    await bad.arrayBuffer();
  });

  test("revocations survive a restart", async () => {
    const { access_token, refresh_token } = await obtainTokens(host, client);
    const spent = await obtainTokens(host, client);
    await refresh(host, client, spent.refresh_token);
    await revoke(access_token);
    await revoke(refresh_token);
    const again = await startHost({ url, issuer: host.issuer });
    try {
      assert.equal(await isActive(access_token, again), false);
      const late = await refresh(host, client, refresh_token, { at: again.origin });
      assert.equal(late.body["error"], "invalid_grant");
      const described = await introspect(host, client, spent.refresh_token, { at: again.origin });
      assert.equal(described.active, false);
    } finally {
      await again.close();
    }
  });
});
