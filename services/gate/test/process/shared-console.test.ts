// The console on the gateway's own listener: at its host only, for its page only, bounded by client.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { WebSocket } from "ws";
import { makeCertificate, opensslSkip } from "@platform/testing/certificates";
import { waitFor } from "@platform/testing/wait";
import { openConsolePage } from "../fixture/console-page.ts";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { CLIENT_ID, startIssuer } from "../fixture/oidc-issuer.ts";
import { openClient, type RawClient } from "../fixture/raw-client.ts";
import { shareGate, type StartedGate } from "../fixture/shared-gate.ts";

const TOKEN = "an-operator-token-of-some-length";
const OPERATOR = { service: "gate", token: TOKEN };
const BEARER = { authorization: `Bearer ${TOKEN}` };
const CONSOLE = "https://console.test";
const EVENT = "http://schemas.openid.net/event/backchannel-logout";
const ROUTES = "/svc/gate/api/v1/routes";
const FAILURES_MAX = 10;
const REQUESTS_PER_CLIENT_MAX = 512;

/** An upstream that echoes what it receives. */
async function startEcho(t: TestContext): Promise<string> {
  const server = createServer(({ url, headers }, response) => {
    response.end(JSON.stringify({ url, headers }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Keys of a gateway with a shared console at a free port. */
const describeGate = async (settings: Settings = {}) => ({
  addr: `127.0.0.1:${await findFreePort()}`,
  auth_token: TOKEN,
  console_addr: "shared",
  no_route_status: 404,
  ...settings,
});

type Settings = Record<string, unknown> & { console_url?: string };

/** Starts a gateway whose page is at `consoleUrl`, or at `localhost` without it. */
async function start(
  t: TestContext,
  open: (config: Record<string, unknown>) => Promise<StartedGate>,
  { consoleUrl, ...settings }: Record<string, unknown> & { consoleUrl?: string } = {},
) {
  const target = await startEcho(t);
  const route = (entry: object) => ({ target, auth: { type: "none" }, ...entry });
  const gate = await open({
    routes: [
      route({ prefix: "/" }),
      route({ prefix: "/tools", host: "console.test" }),
      route({ prefix: "/ui", host: "shop.test" }),
    ],
    ...settings,
  });
  const { port } = gate;
  const origin = consoleUrl ?? `http://localhost:${port}`;
  const openSocket = (path: string, headers: Record<string, string>): WebSocket => {
    const { host } = new URL(origin);
    const own = { host, origin, "sec-fetch-site": "same-origin", ...headers };
    return new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: own });
  };
  return { gate, port, origin, open: openSocket, route, ...openConsolePage({ port, origin }) };
}

/** The path that reached the upstream; undefined if the gateway or the console answered. */
function readForwarded(text: string): string | undefined {
  try {
    const { url } = JSON.parse(text) as { url?: string };
    return url;
  } catch {
    return undefined;
  }
}

for (const runtime of runtimesOfRules) {
  const named = shareGate({ runtime, config: await describeGate({ console_url: CONSOLE }) });
  const local = shareGate({ runtime, config: await describeGate() });
  const startAlone =
    (t: TestContext, settings: Settings) =>
    async (config: Record<string, unknown>): Promise<StartedGate> =>
      startGate(t, { runtime, config: { ...(await describeGate(settings)), ...config } });

  test(`without a host of its own the console is beside the routes of this machine (${runtime.name})`, async (t) => {
    const { gate, port, origin, ask } = await start(t, local.use);
    assert.deepEqual(Object.keys(gate.ports), ["http"], "the console has no listener");
    assert.equal(readForwarded((await ask("/shop")).text), "/shop");
    const elsewhere = await ask("/ui/x", { headers: { host: `127.0.0.1:${port}` } });
    assert.deepEqual([elsewhere.status, elsewhere.headers.location], [302, `${origin}/ui/x`]);
    const reload = await ask("/api/v1/admin/reload", { method: "POST", headers: BEARER });
    assert.equal(reload.status, 200, reload.text);
    assert.equal((await ask("/console/config")).status, 200, "a reload keeps it");
  });

  test(`hosts without routes get 404 at the console's paths (${runtime.name})`, async (t) => {
    const { ask } = await start(t, named.use, { consoleUrl: CONSOLE, routes: [] });
    for (const path of ["/", "/ui/", "/console/config", ROUTES]) {
      const foreign = await ask(path, { headers: { ...BEARER, host: "shop.test" } });
      assert.equal(foreign.status, 404, path);
    }
    assert.equal((await ask("/console/config")).status, 200);
  });

  test(`sessions, requests and WebSockets are for the console's own page (${runtime.name})`, async (t) => {
    const { ask, signIn, open } = await start(t, named.use, { consoleUrl: CONSOLE });
    assert.equal((await ask(ROUTES)).status, 401);
    const foreign = { origin: "https://shop.test", "sec-fetch-site": "cross-site" };
    const login = { method: "POST", body: OPERATOR };
    const refused = await ask("/console/login", { ...login, headers: foreign });
    assert.equal(refused.status, 403);
    assert.equal(refused.headers["set-cookie"], undefined);
    const cookie = await signIn(OPERATOR);
    assert.match(cookie, /^__Host-platform_console=/);
    assert.equal((await ask(ROUTES, { headers: { cookie } })).status, 200);
    for (const headers of [foreign, { ...foreign, "sec-fetch-site": "same-site" }]) {
      const write = { method: "POST", headers: { ...headers, cookie }, body: {} };
      assert.equal((await ask("/svc/gate/api/v1/admin/reload", write)).status, 403);
    }
    for (const path of ["/console/live", "/svc/gate/api/v1/admin/live"]) {
      const socket = open(path, { cookie });
      t.after(() => socket.terminate());
      const [message] = (await once(socket, "message")) as [Buffer];
      assert.equal(typeof (JSON.parse(String(message)) as { type: string }).type, "string", path);
      const other = open(path, { cookie, ...foreign });
      const [sent, { statusCode }] = await once(other, "unexpected-response");
      assert.equal(statusCode, 403, path);
      other.on("error", () => undefined);
      sent.destroy();
    }
  });

  test(`a host of its own serves the console and the routes that name it, other hosts have their own paths (${runtime.name})`, async (t) => {
    const { ask, route } = await start(t, named.use, { consoleUrl: CONSOLE });
    const forwarded = async (path: string, host: string): Promise<string | undefined> =>
      readForwarded((await ask(path, { headers: { host } })).text);
    for (const host of ["shop.test", "localhost", "console.test.evil.test", "xconsole.test"]) {
      for (const path of ["/", "/ui", "/ui/x", "/console/login", ROUTES]) {
        assert.equal(await forwarded(path, host), path, `${host}${path}`);
      }
    }

    const root = await ask("/");
    assert.deepEqual([root.status, root.headers.location], [302, `${CONSOLE}/ui/`]);
    const page = await ask("/ui/gateway/routes");
    assert.equal(page.status, 200);
    assert.match(String(page.headers["content-security-policy"]), /frame-ancestors 'none'/);
    assert.equal((await ask("/console/session")).status, 401);
    assert.equal(await forwarded("/tools/x", "console.test"), "/tools/x");
    assert.equal(await forwarded("/tools/x", "CONSOLE.test"), "/tools/x");
    // A page there could use the session of the console.
    for (const path of ["/shop", "/tool", "/shop/;v=1/ui", "/;v=1/ui/", "/%75ix", "/svc"]) {
      const answer = await ask(path, { headers: BEARER });
      assert.ok([400, 404].includes(answer.status), `${path}: ${answer.status}`);
    }
    const absolute = await ask("http://console.test/shop", {
      headers: { ...BEARER, host: "shop.test" },
    });
    assert.equal(readForwarded(absolute.text), undefined, "the target names the host");
    const port = await ask("/ui/", { headers: { host: "console.test:81" } });
    assert.equal(port.status, 421, "another port is another origin");

    // The operator's own routes cannot take its paths, either.
    for (const prefix of ["/console/", "/ui/", "/svc/gate"]) {
      const added = await ask("/api/v1/routes", {
        method: "POST",
        headers: BEARER,
        body: route({ prefix, host: "console.test" }),
      });
      assert.ok(added.status < 300, added.text);
    }
    for (const path of ["/console/session", "/console/x", "/ui/x", ROUTES]) {
      assert.equal(await forwarded(path, "console.test"), undefined, path);
    }
    assert.equal((await ask("/console/session")).status, 401);
  });

  test(`failed sign-ins are counted by the client's address, which clients cannot choose (${runtime.name})`, async (t) => {
    const { ask } = await start(t, local.use, { trusted_proxies: ["127.0.0.1"] });
    const attempt = async (headers: Record<string, string>): Promise<number> => {
      const body = { service: "gate", token: "a-wrong-token-of-some-length" };
      return (await ask("/console/login", { method: "POST", body, headers })).status;
    };
    // 127.0.0.1 is a trusted proxy: what it says of its client counts, what clients say of themselves does not.
    for (let n = 0; n < FAILURES_MAX; n += 1) {
      const headers = {
        "x-forwarded-for": `203.0.113.${n}, 198.51.100.7`,
        "x-platform-gate-client": `192.0.2.${n}`,
      };
      assert.equal(await attempt(headers), 401);
    }
    assert.equal(await attempt({ "x-forwarded-for": "198.51.100.7" }), 429);
    assert.equal(await attempt({ "x-forwarded-for": "198.51.100.8" }), 401);
    const { text } = await ask("/shop", { headers: { "x-platform-gate-client": "192.0.2.1" } });
    assert.doesNotMatch(text, /x-platform-gate-client/i);
  });

  test(`one client cannot use up the console, and its requests end (${runtime.name})`, async (t) => {
    const { port, origin, ask } = await start(t, local.use);
    const { host } = new URL(origin);
    const head = `POST /console/login HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${origin}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;
    const begin = async (address: string): Promise<RawClient> => {
      const client = await openClient(t, port, address);
      client.send(head);
      return client;
    };
    const isFull = async (): Promise<boolean> => {
      const client = await openClient(t, port, "127.0.0.2");
      client.send(`GET /console/config HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      await client.closed();
      return /^HTTP\/1\.1 429 [^]*retry-after: 1/i.test(client.text());
    };
    const slow: RawClient[] = [];
    // A request of `isFull` may have taken the place of a slow one.
    while (slow.length < REQUESTS_PER_CLIENT_MAX || !(await isFull())) {
      assert.ok(slow.length < 2 * REQUESTS_PER_CLIENT_MAX, "a client has too many requests");
      slow.push(await begin("127.0.0.2"));
    }
    assert.equal((await ask("/console/config")).status, 200, "others are served");
    for (const { socket } of slow) socket.destroy();
    await waitFor(async () => !(await isFull()));
    // Each request ends: twice the limit in turn.
    for (let n = 0; n < REQUESTS_PER_CLIENT_MAX; n += 16) {
      const answers = await Promise.all(Array.from({ length: 32 }, () => ask("/console/config")));
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    }
  });

  test(`people sign in and out through identity at the shared address (${runtime.name})`, async (t) => {
    const issuer = await startIssuer(t);
    issuer.claims = { aud: "platform-console" };
    const { ask, origin, open } = await start(
      t,
      startAlone(t, {
        console_issuer: issuer.url,
        console_client_secret: "a-secret-of-the-console",
      }),
    );
    const begun = await ask("/console/oidc/start?to=/ui/gateway/routes", {
      headers: { "sec-fetch-site": "none" },
    });
    const to = new URL(begun.headers.location!);
    assert.equal(to.searchParams.get("redirect_uri"), `${origin}/console/oidc/callback`);
    issuer.nonce = to.searchParams.get("nonce")!;
    const pending = begun.headers["set-cookie"]![0]!.split(";", 1)[0]!;
    const callback = `/console/oidc/callback?code=a-code&state=${to.searchParams.get("state")}`;
    const back = { cookie: pending, "sec-fetch-site": "cross-site", origin: "null" };
    const ended = await ask(callback, { headers: back });
    assert.equal(ended.headers.location, "/ui/gateway/routes", ended.text);
    const set = ended.headers["set-cookie"]!.find((one) => one.startsWith("platform_console="))!;
    const cookie = set.split(";", 1)[0]!;
    assert.equal((await ask("/console/session", { headers: { cookie } })).status, 200);

    // Identity is a server: it sends neither Origin nor Sec-Fetch-Site.
    const live = open("/console/live", { cookie });
    await once(live, "open");
    const closed = once(live, "close");
    const now = Math.floor(Date.now() / 1_000);
    const claims = { iss: issuer.url, aud: CLIENT_ID, sub: "ada", sid: issuer.sid, jti: "1" };
    const token = issuer.sign(
      { ...claims, ...issuer.claims, iat: now, exp: now + 120, events: { [EVENT]: {} } },
      { typ: "logout+jwt" },
    );
    const notice = await fetch(`${origin}/console/oidc/backchannel`, {
      method: "POST",
      body: new URLSearchParams({ logout_token: token }),
    });
    assert.equal(notice.status, 200, await notice.text());
    assert.equal((await closed)[0], 4401);
    assert.equal((await ask("/console/session", { headers: { cookie } })).status, 401);
  });

  test(
    `over TLS the cookie belongs to its host alone (${runtime.name})`,
    { skip: opensslSkip },
    async (t) => {
      const folder = makeFolder(t);
      const ours = makeCertificate(folder, "ours");
      const names = "DNS:localhost";
      const { cert, key } = makeCertificate(folder, "gateway", { names, authority: ours });
      const { gate, port } = await start(t, startAlone(t, { tls_cert: cert, tls_key: key }));
      assert.deepEqual(Object.keys(gate.ports), ["https"]);
      const ca = readFileSync(ours.cert, "utf8");
      const origin = `https://localhost:${port}`;
      const { ask } = openConsolePage({ port, origin, ca });
      const login = await ask("/console/login", { method: "POST", body: OPERATOR });
      const [cookie = ""] = login.headers["set-cookie"] ?? [];
      assert.match(cookie, /^__Host-platform_console=[^;]+; /);
      for (const attribute of ["Path=/", "HttpOnly", "SameSite=Strict", "Secure"]) {
        assert.ok(cookie.split("; ").includes(attribute), cookie);
      }
      const headers = { cookie: cookie.split(";", 1)[0]! };
      assert.equal((await ask(ROUTES, { headers })).status, 200);
      const plain = { ...headers, origin: `http://localhost:${port}` };
      const write = { method: "POST", headers: plain, body: {} };
      assert.equal((await ask("/svc/gate/api/v1/admin/reload", write)).status, 403);
    },
  );
}
