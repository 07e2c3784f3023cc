// OpenID Connect Discovery 1.0 and RFC 8414: accurate documents; and CORS.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { onEachDatabase } from "../databases.ts";
import { startHost, type Host } from "./host.ts";
import { CALLBACK, obtainCode, post, postToken, register } from "./relying-party.ts";

const DOCUMENTS = [
  "/.well-known/openid-configuration",
  "/.well-known/oauth-authorization-server",
  "/.well-known/jwks.json",
];
const own = new URL(CALLBACK).origin;
const FOREIGN = "https://evil.example";

onEachDatabase((makeUrl) => {
  let host: Host;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
  });
  after(() => host.close());

  test("documents are identical for every request and may be cached for a minute", async () => {
    for (const path of DOCUMENTS) {
      const answers = [];
      for (const method of ["HEAD", "GET", "GET", "HEAD"]) {
        const response = await fetch(`${host.origin}${path}`, { method });
        const { status, headers } = response;
        const text = await response.text();
        const { date: _, ...rest } = Object.fromEntries(headers);
        assert.equal(status, 200, `${method} ${path}`);
        assert.equal(text === "", method === "HEAD");
        if (method === "GET") answers.push({ text, rest });
        else assert.equal(rest["cache-control"], "public, max-age=60");
      }
      assert.deepEqual(answers[0], answers[1]);
      assert.equal(answers[0]!.rest["cache-control"], "public, max-age=60");
      assert.equal(answers[0]!.rest["access-control-allow-origin"], "*");
    }
  });

  test("keys are published without their private parts", async () => {
    const { keys } = (await (await fetch(`${host.origin}/.well-known/jwks.json`)).json()) as {
      keys: Record<string, unknown>[];
    };
    assert.ok(keys.length > 0);
    for (const key of keys) {
      assert.deepEqual(Object.keys(key).toSorted(), ["alg", "crv", "kid", "kty", "use", "x", "y"]);
    }
  });

  test("every announced client authentication method works at the token, introspection and revocation endpoints", async () => {
    const metadata = (await (await fetch(`${host.origin}${DOCUMENTS[0]!}`)).json()) as Record<
      string,
      string[]
    >;
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const jwks = { keys: [{ ...(await exportJWK(publicKey)), alg: "ES256", kid: "1" }] };
    const methods = metadata["token_endpoint_auth_methods_supported"]!;
    assert.ok(methods.length > 3);
    for (const endpoint of ["introspection", "revocation"]) {
      assert.deepEqual(metadata[`${endpoint}_endpoint_auth_methods_supported`], methods);
    }
    for (const method of methods) {
      const client = await register(host, {
        token_endpoint_auth_method: method,
        grant_types: ["authorization_code"],
        ...(method === "private_key_jwt" ? { jwks } : {}),
      });
      const { client_id, client_secret } = client;
      const assertion = async (): Promise<Record<string, string>> => ({
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        client_assertion: await new SignJWT({ jti: crypto.randomUUID() })
          .setProtectedHeader(
            method === "private_key_jwt" ? { alg: "ES256", kid: "1" } : { alg: "HS256" },
          )
          .setIssuer(client_id)
          .setSubject(client_id)
          .setAudience(host.issuer)
          .setIssuedAt()
          .setExpirationTime("1m")
          .sign(
            method === "private_key_jwt" ? privateKey : new TextEncoder().encode(client_secret),
          ),
      });
      const credentials: Record<string, () => Promise<Record<string, string>>> = {
        client_secret_basic: async () => ({}),
        client_secret_post: async () => ({ client_id, client_secret }),
        client_secret_jwt: assertion,
        private_key_jwt: assertion,
        none: async () => ({ client_id }),
      };
      const send = async (path: string, form: Record<string, string>): Promise<number> => {
        const as = method === "client_secret_basic" ? client : undefined;
        return (await post(host, path, { ...form, ...(await credentials[method]!()) }, { as }))
          .status;
      };
      const path = "/api/v1/auth/token";
      assert.equal(await send(path, await obtainCode(host, client)), 200, method);
      assert.equal(await send(`${path}/introspect`, { token: "x" }), 200, method);
      assert.equal(await send(`${path}/revoke`, { token: "x" }), 200, method);
    }
  });

  test("an unsupported method is 405 with the supported ones", async () => {
    for (const [path, method, allowed] of [
      ["/api/v1/auth/token", "GET", "POST"],
      ["/api/v1/auth/token/introspect", "GET", "POST"],
      ["/api/v1/auth/authorize", "DELETE", "GET, POST"],
      ["/api/v1/auth/userinfo", "PUT", "GET, POST"],
      ["/api/v1/auth/oauth/register/x", "POST", "GET, PUT, DELETE"],
      ["/.well-known/openid-configuration", "POST", "GET"],
      ["/api/v1/auth/revocations", "POST", "GET"],
    ] as const) {
      const response = await fetch(`${host.origin}${path}`, { method });
      assert.equal(response.status, 405, path);
      assert.equal(response.headers.get("allow"), allowed, path);
      await response.arrayBuffer();
    }
  });

  test("preflight requests of pages are allowed", async () => {
    for (const path of [
      ...DOCUMENTS,
      "/api/v1/auth/token",
      "/api/v1/auth/userinfo",
      "/api/v1/auth/token/revoke",
      "/api/v1/auth/par",
      "/api/v1/auth/device/authorize",
    ]) {
      const response = await fetch(`${host.origin}${path}`, {
        method: "OPTIONS",
        headers: {
          origin: own,
          "access-control-request-method": DOCUMENTS.includes(path) ? "GET" : "POST",
          "access-control-request-headers": "authorization,dpop",
        },
      });
      assert.equal(response.status, 204, path);
      assert.equal(response.headers.get("access-control-allow-origin"), own, path);
      assert.equal(response.headers.get("access-control-allow-headers"), "authorization,dpop");
    }
  });

  test("only pages at the origin of a redirect URI can read tokens, claims and errors", async () => {
    for (const method of ["none", "client_secret_basic"]) {
      const client = await register(host, {
        token_endpoint_auth_method: method,
        ...(method === "none" ? { grant_types: ["authorization_code", "refresh_token"] } : {}),
      });
      const as = method === "none" ? undefined : client;
      const id = { client_id: client.client_id };
      const code = await obtainCode(host, client);
      const { body } = await postToken(host, { ...code, ...id }, { as });
      const { access_token, refresh_token } = body as Record<string, string>;
      const readers = async (ask: (headers: Record<string, string>) => Promise<Headers>) =>
        Promise.all(
          [own, host.issuer, FOREIGN, "null"].map(async (origin) =>
            (await ask({ origin })).get("access-control-allow-origin"),
          ),
        );
      const allowed = [own, host.issuer, null, null];
      const userinfo = await readers(async (headers) => {
        const response = await fetch(`${host.origin}/api/v1/auth/userinfo`, {
          headers: { ...headers, authorization: `Bearer ${access_token}` },
        });
        await response.arrayBuffer();
        return response.headers;
      });
      assert.deepEqual(userinfo, allowed, `userinfo ${method}`);
      const revoke = await readers(
        async (headers) =>
          (await post(host, "/api/v1/auth/token/revoke", { token: "x", ...id }, { as, headers }))
            .headers,
      );
      assert.deepEqual(revoke, allowed, `revocation ${method}`);
      const form = { grant_type: "refresh_token", refresh_token: refresh_token!, ...id };
      const mine = await postToken(host, form, { as, headers: { origin: own } });
      assert.equal(mine.status, 200);
      assert.equal(mine.headers.get("access-control-allow-origin"), own);
      const next = { ...form, refresh_token: String(mine.body["refresh_token"]) };
      const theirs = await postToken(host, next, { as, headers: { origin: FOREIGN } });
      assert.equal(theirs.status, 200, "a program that is no page sends an origin, too");
      assert.equal(theirs.headers.get("access-control-allow-origin"), null);
    }
    const refused = await fetch(`${host.origin}/api/v1/auth/userinfo`, {
      headers: { origin: own, authorization: "Bearer expired" },
    });
    assert.equal(refused.status, 401);
    assert.equal(refused.headers.get("access-control-allow-origin"), own);
    assert.equal(refused.headers.get("access-control-expose-headers"), "WWW-Authenticate");
    await refused.arrayBuffer();
  });
});
