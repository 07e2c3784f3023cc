// Share links, Basic authentication and bearers of tunnels, as visitors and owners see them.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  Cleanup,
  send,
  startLocal,
  startTestClient,
  startTestRelay,
  type PublicResponse,
} from "../fixture/stage.ts";

const cleanup = new Cleanup();
const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  "sec-websocket-protocol": "platform-tunnel.1",
};
const BROWSER = { accept: "text/html,application/xhtml+xml" };
interface Seen {
  method: string;
  url: string;
  cookie: string | undefined;
}
const seen: Seen[] = [];
let localPort = 0;
let port = 0;
let id = "";

before(async () => {
  localPort = await startLocal(cleanup, (request, response) => {
    const { method = "", url = "", headers } = request;
    seen.push({ method, url, cookie: headers.cookie });
    request.resume().on("end", () => response.end("from the service"));
  });
  ({ port } = await startTestRelay(cleanup));
  id = await serve(port, { subdomain: "closed", auth_required: true });
});
after(() => cleanup.run());

async function serve(
  relayPort: number,
  offer: { subdomain: string; auth_required?: boolean; share_auth?: string },
  token?: string,
): Promise<string> {
  const client = await startTestClient(cleanup, {
    port: relayPort,
    ...(token === undefined ? {} : { token }),
    key: `key-of-the-client-of-${offer.subdomain}-000`,
    tunnels: [{ target: String(localPort), ...offer }],
  });
  const [grant] = client.welcomes[0]!.tunnels;
  assert.ok(grant !== undefined && "id" in grant, JSON.stringify(grant));
  return grant.id;
}

function visit(
  path: string,
  headers: Record<string, string> = {},
  options: Partial<Parameters<typeof send>[0]> = {},
): Promise<PublicResponse> {
  return send({ port, host: `closed.localhost:${port}`, path, headers, ...options });
}

async function api(
  path: string,
  method = "GET",
  body?: object,
  relayPort = port,
): Promise<{ status: number; json: unknown }> {
  const response = await send({
    port: relayPort,
    host: `localhost:${relayPort}`,
    path: `/api/v1/tunnels/${path}`,
    method,
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = response.body.toString();
  return { status: response.status, json: text === "" ? undefined : JSON.parse(text) };
}

interface Link {
  id: string;
  url: string;
  expires_at: string;
}

async function share(body: object = {}): Promise<Link & { query: string; token: string }> {
  const { status, json } = await api(`${id}/share`, "POST", body);
  assert.equal(status, 200, JSON.stringify(json));
  const link = json as Link;
  const { search, searchParams } = new URL(link.url);
  return { ...link, query: search, token: searchParams.get("token") ?? "" };
}

function cookieOf(response: PublicResponse): string {
  return (response.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
}

describe("a share link", () => {
  test("redirects a browser to the page without the token, and its cookie opens the tunnel", async () => {
    const { url, token, expires_at: expiresAt } = await share({ expires_in: "15m" });
    assert.match(url, /^http:\/\/closed\.localhost:\d+\/\?token=pts_[A-Za-z0-9_-]{72}$/);
    const leftMs = Date.parse(expiresAt) - Date.now();
    assert.ok(leftMs > 890_000 && leftMs <= 900_000);
    const opened = await visit(`/docs?a=1&token=${token}&b=2`, BROWSER);
    assert.equal(opened.status, 303);
    assert.equal(opened.headers.location, "/docs?a=1&b=2");
    const [setCookie = ""] = opened.headers["set-cookie"] ?? [];
    assert.match(setCookie, /; HttpOnly; SameSite=Lax$/);
    assert.doesNotMatch(setCookie, new RegExp(token));
    const page = await visit("/docs", { ...BROWSER, cookie: `app=1; ${cookieOf(opened)}; b=2` });
    assert.equal(page.body.toString(), "from the service");
    // The service sees neither token nor cookie of the relay.
    assert.deepEqual(seen.at(-1), { method: "GET", url: "/docs", cookie: "app=1; b=2" });
  });

  test("answers programs directly, without passing the token on", async () => {
    const { token } = await share();
    const answer = await visit(`/api?x=1&token=${token}`, {}, { method: "POST", body: "data" });
    assert.equal(answer.status, 200);
    assert.deepEqual(seen.at(-1), { method: "POST", url: "/api?x=1", cookie: undefined });
    assert.equal((await visit(`/?token=${token}`)).status, 200);
    const { json } = await api(`${id}/requests`);
    assert.equal((json as { requests: { path: string }[] }).requests[0]?.path, "/");
  });

  test("does not redirect to another host", async () => {
    const { token } = await share();
    for (const path of ["//evil.example/", "/\\evil.example/", "///evil.example"]) {
      const { headers, status } = await visit(`${path}?token=${token}`, BROWSER);
      if (status === 303) assert.match(headers.location ?? "", /^\/[^/\\]/);
      else assert.equal(status, 400);
    }
  });

  test("that was revoked is 410, and so are the cookies that it has handed out refused", async () => {
    const { id: shareId, query } = await share();
    const cookie = cookieOf(await visit(`/${query}`, BROWSER));
    assert.equal((await visit("/", { cookie })).status, 200);
    assert.equal((await api(`${id}/shares/${shareId}`, "DELETE")).status, 204);
    assert.equal((await visit(`/${query}`)).status, 410);
    const refused = await visit("/", { cookie });
    assert.equal(refused.status, 401);
    const { json } = await api(`${id}/shares`);
    const { shares } = json as { shares: { id: string; status: string }[] };
    assert.equal(shares.find((one) => one.id === shareId)?.status, "revoked");
    assert.equal((await api(`${id}/shares/none`, "DELETE")).status, 404);
  });

  test("opens its own tunnel only", async () => {
    const { token, query } = await share();
    const cookie = cookieOf(await visit(`/${query}`, BROWSER));
    await serve(port, { subdomain: "other", auth_required: true });
    const host = `other.localhost:${port}`;
    assert.equal((await send({ port, host, path: `/?token=${token}` })).status, 401);
    assert.equal((await send({ port, host, headers: { cookie } })).status, 401);
    // The cookie's value is no token of a link.
    const value = cookie.slice(cookie.indexOf("=") + 1);
    assert.equal((await visit(`/?token=${value}`)).status, 401);
  });

  test("with an invalid duration is refused", async () => {
    for (const expires of ["31d", "0h", "1 h", "1w", "-1h", "999999999d", ""]) {
      const { status } = await api(`${id}/share`, "POST", { expires_in: expires });
      assert.equal(status, 400, expires);
    }
  });

  test("is not created for pages of other origins", async () => {
    const { status } = await send({
      port,
      host: `localhost:${port}`,
      path: `/api/v1/tunnels/${id}/share`,
      method: "POST",
      headers: { origin: `http://closed.localhost:${port}`, "content-type": "application/json" },
      body: "{}",
    });
    assert.equal(status, 403);
  });
});

describe("a one-time link", () => {
  test("asks a browser first, so that previews do not use it up, and works once", async () => {
    const { query } = await share({ one_time: true });
    for (let preview = 0; preview < 3; preview++) {
      const page = await visit(`/page${query}&a="<`, BROWSER);
      if (page.status === 400) continue;
      assert.equal(page.status, 200);
      assert.match(page.body.toString(), /works once/);
    }
    assert.equal((await visit(`/page${query}`, BROWSER, { method: "HEAD" })).status, 200);
    const page = await visit(`/page${query}&a=1`, BROWSER);
    assert.match(String(page.headers["content-security-policy"]), /default-src 'none'/);
    const action = /action="([^"]*)"/.exec(page.body.toString())?.[1]?.replaceAll("&amp;", "&");
    assert.ok(action !== undefined);
    const count = seen.length;
    const opened = await visit(`/page${action}`, BROWSER, { method: "POST" });
    assert.equal(opened.status, 303);
    assert.equal(opened.headers.location, "/page?a=1");
    assert.equal(seen.length, count);
    assert.equal((await visit("/page", { cookie: cookieOf(opened) })).status, 200);
    for (const options of [{ method: "POST" }, {}]) {
      const again = await visit(`/page${query}`, BROWSER, options);
      assert.equal(again.status, 410);
      assert.equal(again.headers["x-platform-tunnel-error"], "link_expired");
    }
  });

  test("is spent by a program's request, and by one of several at the same time", async () => {
    const { query } = await share({ one_time: true });
    const answers = await Promise.all(Array.from({ length: 10 }, () => visit(`/${query}`)));
    const statuses = answers.map(({ status }) => status).sort((one, other) => one - other);
    assert.deepEqual(statuses, [200, ...Array.from({ length: 9 }, () => 410)]);
  });
});

test("forged tokens of links are throttled, and the right one still opens the tunnel", async () => {
  const relay = await startTestRelay(cleanup);
  const tunnel = await serve(relay.port, { subdomain: "guess", auth_required: true });
  const { json } = await api(`${tunnel}/share`, "POST", {}, relay.port);
  const host = `guess.localhost:${relay.port}`;
  const right = new URL((json as Link).url).search;
  const statuses: number[] = [];
  for (let index = 0; index < 25; index++) {
    const token = `pts_${String(index).padStart(72, "A")}`;
    const { status } = await send({ port: relay.port, host, path: `/?token=${token}` });
    statuses.push(status);
  }
  assert.equal(statuses[0], 401);
  assert.equal(statuses.at(-1), 429);
  assert.equal((await send({ port: relay.port, host, path: `/${right}` })).status, 200);
});

test("short tokens can be guessed: an address is throttled with the right one, too; requests without one are not counted", async () => {
  const relay = await startTestRelay(cleanup, { auth_token: "operator-token" });
  const call = (headers: Record<string, string>) =>
    send({
      port: relay.port,
      host: `localhost:${relay.port}`,
      path: "/api/v1/tunnels",
      headers,
    });
  for (let index = 0; index < 40; index++) assert.equal((await call({})).status, 401);
  const right = { authorization: "Bearer operator-token" };
  assert.equal((await call(right)).status, 200);
  for (let index = 0; index < 20; index++) {
    assert.equal((await call({ authorization: `Bearer guess-${index}` })).status, 401);
  }
  const refused = await call(right);
  assert.equal(refused.status, 429);
  assert.match(refused.headers["retry-after"] ?? "", /^\d+$/);
});

test("invalid tokens of 256 bits do not lock out those who share the address", async () => {
  const right = randomBytes(32).toString("base64url");
  const relay = await startTestRelay(cleanup, { auth_token: `operator:${right}` });
  await serve(relay.port, { subdomain: "office", auth_required: true }, right);
  await serve(relay.port, { subdomain: "basic", share_auth: "ada:lovelace" }, right);
  interface Attempt {
    host: string;
    path: string;
    headers?: Record<string, string>;
  }
  const attempts: Attempt[] = [
    { host: `localhost:${relay.port}`, path: "/api/v1/tunnels" },
    { host: `localhost:${relay.port}`, path: "/ws/connect", headers: UPGRADE },
    { host: `office.localhost:${relay.port}`, path: "/" },
  ];
  const call = async (token: string, { headers = {}, ...rest }: Attempt) => {
    const authorization = `Bearer ${token}`;
    return send({ port: relay.port, ...rest, headers: { ...headers, authorization } });
  };
  for (let index = 0; index < 20; index++) {
    const wrong = randomBytes(32).toString("base64url");
    assert.equal((await call(wrong, attempts[index % attempts.length]!)).status, 401);
  }
  for (const attempt of attempts) {
    const refused = await call(randomBytes(32).toString("base64url"), attempt);
    assert.equal(refused.status, 429);
    assert.match(refused.headers["retry-after"] ?? "", /^\d+$/);
  }
  assert.equal((await call(right, attempts[0]!)).status, 200);
  assert.equal((await call(right, attempts[2]!)).status, 200);
  await serve(relay.port, { subdomain: "later" }, right);
  const authorization = `Basic ${Buffer.from("ada:lovelace").toString("base64")}`;
  const host = `basic.localhost:${relay.port}`;
  assert.equal((await send({ port: relay.port, host, headers: { authorization } })).status, 200);
});

test("links are kept across a restart: active, used and revoked ones", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tunnel-share-"));
  cleanup.add(() => rmSync(folder, { recursive: true, force: true }));
  const first = await startTestRelay(cleanup, { data_dir: folder });
  const tunnel = await serve(first.port, { subdomain: "kept", auth_required: true });
  const make = async (body: object): Promise<Link> =>
    (await api(`${tunnel}/share`, "POST", body, first.port)).json as Link;
  const active = await make({});
  const used = await make({ one_time: true });
  const revoked = await make({});
  const host = (relayPort: number) => `kept.localhost:${relayPort}`;
  await send({ port: first.port, host: host(first.port), path: `/${new URL(used.url).search}` });
  await api(`${tunnel}/shares/${revoked.id}`, "DELETE", undefined, first.port);
  await first.stop();
  const second = await startTestRelay(cleanup, { data_dir: folder });
  await serve(second.port, { subdomain: "kept", auth_required: true });
  const statuses: number[] = [];
  for (const { url } of [active, used, revoked]) {
    const path = `/${new URL(url).search}`;
    statuses.push((await send({ port: second.port, host: host(second.port), path })).status);
  }
  assert.deepEqual(statuses, [200, 410, 410]);
});

test("a public tunnel passes on a token of its own service, but not a used link", async () => {
  const tunnel = await serve(port, { subdomain: "openly" });
  const host = `openly.localhost:${port}`;
  await send({ port, host, path: "/reset?token=of-the-service" });
  assert.equal(seen.at(-1)?.url, "/reset?token=of-the-service");
  const { json } = await api(`${tunnel}/share`, "POST", { one_time: true });
  const path = `/${new URL((json as Link).url).search}`;
  assert.equal((await send({ port, host, path })).status, 200);
  assert.equal((await send({ port, host, path })).status, 410);
});

test("Basic authentication protects a tunnel, and its credentials are not passed on", async () => {
  await serve(port, { subdomain: "basic", share_auth: "ada:lovelace" });
  const host = `basic.localhost:${port}`;
  const withAuth = (credentials: string) => ({
    authorization: `Basic ${Buffer.from(credentials).toString("base64")}`,
  });
  const refused = await send({ port, host });
  assert.equal(refused.status, 401);
  assert.match(refused.headers["www-authenticate"] ?? "", /^Basic/);
  assert.equal((await send({ port, host, headers: withAuth("ada:wrong") })).status, 401);
  assert.equal((await send({ port, host, headers: withAuth("ada:lovelace") })).status, 200);
});
