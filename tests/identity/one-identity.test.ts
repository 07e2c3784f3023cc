// One sign-in for gateway, messaging and storage; its end everywhere; an identity service that does not answer.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import { SUBPROTOCOL } from "../../services/tunnel/src/frame/format.ts";
import { hashHex, signRequest } from "@platform/s3/signature";
import {
  ADA,
  BOB,
  BUCKET,
  Platform,
  ROLE,
  SCOPES,
  startUpstream,
  type Answer,
  type SignedIn,
} from "./platform.ts";

const PULSE = "/pulse/api/v1";
/** The longest time until a sign-out applies everywhere. */
const SIGN_OUT_MS = 2_000;

let platform: Platform;
let upstream: Awaited<ReturnType<typeof startUpstream>>;

before(async () => {
  platform = await Platform.start();
  upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: open\n\n");
  });
  // Without `auth`, a route requires a token of identity or of the operator.
  await platform.addRoute({ prefix: "/stream", target: upstream.url });
});
after(async () => {
  upstream.close();
  await platform.stop();
});

const bearer = ({ access_token }: SignedIn) => ({ authorization: `Bearer ${access_token}` });

function publish(user: SignedIn, payload = "hello"): Promise<Answer> {
  return platform.ask(`${PULSE}/publish`, {
    method: "POST",
    headers: { ...bearer(user), "content-type": "application/json" },
    body: JSON.stringify({ topic: "orders", payload }),
  });
}

/** An open stream through the gateway. */
async function open(path: string, user: SignedIn) {
  const sent = request({
    agent: false,
    host: "127.0.0.1",
    port: platform.gate.port,
    path,
    headers: { host: platform.gate.host, ...bearer(user) },
  });
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  const stream = {
    status: answer.statusCode,
    text: "",
    isEnded: false,
    close: () => sent.destroy(),
  };
  answer.on("data", (piece: Buffer) => void (stream.text += piece.toString()));
  answer.on("error", () => undefined);
  answer.on("close", () => void (stream.isEnded = true));
  return stream;
}

function send(user: SignedIn): Promise<Answer> {
  return platform.ask("/notify/api/v1/send", {
    method: "POST",
    headers: { ...bearer(user), "content-type": "application/json" },
    body: JSON.stringify({ to: "eve@example.org", subject: "hello", text: "from the test" }),
  });
}

/** Reserves a name at the tunnel's relay, which has no route at the gateway. */
async function reserve(user: SignedIn): Promise<Answer> {
  const answer = await fetch(new URL("/api/v1/tunnels", platform.tunnel), {
    method: "POST",
    headers: { ...bearer(user), "content-type": "application/json" },
    body: JSON.stringify({ target: "localhost:3000" }),
  });
  return { status: answer.status, text: await answer.text() };
}

/** Connects a client to the relay; resolves with the status of a refusal, or the open connection. */
async function connect(user: SignedIn): Promise<number | { isEnded: boolean; close: () => void }> {
  const sent = request(new URL("/ws/connect", platform.tunnel), {
    agent: false,
    headers: {
      ...bearer(user),
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      "sec-websocket-protocol": SUBPROTOCOL,
    },
  });
  sent.end();
  return Promise.race([
    once(sent, "response").then(([answer]) => (answer as IncomingMessage).statusCode ?? 0),
    once(sent, "upgrade").then(([, socket]: Socket[]) => {
      const connection = { isEnded: false, close: () => void socket!.destroy() };
      socket!.on("close", () => void (connection.isEnded = true));
      socket!.on("error", () => undefined);
      socket!.resume();
      return connection;
    }),
  ]);
}

interface Key {
  accessKey: string;
  secret: string;
  sessionToken: string;
}

function exchange(user: SignedIn): Promise<Answer> {
  return platform.ask("/", {
    method: "POST",
    host: platform.hostOf("vault"),
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({
      Action: "AssumeRoleWithWebIdentity",
      Version: "2011-06-15",
      RoleArn: `arn:aws:iam:::role/${ROLE}`,
      RoleSessionName: "test",
      WebIdentityToken: user.access_token,
    }).toString(),
  });
}

async function getKey(user: SignedIn): Promise<Key> {
  const { status, text } = await exchange(user);
  assert.equal(status, 200, text);
  const read = (name: string) => new RegExp(`<${name}>([^<]*)<`).exec(text)![1]!;
  return {
    accessKey: read("AccessKeyId"),
    secret: read("SecretAccessKey"),
    sessionToken: read("SessionToken"),
  };
}

function store(key: Key, method: "GET" | "PUT", body = "", tenant = "main"): Promise<Answer> {
  const target = `/${BUCKET}/${tenant}/note`;
  const host = platform.hostOf("vault");
  const { headers } = signRequest(
    { ...key, region: "us-east-1" },
    {
      method,
      target,
      headers: { host, "x-amz-security-token": key.sessionToken },
      payloadHash: hashHex(Buffer.from(body)),
      timeMs: Date.now(),
    },
  );
  return platform.ask(target, { method, host, headers, body });
}

const withLog = (what: string) => () => `${what}\n${platform.log}`;

function readClaims({ access_token }: SignedIn): Record<string, unknown> {
  const [, body = ""] = access_token.split(".");
  return JSON.parse(Buffer.from(body, "base64url").toString()) as Record<string, unknown>;
}

test("a sign-in gives a token with tenant, roles, scopes and the end of the session", async () => {
  const claims = readClaims(await platform.signIn(ADA));
  assert.equal(claims["iss"], platform.auth.origin);
  assert.equal(claims["tenant"], "main");
  assert.deepEqual(claims["roles"], [ROLE]);
  const scopes = String(claims["scope"]).split(" ");
  for (const scope of SCOPES.split(" ")) assert.ok(scopes.includes(scope), scope);
  const hours = (Number(claims["session_exp"]) - Date.now() / 1_000) / 3_600;
  assert.ok(hours > 23 && hours <= 24, `${hours} h`);
});

test("one token publishes, subscribes, stores and reads through the gateway", async () => {
  const ada = await platform.signIn(ADA);
  const stream = await open(`${PULSE}/subscribe/orders`, ada);
  assert.equal(stream.status, 200);
  const published = await publish(ada, "for all of main");
  assert.equal(published.status, 200, published.text);
  await waitFor(() => stream.text.includes("for all of main"), withLog("the message"));
  stream.close();
  const key = await getKey(ada);
  const put = await store(key, "PUT", "a note");
  assert.equal(put.status, 200, put.text);
  assert.deepEqual(await store(key, "GET"), { status: 200, text: "a note" });
  assert.equal((await store(key, "PUT", "x", "other")).status, 403, "another tenant's prefix");
  const guarded = await open("/stream", ada);
  assert.equal(guarded.status, 200);
  guarded.close();
});

test("the same token sends mail and opens tunnels", async () => {
  const ada = await platform.signIn(ADA);
  const sent = await send(ada);
  assert.equal(sent.status, 200, sent.text);
  const { message_id: id } = JSON.parse(sent.text) as { message_id: string };
  const own = await platform.ask(`/notify/api/v1/messages/${id}`, { headers: bearer(ada) });
  assert.equal(own.status, 200, own.text);
  const reserved = await reserve(ada);
  assert.equal(reserved.status, 201, reserved.text);
  const connection = await connect(ada);
  assert.ok(typeof connection !== "number");
  connection.close();
});

test("the operator of messaging sees the users' topics by ?tenant=", async () => {
  const operator = { access_token: platform.readCredential("PLATFORM_PULSE_TOKEN") } as SignedIn;
  const list = async (query: string) => {
    const { text } = await platform.ask(`${PULSE}/topics${query}`, { headers: bearer(operator) });
    return (JSON.parse(text) as { topics: { name: string }[] }).topics.map(({ name }) => name);
  };
  await publish(await platform.signIn(ADA));
  assert.deepEqual(await list("?tenant=main"), ["orders"]);
  assert.deepEqual(await list(""), []);
});

test("a user without the role is refused everywhere", async () => {
  const bob = await platform.signIn(BOB);
  assert.equal((await publish(bob)).status, 403);
  const stream = await open(`${PULSE}/subscribe/orders`, bob);
  assert.equal(stream.status, 403);
  const refused = await exchange(bob);
  assert.equal(refused.status, 403);
  assert.match(refused.text, /<Code>AccessDenied<\/Code><Message>The token does not have the role/);
  const asBearer = await platform.ask(`/${BUCKET}/main/note`, {
    host: platform.hostOf("vault"),
    headers: bearer(bob),
  });
  assert.equal(asBearer.status, 400);
  assert.match(asBearer.text, /Unsupported Authorization Type/);
  const mail = await send(bob);
  assert.deepEqual([mail.status, /notify:send/.test(mail.text)], [403, true], mail.text);
  const reserved = await reserve(bob);
  assert.deepEqual(
    [reserved.status, /tunnel:open/.test(reserved.text)],
    [403, true],
    reserved.text,
  );
  assert.equal(await connect(bob), 403);
});

test("sign-out ends the session everywhere within 2 s, and other sessions continue", async () => {
  const ada = await platform.signIn(ADA);
  const other = await platform.signIn(ADA);
  const keys = { ended: await getKey(ada), kept: await getKey(other) };
  const streams = [
    await open(`${PULSE}/subscribe/orders`, ada),
    await open("/stream", ada),
    await open(`${PULSE}/stats`, ada),
  ];
  const tunnel = await connect(ada);
  assert.ok(typeof tunnel !== "number");
  const kept = [await open(`${PULSE}/subscribe/orders`, other), await open("/stream", other)];
  assert.equal((await store(keys.ended, "PUT", "x")).status, 200);

  const startedMs = performance.now();
  await platform.identity("POST", "/api/v1/auth/logout", undefined, ada.session_token);
  const left = () => Math.max(0, SIGN_OUT_MS - (performance.now() - startedMs));
  await waitFor(
    () => streams.every(({ isEnded }) => isEnded),
    withLog("the end of the streams"),
    left(),
  );
  await waitFor(() => tunnel.isEnded, withLog("the end of the tunnel"), left());
  await waitFor(async () => (await send(ada)).status === 401, withLog("401 of mail"), left());
  await waitFor(
    async () => (await reserve(ada)).status === 401,
    withLog("401 of the tunnel"),
    left(),
  );
  await waitFor(
    async () => (await publish(ada)).status === 401,
    withLog("401 of messaging"),
    left(),
  );
  await waitFor(
    async () => (await store(keys.ended, "GET")).status === 400,
    withLog("the end of the key"),
    left(),
  );
  const again = await exchange(ada);
  assert.deepEqual([again.status, /<Code>(\w+)</.exec(again.text)?.[1]], [403, "IDPRejectedClaim"]);
  const route = await open("/stream", ada);
  assert.equal(route.status, 401);
  const elapsedMs = performance.now() - startedMs;
  assert.ok(elapsedMs <= SIGN_OUT_MS, `it took ${elapsedMs} ms`);
  assert.match((await store(keys.ended, "GET")).text, /<Code>ExpiredToken</);
  assert.match(streams[0]!.text, /event: dropped/);

  assert.equal((await publish(other)).status, 200);
  assert.equal((await store(keys.kept, "GET")).status, 200);
  assert.deepEqual(
    kept.map(({ isEnded }) => isEnded),
    [false, false],
  );
  for (const stream of kept) stream.close();
});

test("while identity does not answer, the others serve on, say so, and catch up afterwards", async () => {
  const ada = await platform.signIn(ADA);
  const ended = await platform.signIn(ADA);
  const key = await getKey(ada);
  const stream = await open(`${PULSE}/subscribe/orders`, ada);
  const pid = platform.pids.get("auth")!;
  // Stopped, not killed: connections are accepted by the system and never answered, and it is not restarted.
  process.kill(pid, "SIGSTOP");
  try {
    const services = [
      ["gateway", () => platform.ask("/readyz")],
      ["messaging", () => platform.ask("/pulse/readyz")],
      ["mail", () => platform.ask("/notify/readyz")],
    ] as const;
    for (const [name, look] of services) {
      await waitFor(
        async () => {
          const { status, text } = await look();
          assert.equal(status, 200, `${name} serves on`);
          return text.includes("revocations were last read");
        },
        withLog(`the warning of ${name}`),
        30_000,
      );
    }
    const operator = platform.readCredential("PLATFORM_GATE_AUTH_TOKEN");
    await waitFor(async () => {
      const { text } = await platform.ask("/api/v1/admin/attention", {
        headers: { authorization: `Bearer ${operator}` },
      });
      return text.includes("warning:revocations");
    }, withLog("the condition in the gateway's feed"));
    assert.equal((await publish(ada, "meanwhile")).status, 200);
    await waitFor(() => stream.text.includes("meanwhile"), withLog("the message"));
    assert.equal((await store(key, "PUT", "meanwhile")).status, 200);
    assert.equal((await store(await getKey(ada), "GET")).text, "meanwhile");
    assert.match(platform.log, /the revocation feed cannot be read/);
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await platform.identity("POST", "/api/v1/auth/logout", undefined, ended.session_token);
  await waitFor(
    async () => (await publish(ended)).status === 401,
    withLog("the end of the session"),
  );
  assert.equal((await publish(ada)).status, 200);
  await waitFor(async () => {
    const { text } = await platform.ask("/pulse/readyz");
    return !text.includes("revocations");
  }, withLog("the end of the warnings"));
  await waitFor(
    () => platform.log.includes("the revocation feed is read again"),
    withLog("the log"),
  );
  stream.close();
});

test("no token and no key appears in the log", async () => {
  const ada = await platform.signIn(ADA);
  const key = await getKey(ada);
  await store(key, "GET");
  await sleep(200);
  for (const secret of [
    ada.access_token,
    ada.session_token,
    key.secret,
    key.sessionToken,
    platform.readCredential("PLATFORM_REVOCATIONS_TOKEN"),
  ]) {
    assert.ok(!platform.log.includes(secret));
  }
});
