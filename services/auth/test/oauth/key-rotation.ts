// Signing keys rotate while two nodes issue tokens; no token is rejected.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "@platform/kernel/time";
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { onEachDatabase } from "../databases.ts";
import { startHost, type Host } from "./host.ts";
import {
  introspect,
  obtainTokens,
  postToken,
  readClaims,
  register,
  type TestClient,
} from "./relying-party.ts";

const DAY_MS = 24 * 3_600_000;

onEachDatabase((makeUrl) => {
  let hosts: [Host, Host];
  let client: TestClient;
  let aheadMs = 0;
  // Only the key rings use the test's clock: tokens are issued and verified in real time.
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };

  before(async () => {
    const url = await makeUrl();
    const one = await startHost({ url, keyClock: clock, keyPollMs: 20 });
    const two = await startHost({ url, issuer: one.issuer, keyClock: clock, keyPollMs: 20 });
    hosts = [one, two];
    client = await register(one);
  });
  after(() => Promise.all(hosts.map((host) => host.close())));

  const readKeys = async (host: Host): Promise<JWTVerifyGetKey> => {
    const response = await fetch(`${host.origin}/.well-known/jwks.json`);
    return createLocalJWKSet((await response.json()) as JSONWebKeySet);
  };

  test("a scheduled rotation under load keeps every token valid, by introspection and by cached keys", async () => {
    const [one, two] = hosts;
    const first = one.keys.current.active.kid;
    const stop = new AbortController();
    const kids: unknown[] = [];
    // A verifier that caches the key set for an hour.
    let cached = await readKeys(one);
    const loads = [one, two, one, two].map(async (host, index) => {
      const other = host === one ? two : one;
      while (!stop.signal.aborted) {
        const form = { grant_type: "client_credentials" };
        const { status, body } = await postToken(one, form, { as: client, at: host.origin });
        assert.equal(status, 200, JSON.stringify(body));
        const token = String(body["access_token"]);
        const { protectedHeader } = await jwtVerify(token, cached, { issuer: one.issuer });
        const { kid: used } = protectedHeader;
        const answer = await introspect(one, client, token, { at: other.origin });
        assert.equal(answer.active, true, `load ${index}`);
        kids.push(used);
      }
    });
    const waitForTokens = async (count: number): Promise<void> => {
      const goal = kids.length + count;
      while (kids.length < goal) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await waitForTokens(20);
    const { kid } = await one.oauth.rotateKeys({ mode: "scheduled" });
    await waitForTokens(20);
    cached = await readKeys(two);
    aheadMs += DAY_MS;
    while (one.keys.current.active.kid !== kid || two.keys.current.active.kid !== kid) {
      await waitForTokens(1);
    }
    await waitForTokens(20);
    stop.abort();
    await Promise.all(loads);
    assert.deepEqual(new Set(kids), new Set([first, kid]));
    assert.equal(two.keys.current.active.kid, kid);
  });

  test("an immediate rotation without a revoked key keeps earlier tokens valid", async () => {
    const [one, two] = hosts;
    const before = await obtainTokens(one, client);
    const { kid } = await one.oauth.rotateKeys({ mode: "immediate" });
    const after = await obtainTokens(one, client);
    for (const token of [before.access_token, after.access_token]) {
      assert.equal((await introspect(one, client, token, { at: two.origin })).active, true);
    }
    const header = JSON.parse(
      Buffer.from(after.access_token.split(".")[0]!, "base64url").toString("utf8"),
    ) as Record<string, unknown>;
    assert.equal(header["kid"], kid);
    assert.equal(header["typ"], "at+jwt");
    assert.equal(readClaims(after.access_token)["iss"], one.issuer);
  });
});
