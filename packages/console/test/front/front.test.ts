// The front of several services: sign-in with their credentials, forwarding, live feed, and attacks on each.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { test } from "node:test";
import type { LiveMessage } from "@platform/console/contract";
import { startStage, TOKEN } from "../stage.ts";
import { start } from "./front-stage.ts";
import { startRecorder } from "./recorder.ts";

test("the page, the configuration and the session belong to all services", async (t) => {
  const mail = await startStage(t, { id: "notify" });
  const storage = await startStage(t, { id: "vault" });
  const gone = { id: "pulse" as const, url: "http://127.0.0.1:1" };
  const { advance, call, signIn } = await start(t, [
    { id: "notify", url: mail.url },
    { id: "vault", url: storage.url },
    gone,
  ]);
  let config = await call("GET", "/console/config");
  // On a busy machine a service may answer late.
  while (config.body.services.filter((one: { is_up: boolean }) => one.is_up).length < 2) {
    advance(6_000);
    config = await call("GET", "/console/config");
  }
  assert.equal(config.body.mode, "platform");
  assert.deepEqual(config.body.sign_in, ["credentials"]);
  assert.deepEqual(
    config.body.services.map(({ id, base, is_up: isUp }: never) => [id, base, isUp]),
    [
      ["notify", "/svc/notify", true],
      ["vault", "/svc/vault", true],
      ["pulse", "/svc/pulse", false],
    ],
  );
  assert.deepEqual(config.body.services[0].features, ["samples"]);
  const cookie = await signIn("notify");
  const one = await call("GET", "/console/session", undefined, { cookie });
  assert.deepEqual(one.body.services, ["notify"]);
  const refused = await call("GET", "/svc/vault/api/v1/samples", undefined, { cookie });
  assert.deepEqual([refused.status, refused.body.reason], [401, "not_signed_in_to_service"]);
  const both = await signIn("vault", cookie);
  const two = await call("GET", "/console/session", undefined, { cookie: both });
  assert.deepEqual(two.body.services, ["notify", "vault"]);
  for (const id of ["notify", "vault"]) {
    const answer = await call("POST", `/svc/${id}/api/v1/samples?a=1`, {}, { cookie: both });
    assert.deepEqual([answer.status, answer.body.caller], [200, "operator"]);
  }
  assert.deepEqual(mail.reached, ["POST /api/v1/samples"]);
  const down = await call("POST", "/console/login", { service: "pulse", token: TOKEN });
  assert.deepEqual([down.status, down.body.reason], [502, "service_down"]);
  const wrong = await call("POST", "/console/login", { service: "notify", token: "x" });
  assert.equal(wrong.status, 401);
});

test("a service receives the session's token, and nothing else about the browser", async (t) => {
  const recorder = await startRecorder(t);
  const { call, signIn } = await start(t, [{ id: "notify", url: recorder.url }]);
  const cookie = await signIn("notify");
  recorder.seen.length = 0;
  await call("POST", "/svc/notify/api/v1/samples", "{}", {
    cookie,
    "if-match": '"1"',
    authorization: "Bearer forged",
    forwarded: "for=127.0.0.1",
    "x-forwarded-for": "127.0.0.1",
    "x-gate-control": "forged",
    te: "trailers",
    connection: "keep-alive, if-match",
    referer: "http://localhost/ui/secret",
    range: "bytes=0-1",
  });
  const { headers } = recorder.seen[0]!;
  assert.deepEqual(Object.keys(headers).sort(), [
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "if-match",
    "range",
    "x-platform-own",
  ]);
  assert.equal(headers.authorization, `Bearer ${TOKEN}`);
  assert.equal(headers.host, new URL(recorder.url).host);
});

test("bytes of users cannot act in the console's origin", async (t) => {
  const recorder = await startRecorder(t);
  const { call, signIn } = await start(t, [{ id: "vault", url: recorder.url }]);
  const cookie = await signIn("vault");
  const object = await call("GET", "/svc/vault/api/v1/object", undefined, { cookie });
  assert.equal(object.status, 200);
  const { headers } = object;
  assert.match(headers.get("content-security-policy")!, /^sandbox; default-src 'none'/);
  assert.equal(headers.get("content-disposition"), "attachment");
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  for (const name of [
    "set-cookie",
    "clear-site-data",
    "service-worker-allowed",
    "access-control-allow-origin",
    "location",
    "link",
    "refresh",
  ]) {
    assert.equal(headers.get(name), null, name);
  }
  const preview = await call("GET", "/svc/vault/api/v1/preview", undefined, { cookie });
  assert.equal(preview.headers.get("content-disposition"), "inline");
  assert.match(preview.headers.get("content-security-policy")!, /^sandbox; default-src 'none'/);
});

test("bytes that a service has sandboxed can be shown in a frame, unless its policy allows them anything", async (t) => {
  const recorder = await startRecorder(t);
  const { call, signIn } = await start(t, [{ id: "notify", url: recorder.url }]);
  const cookie = await signIn("notify");
  const read = async (policy: string): Promise<(string | null)[]> => {
    const path = `/svc/notify/api/v1/preview?${new URLSearchParams({ policy }).toString()}`;
    const { headers } = await call("GET", path, undefined, { cookie });
    return [headers.get("content-security-policy"), headers.get("content-disposition")];
  };
  for (const policy of [
    "sandbox; default-src 'none'; frame-ancestors 'self'",
    "default-src 'none'; img-src data:; sandbox; frame-ancestors 'self'",
    "default-src 'none'; sandbox",
  ]) {
    assert.deepEqual(await read(policy), [policy, "inline"], policy);
  }
  for (const policy of [
    "default-src 'none'",
    "default-src 'none'; sandbox allow-scripts",
    "sandbox allow-scripts; sandbox",
    "img-src sandbox; sandbox-not",
    "sandbox allow-scripts, sandbox",
  ]) {
    const [shown, disposition] = await read(policy);
    assert.notEqual(shown, policy);
    assert.match(shown!, /^sandbox; default-src 'none'/, policy);
    assert.equal(disposition, "attachment", policy);
  }
});

test("no path leads to another address, or out of the API of a service", async (t) => {
  const recorder = await startRecorder(t);
  const { call, signIn } = await start(t, [
    { id: "notify", url: recorder.url },
    { id: "vault", url: recorder.url },
  ]);
  const cookie = await signIn("vault", await signIn("notify"));
  recorder.seen.length = 0;
  const rests = [
    "",
    "/",
    "/metrics",
    "/ui/",
    "/console/login",
    "/api",
    "/apis/v1",
    "/admin/backup",
    "/admin/remotesx",
    "/admin/remotes/../backup",
    "//evil.example/api/v1",
    "/http://evil.example/api/v1",
    "/api/../metrics",
    "/api/v1/../../metrics",
    "/api/v1/..",
    "/api/./v1",
    "/api/v1/%2e%2e/%2e%2e/metrics",
    "/api/v1/%2E%2E/x",
    "/api/v1/.%2e/x",
    "/api/v1/..;/x",
    "/api/v1/..%5cmetrics",
    "/api/v1/a%00b",
    "/api/v1/%zz",
    "/api/v1/a%0d%0aHost:%20evil.example",
    "/api/v1\\..\\metrics",
  ];
  const ids = ["notify", "vault"];
  for (const id of ids) {
    for (const rest of rests) {
      const answer = await call("GET", `/svc/${id}${rest}`, undefined, { cookie });
      assert.ok([400, 404].includes(answer.status), `${id}${rest}: ${answer.status}`);
    }
  }
  const others = [
    "/svc",
    "/svc/",
    "/svc/other/api/v1/x",
    "/svc/NOTIFY/api/v1/x",
    "/svc/constructor/api/v1/x",
    "/svc/127.0.0.1/api/v1/x",
    "/svc/notify:80/api/v1/x",
    "/svc/notify@evil.example/api/v1/x",
    "/svc/notify/admin/remotes",
  ];
  for (const path of others) {
    const answer = await call("GET", path, undefined, { cookie });
    assert.equal(answer.status, 404, path);
  }
  assert.deepEqual(recorder.seen, []);
  const remotes = await call("GET", "/svc/vault/admin/remotes/a/check", undefined, { cookie });
  assert.equal(remotes.status, 200);
  for (const id of ids) {
    const answer = await call("GET", `/svc/${id}/api/v1/a//b%2Fc?x=../..`, undefined, { cookie });
    assert.equal(answer.status, 200);
  }
  assert.deepEqual(
    recorder.seen.map(({ url }) => url),
    ["/admin/remotes/a/check", "/api/v1/a//b%2Fc?x=../..", "/api/v1/a//b%2Fc?x=../.."],
  );
});

test("without a session, or from a foreign page, nothing is forwarded", async (t) => {
  const recorder = await startRecorder(t);
  const { call, signIn, open, url } = await start(t, [{ id: "notify", url: recorder.url }]);
  const cookie = await signIn("notify");
  recorder.seen.length = 0;
  const path = "/svc/notify/api/v1/samples";
  const none = await call("GET", path);
  assert.deepEqual([none.status, none.body.reason], [401, "no_session"]);
  const forged = `platform_console=${"A".repeat(43)}`;
  assert.equal((await call("GET", path, undefined, { cookie: forged })).status, 401);
  const foreign = [
    { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
    { origin: null },
    { origin: "null" },
    { origin: url, "sec-fetch-site": "same-site" },
    { origin: url.replace("http:", "https:") },
  ];
  for (const headers of foreign) {
    assert.equal((await call("POST", path, {}, { cookie, ...headers })).status, 403);
  }
  assert.equal(
    (await call("POST", path, "a=1", { cookie, "content-type": "text/plain" })).status,
    415,
  );
  const site = { cookie, "sec-fetch-site": "cross-site" };
  assert.equal((await call("GET", path, undefined, site)).status, 403);
  for (const socketPath of ["/svc/notify/api/v1/ws", "/svc/notify/ws/a", "/console/live"]) {
    for (const headers of [
      { cookie },
      { cookie, origin: "https://evil.example" },
      { origin: url },
      { cookie, origin: url, "sec-fetch-site": "cross-site" },
    ]) {
      const [error] = (await once(open(socketPath, headers), "error")) as [Error];
      assert.match(error.message, /40[13]/, socketPath);
    }
  }
  assert.deepEqual(recorder.seen, []);
});

test("another name that leads here is not the console", async (t) => {
  const { call, port, url } = await start(t, []);
  for (const host of ["evil.example", `evil.example:${port}`, `localhost.evil.example:${port}`]) {
    for (const path of [
      "/console/config",
      "/console/session",
      "/svc/notify/api/v1/x",
      "/api/docs",
    ]) {
      assert.equal((await call("GET", path, undefined, { host })).status, 421, path);
    }
    assert.equal((await call("GET", "/ui/", undefined, { host })).status, 421);
  }
  const moved = await call("GET", "/ui/mail/inbox?a=1", undefined, { host: `127.0.0.1:${port}` });
  assert.deepEqual(
    [moved.status, moved.headers.get("location")],
    [302, `${url}/ui/mail/inbox?a=1`],
  );
  const root = await call("GET", "/");
  assert.deepEqual([root.status, root.headers.get("location")], [302, `${url}/ui/`]);
});

test("a WebSocket passes in both directions, and ends with the session", async (t) => {
  const recorder = await startRecorder(t);
  const { call, open, signIn, url } = await start(t, [{ id: "pulse", url: recorder.url }]);
  const cookie = await signIn("pulse");
  const socket = open("/svc/pulse/ws/subscribe/a?from=earliest", { cookie, origin: url });
  await once(socket, "open");
  socket.send("hello");
  const [data] = (await once(socket, "message")) as [Buffer];
  assert.equal(data.toString(), "echo hello");
  const seen = recorder.seen.at(-1)!;
  assert.equal(seen.url, "/ws/subscribe/a?from=earliest");
  assert.equal(seen.headers.authorization, `Bearer ${TOKEN}`);
  assert.equal(seen.headers.cookie, undefined);
  assert.equal(seen.headers.origin, undefined);
  const closed = once(socket, "close");
  await call("POST", "/console/logout", {}, { cookie });
  await closed;
});

test("a session ends when a service refuses its only credentials", async (t) => {
  const recorder = await startRecorder(t);
  const { call, signIn } = await start(t, [
    { id: "notify", url: recorder.url },
    { id: "vault", url: recorder.url },
  ]);
  const both = await signIn("vault", await signIn("notify"));
  const one = await call("GET", "/svc/vault/api/v1/refused", undefined, { cookie: both });
  assert.deepEqual([one.status, one.body.reason], [401, "not_signed_in_to_service"]);
  const session = await call("GET", "/console/session", undefined, { cookie: both });
  assert.deepEqual(session.body.services, ["notify"]);
  const last = await call("GET", "/svc/notify/api/v1/refused", undefined, { cookie: both });
  assert.deepEqual([last.status, last.body.reason], [401, "session_expired"]);
  assert.equal((await call("GET", "/console/session", undefined, { cookie: both })).status, 401);
});

test("a service without credentials is not reached through the console", async (t) => {
  const open = await startStage(t, { id: "notify", hasToken: false });
  const mail = await startStage(t, { id: "vault" });
  const { call, signIn } = await start(t, [
    { id: "notify", url: open.url },
    { id: "vault", url: mail.url },
  ]);
  const login = await call("POST", "/console/login", { service: "notify", token: "anything" });
  assert.equal(login.status, 401);
  const cookie = await signIn("vault");
  const answer = await call("POST", "/svc/notify/api/v1/samples", {}, { cookie });
  assert.deepEqual([answer.status, answer.body.reason], [401, "not_signed_in_to_service"]);
  assert.deepEqual(open.reached, []);
});

test("the live feed combines the services, and reports those that are down", async (t) => {
  const mail = await startStage(t, { id: "notify" });
  const { call, open, signIn, url } = await start(t, [
    { id: "notify", url: mail.url },
    { id: "vault", url: "http://127.0.0.1:1" },
  ]);
  const cookie = await signIn("notify");
  const socket = open("/console/live", { cookie, origin: url });
  const messages: LiveMessage[] = [];
  const seen = Promise.withResolvers<void>();
  socket.on("message", (data: Buffer) => {
    messages.push(JSON.parse(data.toString()) as LiveMessage);
    const has = (type: string, service: string): boolean =>
      messages.some((one) => one.type === type && one.service === service);
    if (has("hello", "notify") && has("figures", "notify") && has("down", "vault")) seen.resolve();
  });
  await seen.promise;
  const down = messages.find(({ type }) => type === "down");
  assert.equal(down?.type === "down" && down.status, 0, "it does not answer");
  const closed = once(socket, "close");
  await call("POST", "/console/logout", {}, { cookie });
  const [code] = (await closed) as [number];
  assert.equal(code, 4401);
});

test("a service that hangs counts as down although its connection stays open", async (t) => {
  const storage = await startStage(t, { id: "vault" });
  // Stands between the front and the service: while it hangs, connections are open and silent.
  let isHung = false;
  const wire = createServer((socket) => {
    const upstream = connect(Number(new URL(storage.url).port), "127.0.0.1");
    socket.on("data", (data) => isHung || upstream.write(data));
    upstream.on("data", (data) => isHung || socket.write(data));
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
    }
  }).listen(0, "127.0.0.1");
  await once(wire, "listening");
  t.after(() => wire.close());
  const { port } = wire.address() as AddressInfo;
  const { open, signIn, url } = await start(t, [{ id: "vault", url: `http://127.0.0.1:${port}` }]);
  const socket = open("/console/live", { cookie: await signIn("vault"), origin: url });
  const seen: string[] = [];
  const down = Promise.withResolvers<void>();
  const back = Promise.withResolvers<void>();
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString()) as LiveMessage;
    seen.push(message.type === "down" ? message.detail : message.type);
    if (message.type === "figures") isHung ||= !seen.includes("The service does not answer.");
    if (message.type === "down") {
      isHung = false;
      down.resolve();
    }
    if (message.type === "hello" && seen.indexOf("hello") < seen.length - 1) back.resolve();
  });
  await down.promise;
  assert.deepEqual([seen[0], seen.at(-1)], ["hello", "The service does not answer."]);
  await back.promise;
});

test("tokens are in no log line", async (t) => {
  const mail = await startStage(t, { id: "notify" });
  const { call, log, signIn } = await start(t, [{ id: "notify", url: mail.url }]);
  const cookie = await signIn("notify");
  await call("POST", "/console/login", { service: "notify", token: "a-wrong-token" });
  await call("GET", "/svc/notify/api/v1/samples", undefined, { cookie });
  const text = [...log, ...mail.log].join("\n");
  for (const secret of [TOKEN, cookie.split("=")[1]!, "a-wrong-token"]) {
    assert.ok(!text.includes(secret));
  }
});
