// RFC 9449, Demonstrating Proof of Possession (DPoP).
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from "jose";
import { onEachDatabase } from "../databases.ts";
import { addRole, bindClient, startHost, USER_ID, type Host } from "./host.ts";
import {
  introspect,
  obtainCode,
  postToken,
  register,
  toAnswer,
  type Answer,
  type TestClient,
} from "./relying-party.ts";

interface Key {
  privateKey: CryptoKey;
  jwk: JWK;
}

onEachDatabase((makeUrl) => {
  let host: Host;
  let client: TestClient;
  let key: Key;
  let otherKey: Key;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    client = await register(host, { token_endpoint_auth_method: "none" });
    [key, otherKey] = [await createKey(), await createKey()];
  });
  after(() => host.close());

  const createKey = async (): Promise<Key> => {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    return { privateKey, jwk: await exportJWK(publicKey) };
  };
  const prove = (
    { privateKey, jwk }: Key,
    more: Record<string, unknown> = {},
    header: Record<string, unknown> = {},
  ): Promise<string> =>
    new SignJWT({
      jti: randomUUID(),
      htm: "POST",
      htu: `${host.issuer}/api/v1/auth/token`,
      iat: Math.floor(Date.now() / 1_000),
      ...more,
    })
      .setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk, ...header })
      .sign(privateKey);
  const obtain = async (): Promise<{ access_token: string; refresh_token: string }> => {
    const form = { ...(await obtainCode(host, client)), client_id: client.client_id };
    const { status, body } = await postToken(host, form, { headers: { dpop: await prove(key) } });
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body["token_type"], "DPoP");
    return body as { access_token: string; refresh_token: string };
  };
  const refreshWith = async (token: string, proof?: string): Promise<Answer> =>
    postToken(
      host,
      { grant_type: "refresh_token", refresh_token: token, client_id: client.client_id },
      proof === undefined ? {} : { headers: { dpop: proof } },
    );
  const getUserinfo = async (headers: Record<string, string>): Promise<Answer> =>
    toAnswer(await fetch(`${host.origin}/api/v1/auth/userinfo`, { headers }));
  const userinfoClaims = (token: string): Record<string, unknown> => ({
    htm: "GET",
    htu: `${host.issuer}/api/v1/auth/userinfo`,
    ath: createHash("sha256").update(token).digest("base64url"),
  });

  test("6: a token is bound to the key of its proof", async () => {
    const { access_token } = await obtain();
    const confidential = await register(host);
    await addRole(host, "watcher", "tokens:introspect");
    await bindClient(host, confidential.client_id, "watcher");
    const described = await introspect(host, confidential, access_token);
    assert.equal(described["token_type"], "DPoP");
    assert.match((described["cnf"] as { jkt: string }).jkt, /^[A-Za-z0-9_-]{43}$/);
  });

  test("5: a public client's refresh token is bound as well, also within the grace period", async () => {
    const { refresh_token } = await obtain();
    const refusals = [undefined, await prove(otherKey)];
    for (const proof of refusals) {
      assert.equal((await refreshWith(refresh_token, proof)).body["error"], "invalid_grant");
    }
    const first = await refreshWith(refresh_token, await prove(key));
    assert.equal(first.status, 200, JSON.stringify(first.body));
    const stolen = await refreshWith(refresh_token, await prove(otherKey));
    assert.equal(stolen.body["error"], "invalid_grant");
    const again = await refreshWith(refresh_token, await prove(key));
    assert.equal(again.body["refresh_token"], first.body["refresh_token"]);
  });

  test("5: a confidential client's refresh of bound tokens requires a proof of any of its keys", async () => {
    const machine = await register(host);
    const form = await obtainCode(host, machine);
    const got = await postToken(host, form, { as: machine, headers: { dpop: await prove(key) } });
    assert.equal(got.body["token_type"], "DPoP");
    let token = String(got.body["refresh_token"]);
    const refreshAs = async (proof?: string): Promise<Answer> =>
      postToken(
        host,
        { grant_type: "refresh_token", refresh_token: token },
        { as: machine, ...(proof === undefined ? {} : { headers: { dpop: proof } }) },
      );
    for (const proofKey of [key, otherKey]) {
      const bare = await refreshAs();
      assert.equal(bare.status, 400);
      assert.equal(bare.body["error"], "invalid_dpop_proof");
      const proved = await refreshAs(await prove(proofKey));
      assert.equal(proved.body["token_type"], "DPoP", JSON.stringify(proved.body));
      token = String(proved.body["refresh_token"]);
    }
  });

  test("11.1: one of several concurrent uses of a proof succeeds", async () => {
    const machine = await register(host);
    const proof = await prove(key);
    const ask = (): Promise<Answer> =>
      postToken(
        host,
        { grant_type: "client_credentials" },
        { as: machine, headers: { dpop: proof } },
      );
    const answers = await Promise.all([ask(), ask(), ask()]);
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
    for (const { status, body } of [
      ...answers.filter((item) => item.status !== 200),
      await ask(),
    ]) {
      assert.equal(status, 400);
      assert.equal(body["error"], "invalid_dpop_proof");
    }
  });

  test("4.3: proofs for another request, expired ones and ones with a wrong signature are rejected", async () => {
    const form = { ...(await obtainCode(host, client)), client_id: client.client_id };
    const now = Math.floor(Date.now() / 1_000);
    const proofs = [
      await prove(key, { htm: "GET" }),
      await prove(key, { htu: "https://elsewhere.example/token" }),
      await prove(key, { iat: now - 3_600 }),
      await prove(key, { jti: undefined }),
      await prove(key, {}, { typ: "jwt" }),
      await prove(key, {}, { jwk: otherKey.jwk }),
      "not.a.proof",
    ];
    for (const proof of proofs) {
      const { status, body } = await postToken(host, form, { headers: { dpop: proof } });
      assert.equal(status, 400);
      assert.equal(body["error"], "invalid_dpop_proof");
    }
    assert.equal(
      (await postToken(host, form, { headers: { dpop: await prove(key) } })).status,
      200,
    );
  });

  test("11.1: a proof is valid once", async () => {
    const proof = await prove(key);
    const [one, two] = [await obtain(), await obtain()];
    assert.equal((await refreshWith(one.refresh_token, proof)).status, 200);
    assert.notEqual((await refreshWith(two.refresh_token, proof)).status, 200);
  });

  test("7.1: userinfo requires a fresh proof of the token's key", async () => {
    const { access_token } = await obtain();
    const authorization = `DPoP ${access_token}`;
    const claims = userinfoClaims(access_token);
    const good = await prove(key, claims);
    const answer = await getUserinfo({ authorization, dpop: good });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    assert.equal(answer.body["sub"], USER_ID);
    const refused: Record<string, string>[] = [
      { authorization },
      { authorization, dpop: good },
      { authorization, dpop: await prove(otherKey, claims) },
      { authorization, dpop: await prove(key, { ...claims, ath: "x" }) },
      { authorization, dpop: await prove(key, { ...claims, htm: "POST" }) },
      { authorization, dpop: await prove(key, { ...claims, iat: 1 }) },
      { authorization: `Bearer ${access_token}`, dpop: await prove(key, claims) },
      { authorization: `Bearer ${access_token}` },
      { authorization: "DPoP x", dpop: await prove(key, claims) },
      {},
    ];
    for (const headers of refused) {
      const { status, headers: sent } = await getUserinfo(headers);
      assert.equal(status, 401);
      assert.match(sent.get("www-authenticate") ?? "", /^(?:DPoP|Bearer)/);
    }
  });
});
