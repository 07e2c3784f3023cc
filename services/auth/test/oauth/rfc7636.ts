// RFC 7636, Proof Key for Code Exchange.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { onEachDatabase } from "../databases.ts";
import { startHost, type Host } from "./host.ts";
import {
  authorize,
  CALLBACK,
  createPkce,
  obtainCode,
  postToken,
  register,
  type TestClient,
} from "./relying-party.ts";

onEachDatabase((makeUrl) => {
  let host: Host;
  let client: TestClient;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    client = await register(host);
  });
  after(() => host.close());

  test("4.4.1: every client must send a challenge with S256", async () => {
    const { challenge } = createPkce();
    for (const params of [
      {},
      { code_challenge: challenge },
      { code_challenge: challenge, code_challenge_method: "plain" },
      { code_challenge: "short", code_challenge_method: "S256" },
    ]) {
      const answer = await authorize(host, client, params);
      assert.equal(answer.get("error"), "invalid_request", JSON.stringify(params));
    }
  });

  test("confidential clients may omit PKCE if only public ones must use it, but a started challenge must be met", async () => {
    const lax = await startHost({ url: await makeUrl(), pkce: "public" });
    try {
      const confidential = await register(lax);
      const plain = await authorize(lax, confidential, {});
      const code = String(plain.get("code"));
      const form = { grant_type: "authorization_code", code, redirect_uri: CALLBACK };
      const tokens = await postToken(lax, form, { as: confidential });
      assert.equal(tokens.status, 200, JSON.stringify(tokens.body));
      const { code_verifier: _, ...downgraded } = await obtainCode(lax, confidential);
      assert.equal((await postToken(lax, downgraded, { as: confidential })).status, 400);
      const unasked = String((await authorize(lax, confidential, {})).get("code"));
      const { verifier } = createPkce();
      const added = { ...form, code: unasked, code_verifier: verifier };
      assert.equal((await postToken(lax, added, { as: confidential })).status, 400);
      for (const more of [{ token_endpoint_auth_method: "none" }, { application_type: "native" }]) {
        const open = await register(lax, { ...more, grant_types: ["authorization_code"] });
        assert.equal((await authorize(lax, open, {})).get("error"), "invalid_request");
      }
    } finally {
      await lax.close();
    }
  });

  test("4.6: a code without its verifier or with another one is rejected", async () => {
    const form = await obtainCode(host, client);
    const { code_verifier: _, ...without } = form;
    assert.equal((await postToken(host, without, { as: client })).status, 400);
    const wrong = { ...form, code_verifier: createPkce().verifier };
    assert.equal((await postToken(host, wrong, { as: client })).body["error"], "invalid_grant");
    assert.equal((await postToken(host, form, { as: client })).status, 200);
  });

  test("a public client signs users in with PKCE alone", async () => {
    const spa = await register(host, {
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token"],
    });
    assert.equal(spa.client_secret, undefined);
    const form = { ...(await obtainCode(host, spa)), client_id: spa.client_id };
    assert.equal((await postToken(host, form)).status, 200);
  });
});
