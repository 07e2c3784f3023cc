// RFC 7591 and RFC 7592, Dynamic Client Registration and its management.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Socket, type AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { onEachDatabase } from "../databases.ts";
import { addRole, bindClient, startHost, type Host } from "./host.ts";
import {
  CALLBACK,
  introspect,
  postToken,
  toAnswer,
  type Answer,
  type TestClient,
} from "./relying-party.ts";

const PATH = "/api/v1/auth/oauth/register";

onEachDatabase((makeUrl) => {
  let host: Host;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
  });
  after(() => host.close());

  const send = async (
    method: string,
    url: string,
    token: string | undefined,
    body?: unknown,
  ): Promise<Answer> =>
    toAnswer(
      await fetch(url, {
        method,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  const register = (token: string | undefined, metadata: unknown): Promise<Answer> =>
    send("POST", `${host.origin}${PATH}`, token, metadata);

  test("3: registration requires a valid initial access token", async () => {
    const metadata = { redirect_uris: [CALLBACK] };
    assert.equal((await register(undefined, metadata)).status, 401);
    assert.equal((await register("wrong", metadata)).status, 401);
    await assert.rejects(host.oauth.clients.createInitialAccessToken(0, undefined), {
      code: "validation_failed",
    });
    await assert.rejects(host.oauth.clients.createInitialAccessToken(1e9, undefined), {
      code: "validation_failed",
    });
  });

  test("3.2: a registered client gets an id, a secret and a management URI, and works", async () => {
    const token = await host.oauth.clients.createInitialAccessToken(60, undefined);
    const { status, body } = await register(token, {
      redirect_uris: [CALLBACK],
      grant_types: ["authorization_code", "client_credentials"],
      client_name: "Orders",
      scope: "openid orders.read",
    });
    assert.equal(status, 201);
    assert.match(String(body["client_id"]), /^[A-Za-z0-9_-]{20,}$/);
    assert.match(String(body["client_secret"]), /^[A-Za-z0-9_-]{40,}$/);
    const uri = String(body["registration_client_uri"]);
    const manage = String(body["registration_access_token"]);
    assert.equal(uri, `${host.issuer}${PATH}/${String(body["client_id"])}`);
    const as = body as unknown as TestClient;
    assert.equal((await postToken(host, { grant_type: "client_credentials" }, { as })).status, 200);

    assert.equal((await send("GET", uri, manage)).body["client_name"], "Orders");
    assert.equal((await send("GET", uri, "wrong")).status, 401);
    const { registration_access_token: _, registration_client_uri: __, ...metadata } = body;
    const { client_id_issued_at: ___, client_secret_expires_at: ____, ...changeable } = metadata;
    const updated = await send("PUT", uri, manage, { ...changeable, client_name: "Orders 2" });
    assert.equal(updated.status, 200, JSON.stringify(updated.body));
    assert.equal(updated.body["client_name"], "Orders 2");
    assert.equal((await send("GET", uri, manage)).status, 401, "the token has rotated");
    const next = String(updated.body["registration_access_token"]);
    const { database } = host;
    const id = as.client_id;
    await bindClient(host, id);
    const issued = await postToken(host, { grant_type: "client_credentials" }, { as });
    assert.equal((await send("DELETE", uri, next)).status, 204);
    const left = await database.db
      .selectFrom("auth_role_bindings")
      .selectAll()
      .where("subject_id", "=", id)
      .execute();
    assert.deepEqual(left, [], "its roles are gone");
    const reader = await host.oauth.clients.add({ redirect_uris: [CALLBACK] }, undefined);
    const watcher = reader as unknown as TestClient;
    await addRole(host, "watcher", "tokens:introspect");
    await bindClient(host, watcher.client_id, "watcher");
    const seen = await introspect(host, watcher, String(issued.body["access_token"]));
    assert.equal(seen.active, false, "its tokens are void");
    assert.equal((await postToken(host, { grant_type: "client_credentials" }, { as })).status, 401);
  });

  test("3.2.2: invalid metadata is rejected", async () => {
    const token = await host.oauth.clients.createInitialAccessToken(60, undefined);
    for (const [metadata, error] of [
      [{ redirect_uris: ["javascript:alert(1)"] }, "invalid_redirect_uri"],
      [{ redirect_uris: ["https://a.example/#fragment"] }, "invalid_redirect_uri"],
      [{ redirect_uris: [] }, "invalid_redirect_uri"],
      [{ redirect_uris: [CALLBACK], grant_types: ["password"] }, "invalid_client_metadata"],
      [{ redirect_uris: [CALLBACK], response_types: ["token"] }, "invalid_client_metadata"],
      [{ redirect_uris: [CALLBACK], scope: "root" }, "invalid_client_metadata"],
      [
        { redirect_uris: [CALLBACK], token_endpoint_auth_method: "magic" },
        "invalid_client_metadata",
      ],
    ] as const) {
      const { status, body } = await register(token, metadata);
      assert.equal(status, 400, JSON.stringify(metadata));
      assert.equal(body["error"], error, JSON.stringify(metadata));
    }
    assert.equal((await register(token, [])).status, 400);
  });

  test("operators register clients by the same rules and cannot choose ids or secrets", async () => {
    const metadata = { redirect_uris: [CALLBACK] };
    for (const more of [{ client_id: "mine" }, { client_secret: "mine" }, { scope: "root" }]) {
      await assert.rejects(host.oauth.clients.add({ ...metadata, ...more }, undefined), {
        code: "validation_failed",
      });
    }
    const added = await host.oauth.clients.add(metadata, undefined);
    const listed = await host.oauth.clients.list("", 100);
    const found = listed.find((client) => client["client_id"] === added["client_id"]);
    assert.ok(found);
    assert.equal(found["client_secret"], undefined);
  });

  test("a key set is fetched again for a new key, which it may have before its cached copy expires", async () => {
    const pairs = new Map<string, CryptoKey>();
    let published: object[] = [];
    let fetched = 0;
    const publish = async (kid: string): Promise<void> => {
      const { privateKey, publicKey } = await generateKeyPair("ES256");
      pairs.set(kid, privateKey);
      published = [{ ...(await exportJWK(publicKey)), alg: "ES256", kid }];
    };
    const server = createServer((_request, response) => {
      fetched += 1;
      const headers = { "Content-Type": "application/json", "Cache-Control": "max-age=3600" };
      response.writeHead(200, headers).end(JSON.stringify({ keys: published }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const client = await host.oauth.clients.add(
      {
        redirect_uris: [],
        grant_types: ["client_credentials"],
        response_types: [],
        token_endpoint_auth_method: "private_key_jwt",
        jwks_uri: `http://127.0.0.1:${port}/keys`,
      },
      undefined,
    );
    const id = String(client["client_id"]);
    const ask = async (kid: string): Promise<number> => {
      const client_assertion = await new SignJWT({ jti: randomUUID() })
        .setProtectedHeader({ alg: "ES256", kid })
        .setIssuer(id)
        .setSubject(id)
        .setAudience(host.issuer)
        .setIssuedAt()
        .setExpirationTime("1m")
        .sign(pairs.get(kid) ?? pairs.get("2")!);
      const { status } = await postToken(host, {
        grant_type: "client_credentials",
        client_assertion,
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      });
      return status;
    };
    try {
      await publish("1");
      assert.equal(await ask("1"), 200);
      await publish("2");
      assert.equal(await ask("2"), 200, "OpenID Connect Core 10.1.1: an unknown kid is looked up");
      assert.equal(await ask("1"), 401, "the former key is no longer published");
      for (let index = 0; index < 5; index += 1) assert.equal(await ask(`made-up-${index}`), 401);
      assert.equal(fetched, 2, "invented keys do not fetch it again and again");
      assert.equal(await ask("2"), 200);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  test("key sets of clients are fetched through the egress guard: never from private addresses", async (t) => {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const keys = { keys: [{ ...(await exportJWK(publicKey)), alg: "ES256", kid: "1" }] };
    const server = createServer((_request, response) => {
      response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(keys));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const ask = async (jwks_uri: string): Promise<number> => {
      const client = await host.oauth.clients.add(
        {
          redirect_uris: [],
          grant_types: ["client_credentials"],
          response_types: [],
          token_endpoint_auth_method: "private_key_jwt",
          jwks_uri,
        },
        undefined,
      );
      const id = String(client["client_id"]);
      const client_assertion = await new SignJWT({ jti: randomUUID() })
        .setProtectedHeader({ alg: "ES256", kid: "1" })
        .setIssuer(id)
        .setSubject(id)
        .setAudience(host.issuer)
        .setIssuedAt()
        .setExpirationTime("1m")
        .sign(privateKey);
      const { status } = await postToken(host, {
        grant_type: "client_credentials",
        client_assertion,
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      });
      return status;
    };
    try {
      const connect = t.mock.method(Socket.prototype, "connect");
      // The host under test allows 127.0.0.0/8 only.
      assert.equal(await ask(`http://127.0.0.1:${port}/keys`), 200);
      for (const uri of ["http://10.255.255.1/", "https://169.254.169.254/", "http://[::1]/"]) {
        const status = await ask(uri);
        assert.ok(status >= 400 && status < 500, uri);
      }
      const dialed = connect.mock.calls.map(({ arguments: [target] }) => JSON.stringify(target));
      assert.ok(
        dialed.some((target) => target.includes(String(port))),
        "connections to key sets are seen",
      );
      for (const target of dialed) assert.doesNotMatch(target, /10\.255|169\.254|::1/);
    } finally {
      server.close();
    }
  });
});
