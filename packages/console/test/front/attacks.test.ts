// Attacks on the console, each against every target: foreign pages, forged requests, framing, planted cookies, other addresses.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import type { ServiceId } from "@platform/console/contract";
import { CLIENT, startIssuer } from "../oidc/issuer.ts";
import { createCaller, readSetCookie, TOKEN, type Answer } from "../stage.ts";
import { start } from "./front-stage.ts";
import { startRecorder } from "./recorder.ts";

const SERVICES: readonly ServiceId[] = [
  "gate",
  "auth",
  "vault",
  "pulse",
  "notify",
  "tunnel",
  "runtime",
];
const WRITES = ["POST", "PUT", "PATCH", "DELETE"];

/** A front with all services, and a session that has credentials of each. */
async function startAll(t: TestContext) {
  const recorder = await startRecorder(t);
  const targets = SERVICES.map((id) => ({ id, url: recorder.url }));
  const front = await start(t, targets);
  let cookie: string | undefined;
  for (const id of SERVICES) cookie = await front.signIn(id, cookie);
  recorder.seen.length = 0;
  return { ...front, recorder, cookie: cookie! };
}

test("no foreign page can write: each method, at each service and at the console", async (t) => {
  const { call, cookie, recorder, url } = await startAll(t);
  const { hostname, port } = new URL(url);
  const foreign: Record<string, string | null>[] = [
    { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
    { origin: "https://evil.example", "sec-fetch-site": null },
    { origin: "null", "sec-fetch-site": "cross-site" },
    { origin: "null", "sec-fetch-site": null },
    { origin: null, "sec-fetch-site": "cross-site" },
    { origin: null, "sec-fetch-site": "same-site" },
    { origin: url, "sec-fetch-site": "same-site" },
    { origin: url, "sec-fetch-site": "cross-site" },
    { origin: url, "sec-fetch-site": "none" },
    { origin: `https://${hostname}:${port}`, "sec-fetch-site": null },
    { origin: `http://${hostname}:${Number(port) + 1}`, "sec-fetch-site": null },
    { origin: `http://${hostname}`, "sec-fetch-site": null },
    { origin: `${url}.evil.example`, "sec-fetch-site": null },
    { origin: `http://evil.example/?${url}`, "sec-fetch-site": null },
    { origin: `${url}/`, "sec-fetch-site": null },
    { origin: `${url}, ${url}`, "sec-fetch-site": null },
    { origin: url.toUpperCase(), "sec-fetch-site": null },
  ];
  const writes = [
    ["POST", "/console/login"],
    ["POST", "/console/logout"],
    ...SERVICES.flatMap((id) => WRITES.map((method) => [method, `/svc/${id}/api/v1/samples`])),
  ] as [string, string][];
  for (const [method, path] of writes) {
    for (const headers of foreign) {
      const body = path === "/console/login" ? { service: "notify", token: TOKEN } : {};
      const answer = await call(method, path, body, { cookie, ...headers });
      const what = `${method} ${path} ${JSON.stringify(headers)}`;
      assert.equal(answer.status, 403, what);
      assert.equal(answer.body.reason, "foreign_origin", what);
      assert.deepEqual(answer.headers.getSetCookie(), [], what);
    }
  }
  assert.deepEqual(recorder.seen, []);
  assert.equal((await call("GET", "/console/session", undefined, { cookie })).status, 200);
});

test("bodies that a form can send are refused, also from the own origin", async (t) => {
  const { call, cookie, recorder } = await startAll(t);
  const types = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "text/plain; charset=application/json",
    "application/jsonx",
    "",
  ];
  for (const id of SERVICES) {
    for (const type of types) {
      const headers = { cookie, "content-type": type };
      const answer = await call("POST", `/svc/${id}/api/v1/samples`, "a=1", headers);
      assert.equal(answer.status, 415, `${id}: ${type}`);
    }
  }
  assert.deepEqual(recorder.seen, []);
});

test("no foreign page can read or connect, at each service", async (t) => {
  const { call, cookie, open, recorder, url } = await startAll(t);
  const foreign: Record<string, string>[] = [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { origin: "https://evil.example" },
    { origin: "null" },
  ];
  for (const path of [...SERVICES.map((id) => `/svc/${id}/api/v1/a`), "/console/session"]) {
    for (const headers of foreign) {
      const answer = await call("GET", path, undefined, { cookie, ...headers });
      assert.equal(answer.status, 403, `${path} ${JSON.stringify(headers)}`);
      assert.equal(answer.headers.get("access-control-allow-origin"), null);
    }
  }
  const sockets = ["/console/live", ...SERVICES.map((id) => `/svc/${id}/api/v1/ws`)];
  for (const path of sockets) {
    for (const headers of [
      { cookie },
      { cookie, origin: "https://evil.example" },
      { cookie, origin: "null" },
      { cookie, origin: url, "sec-fetch-site": "same-site" },
      { cookie, origin: url.replace("localhost", "localhost.evil.example") },
    ]) {
      const [error] = (await once(open(path, headers), "error")) as [Error];
      assert.match(error.message, /403/, `${path} ${JSON.stringify(headers)}`);
    }
  }
  assert.deepEqual(recorder.seen, []);
});

test("no answer can be framed, sniffed or read by another origin", async (t) => {
  const { call, cookie } = await startAll(t);
  const foreign = { cookie, origin: "https://evil.example" };
  const answers: [what: string, answer: Answer][] = [
    ["page", await call("GET", "/ui/")],
    ["deep page", await call("GET", "/ui/identity/users")],
    ["file", await call("GET", "/ui/assets/index-1a2b.js")],
    ["missing file", await call("GET", "/ui/assets/none.js")],
    ["root", await call("GET", "/")],
    ["config", await call("GET", "/console/config")],
    ["session", await call("GET", "/console/session", undefined, { cookie })],
    ["no session", await call("GET", "/console/session")],
    ["wrong login", await call("POST", "/console/login", { service: "gate" })],
    ["foreign login", await call("POST", "/console/login", {}, foreign)],
    ["data", await call("GET", "/svc/vault/api/v1/a", undefined, { cookie })],
    ["object", await call("GET", "/svc/vault/api/v1/object", undefined, { cookie })],
    ["moved", await call("GET", "/svc/vault/api/v1/moved", undefined, { cookie })],
    ["no credentials", await call("GET", "/svc/vault/api/v1/a")],
    ["bad path", await call("GET", "/svc/vault/api/..", undefined, { cookie })],
    ["no service", await call("GET", "/svc/none/api/v1/a", undefined, { cookie })],
    ["foreign write", await call("POST", "/svc/vault/api/v1/a", {}, foreign)],
    [
      "form",
      await call("POST", "/svc/gate/api/v1/a", "a", { cookie, "content-type": "text/plain" }),
    ],
    ["another name", await call("GET", "/console/config", undefined, { host: "evil.example" })],
    ["nothing", await call("GET", "/nowhere")],
    ["refused", await call("GET", "/svc/vault/api/v1/refused", undefined, { cookie })],
  ];
  for (const [what, { headers, status }] of answers) {
    const policy = headers.get("content-security-policy") ?? "";
    assert.match(policy, /frame-ancestors 'none'/, `${what} (${status})`);
    assert.doesNotMatch(policy, /unsafe|\*/, what);
    assert.equal(headers.get("x-content-type-options"), "nosniff", what);
    assert.equal(headers.get("access-control-allow-origin"), null, what);
    if (what !== "file")
      assert.match(headers.get("cache-control") ?? "", /no-store|no-cache/, what);
  }
});

test("no request leads to another address, whatever its path, Host or method", async (t) => {
  const { cookie, port = 0, host, recorder, url } = await startAll(t);
  const outside = await startRecorder(t);
  const target = new URL(outside.url).host;
  const own = `Host: ${host}\r\nCookie: ${cookie}\r\nOrigin: ${url}\r\nSec-Fetch-Site: same-origin\r\n`;
  const requests = SERVICES.flatMap((id) => [
    `GET http://${target}/svc/${id}/api/v1/a HTTP/1.1\r\n${own}`,
    `GET //${target}/svc/${id}/api/v1/a HTTP/1.1\r\n${own}`,
    `GET /svc/${id}//${target}/api/v1/a HTTP/1.1\r\n${own}`,
    `GET /svc/${id}@${target}/api/v1/a HTTP/1.1\r\n${own}`,
    `GET /svc/${id}:80@${target}/api/v1/a HTTP/1.1\r\n${own}`,
    `GET /svc/${id}/%2f%2f${target}/api/v1/a HTTP/1.1\r\n${own}`,
    `GET /svc/${id}/api/v1/a HTTP/1.1\r\nHost: ${target}\r\nCookie: ${cookie}\r\n`,
    `GET /svc/${id}/api/v1/a HTTP/1.1\r\nHost: ${target}\r\n${own}`,
    `GET /svc/${id}/api/v1/a HTTP/1.1\r\nHost: ${host}@${target}\r\nCookie: ${cookie}\r\n`,
    `CONNECT ${target} HTTP/1.1\r\n${own}`,
    `CONNECT /svc/${id}/api/v1/a HTTP/1.1\r\n${own}`,
    `GET /svc/${id}/api/v1/a HTTP/1.1\r\n${own}Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n`,
    `POST /svc/${id}/ws/a HTTP/1.1\r\n${own}Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n`,
    `TRACE /svc/${id}/api/v1/a HTTP/1.1\r\n${own}`,
  ]);
  for (const request of requests) {
    const answer = await sendRaw(port, `${request}Connection: close\r\n\r\n`);
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? "0");
    const isRefused = status === 0 || (status >= 300 && status < 600);
    assert.ok(isRefused, `${status}: ${request}`);
  }
  assert.deepEqual(outside.seen, []);
  assert.deepEqual(
    recorder.seen.map(({ method, url: path }) => `${method} ${path}`),
    [],
    "services were not reached either",
  );
});

test("redirects of services are neither followed nor passed on", async (t) => {
  const { call, cookie, recorder } = await startAll(t);
  const outside = await startRecorder(t);
  recorder.places.elsewhere = outside.url;
  for (const id of SERVICES) {
    const answer = await call("GET", `/svc/${id}/api/v1/moved`, undefined, { cookie });
    assert.deepEqual([answer.status, answer.headers.get("location")], [302, null], id);
  }
  assert.deepEqual(outside.seen, []);
});

test("a cookie that a sibling host has planted is not used", async (t) => {
  const { call, cookie } = await startAll(t);
  const planted = `platform_console=${"A".repeat(43)}`;
  for (const header of [`${planted}; ${cookie}`, `${cookie}; ${planted}`, planted]) {
    const answer = await call("GET", "/svc/gate/api/v1/a", undefined, { cookie: header });
    assert.equal(answer.status, 401, header);
  }
  assert.equal((await call("GET", "/svc/gate/api/v1/a", undefined, { cookie })).status, 200);
  // Over https the name begins with __Host-, which a sibling cannot set: other names count for nothing.
  const url = "https://console.example.com";
  const secure = await start(t, [], undefined, { url });
  const send = createCaller(url, new URL(`http://127.0.0.1:${secure.port}`));
  const host = "console.example.com";
  const answer = await send("GET", "/console/session", undefined, { host, cookie });
  assert.deepEqual([answer.status, answer.body.reason], [401, "no_session"]);
});

test("a session that was planted before a sign-in at identity is not the user's", async (t) => {
  const issuer = await startIssuer(t);
  const recorder = await startRecorder(t);
  const identity = { ...CLIENT, issuer: issuer.url, scopes: ["openid"] };
  const { call, signIn } = await start(t, [{ id: "notify", url: recorder.url }], identity);
  const attacker = await signIn("notify");
  const begin = async (): Promise<{ cookie: string; state: string }> => {
    const started = await call("GET", "/console/oidc/start", undefined, {
      "sec-fetch-site": "none",
    });
    const to = new URL(started.headers.get("location")!).searchParams;
    issuer.next.nonce = to.get("nonce")!;
    return { cookie: readSetCookie(started), state: to.get("state")! };
  };
  const finish = (state: string, cookie: string) =>
    call("GET", `/console/oidc/callback?code=c&state=${state}`, undefined, {
      cookie,
      "sec-fetch-site": "cross-site",
    });
  const victim = await begin();
  const ended = await finish(victim.state, `${victim.cookie}; ${attacker}`);
  const set = ended.headers.getSetCookie().find((one) => one.startsWith("platform_console="))!;
  assert.ok(!set.startsWith(attacker), "a new token");
  const old = await call("GET", "/console/session", undefined, { cookie: attacker });
  assert.equal(old.status, 401, "the planted session has ended");

  // Login CSRF: the code of an attacker does not sign a victim in, whose browser did not begin it.
  const other = await begin();
  for (const cookie of ["", victim.cookie, other.cookie.slice(0, -4)]) {
    const answer = await finish(other.state, cookie);
    assert.match(answer.headers.get("location")!, /^\/ui\/sign-in\?/);
    const isSignedIn = answer.headers
      .getSetCookie()
      .some((one) => /^platform_console=[^;]/.test(one));
    assert.equal(isSignedIn, false);
  }
});

function sendRaw(port: number, text: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.setTimeout(20_000, () => socket.destroy());
  socket.on("error", () => undefined);
  socket.on("data", (bytes: Buffer) => {
    answer += bytes.toString("latin1");
    if (answer.startsWith("HTTP/1.1 101")) socket.destroy();
  });
  socket.on("close", () => resolve(answer));
  socket.end(text);
  return promise;
}
