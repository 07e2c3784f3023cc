import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { test } from "node:test";
import { WebSocket } from "ws";
import { makeCertificate } from "@platform/testing/certificates";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { assemble, shorten } from "../fixture/transforms.ts";

const secret = "a secret of more than thirty-two bytes";

function makeToken(claims: Record<string, unknown>): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1000) + 600;
  const scope = "pulse:publish pulse:subscribe pulse:manage";
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ exp, scope, ...claims })}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

test("tenants can only access their own topics", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_TOKEN: "operator-token",
    PLATFORM_JWT_SECRET: secret,
  });
  const as = (tenant?: string) => ({ authorization: `Bearer ${makeToken({ sub: "u", tenant })}` });
  const acme = as("acme");
  const other = as("other");
  assert.equal(
    (await pulse.post("/api/v1/publish", { topic: "a", payload: "acme's" }, acme)).status,
    200,
  );
  assert.equal((await pulse.get("/api/v1/tail?topic=a", { headers: acme })).body.count, 1);
  assert.equal((await pulse.get("/api/v1/tail?topic=a", { headers: other })).status, 404);
  assert.equal((await pulse.get("/api/v1/tail?topic=a")).status, 404);
  assert.equal((await pulse.get("/api/v1/topics", { headers: other })).body.count, 0);
  assert.equal((await pulse.get("/api/v1/tail?topic=acme%3Aa", { headers: other })).status, 404);
  assert.equal(
    (await pulse.post("/api/v1/publish", { topic: "acme:a", payload: "x" }, other)).status,
    400,
  );
  const wild = await EventReader.open(`${pulse.url}/api/v1/subscribe/%23`, other);
  await pulse.post("/api/v1/publish", { topic: "b", payload: "acme's" }, acme);
  await pulse.post("/api/v1/publish", { topic: "b", payload: "other's" }, other);
  const events = await wild.wait(1);
  assert.deepEqual(
    events.map(({ data }) => data["payload"]),
    ["other's"],
  );
  wild.close();
  const elsewhere = { "x-forwarded-for": "192.0.2.1" };
  assert.equal((await pulse.get("/metrics", { headers: { ...acme, ...elsewhere } })).status, 403);
  assert.equal((await fetch(`${pulse.url}/metrics`)).status, 200, "open to this machine");
  assert.equal((await pulse.get("/api/v1/topics", { headers: as() })).status, 403);
  const nobody = await fetch(`${pulse.url}/api/v1/topics`);
  assert.equal(nobody.status, 401);
  assert.ok(nobody.headers.has("www-authenticate"));
});

test("a token with an invalid tenant is rejected and creates nothing", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_TOKEN: "operator-token",
    PLATFORM_JWT_SECRET: secret,
  });
  for (const tenant of ["__x", "a:b", "", "a b", "x".repeat(129)]) {
    const headers = { authorization: `Bearer ${makeToken({ sub: "u", tenant })}` };
    const message = { topic: "a", payload: "x" };
    const { status, body } = await pulse.post("/api/v1/publish", message, headers);
    assert.deepEqual([status, body.code], [403, "forbidden"], tenant);
    assert.match(body.detail, /tenant is not valid: 1 to 128 of A-Z a-z 0-9 \. _ -, without __/);
    assert.equal((await pulse.get("/api/v1/topics", { headers })).status, 403);
  }
  assert.equal((await pulse.get("/api/v1/stats")).body.topics_count, 0);
});

test("a tenant's statistics cover only its own topics", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_TOKEN: "operator-token",
    PLATFORM_JWT_SECRET: secret,
  });
  const as = (tenant: string) => ({ authorization: `Bearer ${makeToken({ sub: "u", tenant })}` });
  const publish = (tenant: string, topic: string) =>
    pulse.post("/api/v1/publish", { topic, payload: "hello" }, as(tenant));
  await pulse.get("/api/v1/topics/a/transform", {
    method: "POST",
    headers: as("acme"),
    body: new Uint8Array(assemble(shorten)),
  });
  for (const topic of ["a", "a", "b"]) assert.equal((await publish("acme", topic)).status, 200);
  assert.equal((await publish("other", "a")).status, 200);
  const read = async (headers: Record<string, string> = {}) => {
    const { body } = await pulse.get("/api/v1/stats", { headers });
    const { messages_published, topics_count, queue_depth, wasm_executions, dropped } = body;
    return [messages_published, topics_count, queue_depth, wasm_executions, dropped];
  };
  assert.deepEqual(await read(as("acme")), [3, 2, 3, 2, 0]);
  assert.deepEqual(await read(as("other")), [1, 1, 1, 0, 0]);
  assert.deepEqual(await read(as("third")), [0, 0, 0, 0, 0]);
  assert.deepEqual(await read(), [4, 3, 4, 2, 0]);
  const { body } = await pulse.get("/api/v1/stats", { headers: as("other") });
  assert.equal(body.wal_entries, 1);
  const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/api/v1/stats/ws`, {
    headers: as("other"),
  });
  const [first] = (await once(socket, "message")) as [Buffer];
  assert.equal(JSON.parse(first.toString()).messages_published, 1);
  socket.terminate();
});

test("a browser may send its token in the query, and pages of other origins cannot use the cookie", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_TOKEN: "operator-token",
    PLATFORM_PULSE_CORS_ORIGINS: '["https://good.example"]',
  });
  const subscribe = `${pulse.url}/api/v1/subscribe/a`;
  const open = async (url: string, headers: Record<string, string> = {}) => {
    const reader = await EventReader.open(url, headers);
    reader.close();
    return reader.status;
  };
  assert.equal(await open(subscribe), 401);
  assert.equal(await open(`${subscribe}?access_token=wrong`), 401);
  assert.equal(await open(`${subscribe}?access_token=operator-token`), 200);
  const cookie = "platform_token=operator-token";
  assert.equal(await open(subscribe, { cookie, origin: "https://evil.example" }), 401);
  assert.equal(await open(subscribe, { cookie, origin: "https://good.example" }), 200);
  const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/ws/subscribe/a`, {
    headers: { cookie, origin: "https://evil.example" },
  });
  const [error] = (await once(socket, "error")) as [Error];
  assert.match(error.message, /401/);
  const preflight = await fetch(`${pulse.url}/api/v1/publish`, {
    method: "OPTIONS",
    headers: { origin: "https://good.example", "access-control-request-method": "POST" },
  });
  assert.equal(preflight.headers.get("access-control-allow-origin"), "https://good.example");
  const foreign = await fetch(`${pulse.url}/healthz`, {
    headers: { origin: "https://evil.example" },
  });
  assert.equal(foreign.headers.get("access-control-allow-origin"), null);
});

test("with a certificate the HTTP listener uses TLS", async (t) => {
  const folder = (await import("../store/fixture.ts")).makeFolder(t);
  const { key, cert } = makeCertificate(folder, "localhost", { names: "DNS:localhost" });
  const pulse = await startPulseHere(t, { TLS_CERT_FILE: cert, TLS_KEY_FILE: key });
  assert.ok(pulse.isTls, "the listener is reported as https");
  const asked = request({
    host: "localhost",
    port: pulse.port,
    path: "/healthz",
    ca: readFileSync(cert),
  });
  asked.end();
  const [response] = await once(asked, "response");
  assert.equal(response.statusCode, 200);
  response.resume();
});

test("the API documents the WebSockets, and answers plain requests to them with 426", async (t) => {
  const pulse = await startPulseHere(t);
  const { body } = await pulse.get("/api/docs/openapi.json");
  for (const path of ["/ws/subscribe/{topic}", "/api/v1/stats/ws"])
    assert.ok(body.paths[path].get.responses["101"], path);
  for (const path of ["/ws/subscribe/a", "/api/v1/stats/ws"])
    assert.equal((await pulse.get(path)).status, 426, path);
});
