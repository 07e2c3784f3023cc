// Web Push: encryption (RFC 8291), identification (RFC 8292), subscriptions, answers of push services (RFC 8030).
import assert from "node:assert/strict";
import {
  createDecipheriv,
  createECDH,
  createHmac,
  createPublicKey,
  hkdfSync,
  randomBytes,
  verify,
} from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { encryptPush } from "../../src/push/encryption.ts";
import { STAGE_KINDS, startStage, startStageOn, type Stage } from "../stage.ts";

const OPEN: { close(): Promise<void> | void }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

const SECRET = "0123456789abcdef0123456789abcdef";

function bearer(sub: string): Record<string, string> {
  const encode = (value: object): string =>
    Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { sub, scope: "notify:send", exp: Math.floor(Date.now() / 1000) + 600 };
  const data = `${encode({ alg: "HS256", typ: "at+jwt" })}.${encode(claims)}`;
  const signature = createHmac("sha256", SECRET).update(data).digest("base64url");
  return { authorization: `Bearer ${data}.${signature}` };
}

const decode = (text: string): Buffer => Buffer.from(text, "base64url");

interface PushService {
  url: string;
  requests: { path: string; headers: IncomingHttpHeaders; body: Buffer }[];
  /** Answers by path; default 201. */
  answers: Record<string, [status: number, headers?: Record<string, string>]>;
}

async function startPushService(): Promise<PushService> {
  const service: PushService = { url: "", requests: [], answers: {} };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method, url: path = "", headers } = request;
      if (method === "POST") service.requests.push({ path, headers, body: Buffer.concat(chunks) });
      const [status, more] = service.answers[path] ?? [201];
      response.writeHead(status, more).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  service.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  OPEN.push({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return service;
}

/** A browser: subscribes, and decrypts by RFC 8188 and RFC 8291. */
class Browser {
  readonly #ecdh = createECDH("prime256v1");
  readonly #auth = randomBytes(16);
  readonly endpoint: string;

  constructor(endpoint: string) {
    this.endpoint = endpoint;
    this.#ecdh.generateKeys();
  }

  toJSON() {
    const p256dh = this.#ecdh.getPublicKey("base64url");
    const keys = { p256dh, auth: this.#auth.toString("base64url") };
    return { endpoint: this.endpoint, expirationTime: null, keys };
  }

  read(body: Buffer): unknown {
    const salt = body.subarray(0, 16);
    assert.equal(body.readUInt32BE(16), 4_096);
    const idEnd = 21 + body.readUInt8(20);
    const sender = body.subarray(21, idEnd);
    const own = this.#ecdh.getPublicKey();
    const info = Buffer.concat([Buffer.from("WebPush: info\0"), own, sender]);
    const secret = hkdfSync("sha256", this.#ecdh.computeSecret(sender), this.#auth, info, 32);
    const derive = (label: string, size: number): Buffer =>
      Buffer.from(
        hkdfSync("sha256", Buffer.from(secret), salt, `Content-Encoding: ${label}\0`, size),
      );
    const decipher = createDecipheriv("aes-128-gcm", derive("aes128gcm", 16), derive("nonce", 12));
    decipher.setAuthTag(body.subarray(-16));
    const plain = Buffer.concat([decipher.update(body.subarray(idEnd, -16)), decipher.final()]);
    assert.equal(plain.at(-1), 2, "the delimiter of the last record");
    return JSON.parse(plain.subarray(0, -1).toString());
  }
}

async function start(settings: Record<string, unknown> = {}): Promise<Stage> {
  const stage = await startStage({ allow_private_targets: true, ...settings });
  OPEN.push(stage);
  return stage;
}

const subscribe = (stage: Stage, subscriber: string, subscription: unknown, headers = {}) =>
  stage.call("POST", "/api/v1/push/subscriptions", { subscriber, subscription }, headers);

test("encryption gives the example of RFC 8291 section 5", () => {
  const random = {
    privateKey: decode("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"),
    salt: decode("DGv6ra1nlYgDCS1FRnbzlw"),
  };
  const keys = {
    p256dh: decode(
      "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    ),
    auth: decode("BTBZMqHH6r4Tts7J_aSIgg"),
  };
  const message = Buffer.from("When I grow up, I want to be a watermelon");
  assert.equal(
    encryptPush(message, keys, random).toString("base64url"),
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
  );
});

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`messages on ${kind}`, { skip: skip ?? false }, () => {
    test("each browser of a subscriber gets the message, and ended subscriptions are removed", async () => {
      const service = await startPushService();
      const stage = await startStageOn({ ...(await prepare()), allow_private_targets: true });
      OPEN.push(stage);
      const [phone, laptop, old] = ["phone", "laptop", "old"].map(
        (name) => new Browser(`${service.url}/${name}`),
      );
      for (const browser of [phone, laptop, old]) {
        const added = await subscribe(stage, "ada", browser);
        assert.equal(added.status, 201, added.text);
        assert.equal(added.text.includes(browser!.endpoint), false);
      }
      // A browser that subscribes again does not get messages twice.
      await subscribe(stage, "ada", phone);
      service.answers["/old"] = [410];
      const request = {
        channel: "push",
        to: "ada",
        subject: "Your order",
        text: "It is on its way – ✓",
        push: { ttl_s: 60, urgency: "high", topic: "order-1", url: "https://shop.example/o/1" },
        metadata: { order: "1" },
      };
      const sent = await stage.call("POST", "/api/v1/send", request);
      assert.equal(sent.status, 200, sent.text);
      assert.equal(service.requests.length, 3);
      for (const browser of [phone!, laptop!]) {
        const path = new URL(browser.endpoint).pathname;
        const { headers, body } = service.requests.find((one) => one.path === path)!;
        assert.deepEqual(browser.read(body), {
          message_id: sent.body.message_id,
          title: "Your order",
          body: "It is on its way – ✓",
          url: "https://shop.example/o/1",
          data: { order: "1" },
        });
        assert.equal(headers["ttl"], "60");
        assert.equal(headers["urgency"], "high");
        assert.equal(headers["topic"], "order-1");
        assert.equal(headers["content-encoding"], "aes128gcm");
      }
      const list = await stage.call("GET", "/api/v1/push/subscriptions?subscriber=ada");
      assert.equal(list.body.subscriptions.length, 2);
      const { body } = await stage.call("GET", `/api/v1/messages/${sent.body.message_id}`);
      const statuses = body.recipients.map(({ status }: { status: string }) => status);
      assert.deepEqual(statuses, ["sent", "sent", "bounced"]);
      const suppressed = await stage.call("GET", "/api/v1/suppression");
      assert.deepEqual(suppressed.body.addresses, []);
    });

    test("a push service that is overloaded gets the message again when it says", async () => {
      const service = await startPushService();
      const stage = await startStageOn({ ...(await prepare()), allow_private_targets: true });
      OPEN.push(stage);
      await subscribe(stage, "ada", new Browser(`${service.url}/a`));
      service.answers["/a"] = [429, { "Retry-After": "30" }];
      const { body } = await stage.call("POST", "/api/v1/send", {
        channel: "push",
        to: "ada",
        text: "Hello",
      });
      assert.equal(body.status, "queued");
      service.answers = {};
      stage.advance(31_000);
      await waitFor(async () => {
        await stage.refill();
        const found = await stage.call("GET", `/api/v1/messages/${body.message_id}`);
        return found.body.status === "sent";
      });
      assert.equal(service.requests.length, 2);
    });
  });
}

test("the service identifies itself with the key that browsers subscribe with, also after a restart", async () => {
  const service = await startPushService();
  const stage = await startStage({ allow_private_targets: true, from_domain: "shop.example" });
  const { body: first } = await stage.call("GET", "/api/v1/push/key");
  await subscribe(stage, "ada", new Browser(`${service.url}/a`));
  await stage.close();
  const again = await startStageOn(stage.settings);
  OPEN.push(again);
  const { body: key } = await again.call("GET", "/api/v1/push/key");
  assert.deepEqual(key, first);
  await again.call("POST", "/api/v1/send", { channel: "push", to: "ada", text: "Hello" });
  const authorization = service.requests[0]!.headers.authorization!;
  const [, token = "", k] = /^vapid t=([^,]+), k=(\S+)$/.exec(authorization)!;
  assert.equal(k, key.public_key);
  const [head = "", claims = "", signature = ""] = token.split(".");
  assert.deepEqual(JSON.parse(decode(head).toString()), { typ: "JWT", alg: "ES256" });
  const { aud, exp, sub } = JSON.parse(decode(claims).toString());
  assert.equal(aud, service.url);
  assert.equal(sub, "mailto:postmaster@shop.example");
  assert.ok(exp > Date.now() / 1000 && exp <= Date.now() / 1000 + 86_400);
  const point = decode(key.public_key);
  const coordinates = {
    x: point.subarray(1, 33).toString("base64url"),
    y: point.subarray(33).toString("base64url"),
  };
  const publicKey = createPublicKey({
    key: { kty: "EC", crv: "P-256", ...coordinates },
    format: "jwk",
  });
  const verifier = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;
  assert.ok(verify("sha256", Buffer.from(`${head}.${claims}`), verifier, decode(signature)));
});

describe("bad input", () => {
  test("subscriptions with wrong keys, endpoints and private addresses are refused", async () => {
    const stage = await start({ allow_private_targets: false });
    const good = new Browser("https://192.0.2.1/x").toJSON();
    const wrong: [subscription: object, status: number, detail: RegExp][] = [
      [good, 422, /address is not allowed/],
      [{ ...good, endpoint: "https://127.0.0.1/x" }, 422, /address is not allowed/],
      [{ ...good, endpoint: "http://push.example/x" }, 400, /https/],
      [{ ...good, endpoint: "ftp://push.example" }, 400, /endpoint/],
      [{ ...good, keys: { ...good.keys, auth: "AAAA" } }, 400, /16 bytes/],
      [{ ...good, keys: { ...good.keys, p256dh: "AAAA" } }, 400, /65 bytes/],
      [
        { ...good, keys: { ...good.keys, p256dh: Buffer.alloc(65, 4).toString("base64url") } },
        400,
        /not a point/,
      ],
    ];
    for (const [subscription, status, detail] of wrong) {
      const answer = await subscribe(stage, "ada", subscription);
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.body.detail, detail);
    }
  });

  test("messages that are too long or have no recipient are refused", async () => {
    const service = await startPushService();
    const stage = await start();
    const message = { channel: "push", to: "ada", text: "Hello" };
    const none = await stage.call("POST", "/api/v1/send", message);
    assert.equal(none.status, 422);
    assert.match(none.body.detail, /no push subscription/);
    await subscribe(stage, "ada", new Browser(`${service.url}/a`));
    for (const change of [
      { text: "x".repeat(3_990) },
      { text: undefined },
      { to: ["ada"] },
      { html: "<p>" },
      { cc: ["bob"] },
      { track_opens: true },
      { push: { ttl_s: -1 } },
      { push: { topic: "a b" } },
      { push: { url: "javascript:alert(1)" } },
    ]) {
      const { status } = await stage.call("POST", "/api/v1/send", { ...message, ...change });
      assert.equal(status, 400, JSON.stringify(change).slice(0, 80));
    }
    assert.equal(service.requests.length, 0);
    const long = await stage.call("POST", "/api/v1/send", { ...message, text: "x".repeat(3_800) });
    assert.equal(long.status, 200, long.text);
    assert.ok(service.requests[0]!.body.length <= 4_096);
  });

  test("a subscriber has at most 20 browsers", async () => {
    const service = await startPushService();
    const stage = await start();
    for (let count = 0; count < 20; count += 1) {
      await subscribe(stage, "ada", new Browser(`${service.url}/${count}`));
    }
    const full = await subscribe(stage, "ada", new Browser(`${service.url}/more`));
    assert.equal(full.status, 409);
    assert.equal((await subscribe(stage, "ada", new Browser(`${service.url}/3`))).status, 201);
  });
});

test("subscriptions are bounded per client and in all, and can be renewed at the maximum", async () => {
  const service = await startPushService();
  const stage = await startStage({
    allow_private_targets: true,
    jwt_secret: SECRET,
    "push.client_subscriptions_max": 2,
    "push.subscriptions_max": 3,
  });
  OPEN.push(stage);
  const add = async (sub: string, name: string) => {
    const subscription = new Browser(`${service.url}/${name}`).toJSON();
    const body = { subscriber: name, subscription };
    return stage.call("POST", "/api/v1/push/subscriptions", body, bearer(sub));
  };
  for (const name of ["a", "b", "a"]) assert.equal((await add("shop", name)).status, 201);
  const own = await add("shop", "c");
  assert.equal(own.status, 409, own.text);
  assert.match(own.body.detail, /The client has 2 subscriptions, the maximum/);
  assert.equal((await add("blog", "d")).status, 201);
  const all = await add("blog", "e");
  assert.equal(all.status, 409, all.text);
  assert.match(all.body.detail, /There are 3 subscriptions, the maximum/);
  const { body } = await stage.call("GET", "/api/v1/push/subscriptions", undefined, bearer("shop"));
  const path = `/api/v1/push/subscriptions/${body.subscriptions[0].id}`;
  assert.equal((await stage.call("DELETE", path, undefined, bearer("shop"))).status, 204);
  assert.equal((await add("blog", "e")).status, 201);
});

test("clients see and reach their own subscribers only", async () => {
  const service = await startPushService();
  const stage = await start({ jwt_secret: SECRET });
  const added = await subscribe(stage, "ada", new Browser(`${service.url}/a`), bearer("shop"));
  const path = `/api/v1/push/subscriptions/${added.body.id}`;
  const other = bearer("other");
  const list = await stage.call("GET", "/api/v1/push/subscriptions", undefined, other);
  assert.deepEqual(list.body.subscriptions, []);
  const message = { channel: "push", to: "ada", text: "Hello" };
  assert.equal((await stage.call("POST", "/api/v1/send", message, other)).status, 422);
  assert.equal((await stage.call("DELETE", path, undefined, other)).status, 404);
  assert.equal((await stage.call("POST", "/api/v1/send", message, bearer("shop"))).status, 200);
  assert.equal((await stage.call("DELETE", path, undefined, bearer("shop"))).status, 204);
  assert.equal((await stage.call("GET", "/api/v1/push/key")).status, 401);
});
