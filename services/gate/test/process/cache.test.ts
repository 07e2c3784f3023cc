// The response cache of the running gateway: one store for all workers, one request upstream, invalidation, callers.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { Agent, type IncomingMessage, type ServerResponse, createServer, request } from "node:http";
import type { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { SignJWT } from "jose";
import { waitFor } from "@platform/testing/wait";
import { runtimes, runtimesOfRules } from "../fixture/gate-process.ts";
import { followMetric, readMetric } from "../fixture/metrics.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate } from "../fixture/shared-gate.ts";

/** Requests without clients in one worker. */
const DETACHED_MAX = 64;
const NEW = Buffer.from("new");
/** Of a cache that is too small for what a test requests. */
const SMALL_BYTES = 1_048_576;
const TOKEN = "the operator token of the tests";
const SECRET = "a secret of the tests that is long enough";

interface Answer {
  status: number;
  headers: IncomingMessage["headers"];
  body: Buffer;
}

async function startUpstream(
  context: TestContext,
  handle: (incoming: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(handle);
  server.on("upgrade", (_incoming, socket) => {
    socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
  });
  return await serve(context, server);
}

async function ask(
  port: number,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Answer> {
  const sent = request({ host: "127.0.0.1", port, path, headers, method, agent: false }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return { status: response.statusCode!, headers: response.headers, body: Buffer.concat(pieces) };
}

const gates = new Map(
  runtimesOfRules.map((runtime) => [runtime, shareGate({ runtime, config: { workers: 2 } })]),
);

for (const runtime of runtimesOfRules) {
  const gate = gates.get(runtime)!;

  test(`of many equal requests one goes upstream, in all workers, on ${runtime.name}`, async (context) => {
    let count = 0;
    const waiting: ServerResponse[] = [];
    const target = await startUpstream(context, (_incoming, response) => {
      count++;
      response.setHeader("Cache-Control", "max-age=60");
      waiting.push(response);
    });
    const routes = [{ prefix: "/", target, cache_ttl_seconds: 60 }];
    const { port, url } = await gate.use({ routes });
    const readHits = await followMetric(url, "platform_gate_cache_hits_total");
    const asks = Array.from({ length: 40 }, () => ask(port, "/one"));
    await waitFor(() => waiting.length > 0, "a request upstream");
    // The others arrive meanwhile; none of them may follow.
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (const response of waiting) response.end("shared");
    const answers = await Promise.all(asks);
    assert.ok(answers.every(({ body }) => body.toString() === "shared"));
    assert.equal(count, 1);
    assert.equal(await readHits(), 39);
    assert.equal(await readMetric(url, "platform_gate_cache_entries"), 1);

    // A client that leaves is replaced by one of those that wait, not by all of them.
    const left = request({ host: "127.0.0.1", port, path: "/left", agent: false }).end();
    left.on("error", () => undefined);
    await waitFor(() => waiting.length === 2, "the request that leaves");
    const waiters = Array.from({ length: 20 }, () => ask(port, "/left"));
    await new Promise((resolve) => setTimeout(resolve, 300));
    (left.socket as Socket).resetAndDestroy();
    await waitFor(() => waiting.length === 3, "its successor");
    waiting[2]!.end("shared");
    const bodies = (await Promise.all(waiters)).map(({ body }) => body.toString());
    assert.deepEqual(new Set(bodies), new Set(["shared"]));
    assert.equal(count, 3);
  });

  test(`while one request revalidates, others get the stale response, on ${runtime.name}`, async (context) => {
    let waiting: ServerResponse | undefined;
    let count = 0;
    const target = await startUpstream(context, (_incoming, response) => {
      response.setHeader("Cache-Control", "max-age=1, stale-while-revalidate=600");
      response.setHeader("Date", new Date(Date.now() - 5_000).toUTCString());
      if (++count === 1) response.end("old");
      else waiting = response;
    });
    const routes = [{ prefix: "/", target, cache_ttl_seconds: 60 }];
    const { port, url } = await gate.use({ routes });
    const readDetached = await followMetric(url, "platform_gate_cache_detached_total");
    const readMisses = await followMetric(url, "platform_gate_cache_misses_total");
    await ask(port, "/x");
    // Each on a connection of its own, which is closed before the revalidation ends.
    for (let times = 0; times < 5; times++) {
      const { headers, body } = await ask(port, "/x");
      assert.deepEqual([headers["x-cache"], body.toString()], ["STALE", "old"]);
    }
    await waitFor(() => waiting !== undefined, "the revalidation");
    waiting!.setHeader("Cache-Control", "max-age=60");
    waiting!.end("new");
    await waitFor(async () => (await ask(port, "/x")).body.equals(NEW), "the new response");
    assert.equal(count, 2);
    assert.equal(await readDetached(), 1);
    assert.equal(await readMisses(), 1);
  });

  test(`a request that looked before a revalidation ended does not begin another one, on ${runtime.name}`, async (context) => {
    const counts = new Map<string, number>();
    const target = await startUpstream(context, ({ url: path = "" }, response) => {
      const count = (counts.get(path) ?? 0) + 1;
      counts.set(path, count);
      const isNew = count > 1;
      const life = isNew ? "max-age=60" : "max-age=1, stale-while-revalidate=600";
      response.setHeader("Cache-Control", life);
      if (!isNew) response.setHeader("Date", new Date(Date.now() - 5_000).toUTCString());
      response.end(isNew ? "new" : "old");
    });
    const { port } = await gate.use({ routes: [{ prefix: "/", target, cache_ttl_seconds: 60 }] });
    const paths = Array.from({ length: 200 }, (_, at) => `/look/${at}`);
    for (const path of paths) {
      const deadline = Date.now() + 5_000;
      // At once, so that one of them looks while the new response is being stored.
      while (!(await ask(port, path)).body.equals(NEW)) assert.ok(Date.now() < deadline, path);
    }
    const twice = paths.filter((path) => counts.get(path) !== 2);
    assert.deepEqual(twice, []);
  });

  test(`a revalidation repeats the request of its user, and delays no request of its connection, on ${runtime.name}`, async (context) => {
    const received: IncomingMessage[] = [];
    const held: ServerResponse[] = [];
    const target = await startUpstream(context, (incoming, response) => {
      response.setHeader("Cache-Control", "max-age=1, stale-while-revalidate=600");
      response.setHeader("Date", new Date(Date.now() - 5_000).toUTCString());
      received.push(incoming);
      if (incoming.url !== "/own/user" || received.length === 1) response.end("stored");
      else held.push(response);
    });
    const limits = { rate_limit_rpm: 4, max_concurrent_requests: 1, access_log: true };
    const routes = [{ prefix: "/own", target, cache_ttl_seconds: 60, ...limits }];
    const { port } = await gate.use({ auth_token: TOKEN, jwt_secret: SECRET, routes });
    const token = await new SignJWT({ sub: "ada" })
      .setProtectedHeader({ alg: "HS256" })
      .setExpirationTime("5m")
      .sign(Buffer.from(SECRET));
    const headers = { Authorization: `Bearer ${token}`, "X-Own": "kept", Range: "bytes=0-1" };
    await ask(port, "/own/user", { Authorization: headers.Authorization });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    context.after(() => agent.destroy());
    for (const [path, status, text] of [
      ["/own/user", 206, "st"],
      ["/own/other", 200, "stored"],
    ] as const) {
      const sent = request({ host: "127.0.0.1", port, path, headers, agent }).end();
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      let body = "";
      for await (const piece of response.setEncoding("utf8")) body += String(piece);
      assert.deepEqual([response.statusCode, body], [status, text]);
    }
    await waitFor(() => held.length === 1, "the revalidation");
    const again = received.find((incoming, at) => at > 0 && incoming.url === "/own/user")!;
    assert.deepEqual(
      ["x-user-id", "x-own", "range", "x-forwarded-for"].map((name) => again.headers[name]),
      ["ada", "kept", undefined, "127.0.0.1"],
    );
    // Neither the place nor the limit of the route counts it: there have been three requests of clients.
    assert.equal((await ask(port, "/own/more", headers)).status, 200);
    assert.equal((await ask(port, "/own/more", headers)).status, 429);
    held[0]!.end("new");
  });
}

const single = shareGate({ runtime: runtimes[0]!, config: { workers: 1 } });

test("a stale response is used in place of an error while the circuit is open, too", async (context) => {
  let isFailing = false;
  let failures = 0;
  const target = await startUpstream(context, (incoming, response) => {
    if (isFailing && incoming.url === "/outlier") {
      response.writeHead(502).end();
      return;
    }
    if (isFailing) {
      failures++;
      response.destroy();
      return;
    }
    response.setHeader("Cache-Control", "max-age=0, stale-if-error=600");
    response.end("kept");
  });
  const circuit_breaker = { min_requests: 2, open_ms: 600_000, max_open_ms: 600_000 };
  const route = {
    prefix: "/",
    target,
    cache_ttl_seconds: 60,
    circuit_breaker,
    retry: { attempts: 0 },
  };
  const { port, url } = await single.use({
    routes: [
      route,
      { ...route, prefix: "/outlier", circuit_breaker: false, outlier_statuses: [502] },
    ],
  });
  for (const path of ["/stored", "/outlier"]) {
    assert.equal((await ask(port, path)).body.toString(), "kept");
  }
  isFailing = true;
  for (let times = 0; times < 3; times++) {
    assert.equal((await ask(port, "/outlier")).headers["x-cache"], "STALE");
  }
  const ejections = await readMetric(url, "platform_gate_ejections_total");
  assert.equal(ejections, 1, "the upstream's status counts against its health");
  const askStored = async (): Promise<void> => {
    const { status, headers, body } = await ask(port, "/stored");
    assert.deepEqual([status, headers["x-cache"], body.toString()], [200, "STALE", "kept"]);
  };
  await waitFor(async () => {
    await askStored();
    return (await ask(port, "/other")).status === 503;
  }, "an open circuit");
  const before = failures;
  await askStored();
  await askStored();
  assert.equal(failures, before, "nothing was sent upstream");
});

test("more revalidations than a worker has places for keep their clients waiting", async (context) => {
  // More than there are places: two keys may share a flight, and are then revalidated one after another.
  const paths = Array.from({ length: 2 * DETACHED_MAX }, (_, index) => `/${index}`);
  const held: ServerResponse[] = [];
  let isReleased = false;
  let count = 0;
  const target = await startUpstream(context, (_incoming, response) => {
    response.setHeader("Cache-Control", "max-age=1, stale-while-revalidate=600");
    response.setHeader("Date", new Date(Date.now() - 5_000).toUTCString());
    if (++count <= paths.length) response.end("old");
    else if (isReleased) response.end("new");
    else held.push(response);
  });
  const { port, url } = await single.use({
    routes: [{ prefix: "/", target, cache_ttl_seconds: 60 }],
  });
  const readDetached = await followMetric(url, "platform_gate_cache_detached_total");
  for (const path of paths) await ask(port, path);

  // A request beyond the places is sent by its client, which waits for it.
  let waiting: Promise<Answer> | undefined;
  for (const path of paths) {
    const answers: Answer[] = [];
    const asked = ask(port, path);
    const answered = asked.then((answer) => answers.push(answer));
    const isBeyond = (): boolean => held.length > DETACHED_MAX;
    await waitFor(() => answers.length > 0 || isBeyond(), "a stale response or a full worker");
    if (answers.length === 0) {
      waiting = asked;
      break;
    }
    await answered;
    assert.equal(answers[0]!.headers["x-cache"], "STALE", path);
  }
  assert.ok(waiting !== undefined, "a client waits");
  isReleased = true;
  for (const response of held) response.end("new");
  assert.equal((await waiting).body.toString(), "new");
  assert.equal(await readDetached(), DETACHED_MAX);
});

// One runtime is enough for what does not depend on it.
for (const runtime of runtimes.slice(0, 1)) {
  const gate = gates.get(runtime)!;
  const small = shareGate({ runtime, config: { workers: 2, cache_size: SMALL_BYTES } });

  test(`large responses are stored whole, in parts, and for slow readers, on ${runtime.name}`, async (context) => {
    const bytes = randomBytes(3_000_000);
    let count = 0;
    const target = await startUpstream(context, (_incoming, response) => {
      count++;
      response.end(bytes);
    });
    const routes = [{ prefix: "/", target, cache_ttl_seconds: 60 }];
    const { port } = await gate.use({ routes });
    await ask(port, "/large");
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(port, "/large")));
    assert.ok(answers.every(({ body }) => body.equals(bytes)));
    const part = await ask(port, "/large", { Range: "bytes=1000000-2499999" });
    assert.equal(part.status, 206);
    assert.ok(part.body.equals(bytes.subarray(1_000_000, 2_500_000)));
    assert.equal(count, 1);
  });

  test(`a small cache keeps what is used and never mixes responses, on ${runtime.name}`, async (context) => {
    const target = await startUpstream(context, (incoming, response) => {
      response.end(incoming.url!.repeat(2_000));
    });
    const routes = [{ prefix: "/", target, cache_ttl_seconds: 60 }];
    const { port, url } = await small.use({ routes });
    const readEvicted = await followMetric(url, "platform_gate_cache_evicted_total");
    const asks = Array.from({ length: 600 }, (_, index) => `/item/${index % 150}`);
    for (let at = 0; at < asks.length; at += 20) {
      await Promise.all(
        asks.slice(at, at + 20).map(async (path) => {
          const { body } = await ask(port, path);
          assert.equal(body.toString(), path.repeat(2_000));
        }),
      );
    }
    assert.ok((await readEvicted()) > 0);
    assert.ok((await readMetric(url, "platform_gate_cache_bytes")) <= SMALL_BYTES);
  });

  test(`the gateway's own cookie goes to its client and is never stored, on ${runtime.name}`, async (context) => {
    const asked: string[] = [];
    const handle =
      (name: string) =>
      ({ url = "", headers }: IncomingMessage, response: ServerResponse): void => {
        asked.push(url);
        response.setHeader("Cache-Control", url === "/old" ? "max-age=0" : "max-age=60");
        response.setHeader("ETag", '"1"');
        if (url === "/own") response.setHeader("Set-Cookie", "a=b");
        response.statusCode = headers["if-none-match"] === undefined ? 200 : 304;
        response.end(response.statusCode === 200 ? name : undefined);
      };
    const targets = [
      await startUpstream(context, handle("one")),
      await startUpstream(context, handle("two")),
    ];
    const route = { prefix: "/", targets, cache_ttl_seconds: 60, sticky: { cookie: "seat" } };
    const { port } = await gate.use({ routes: [route] });
    const first = await ask(port, "/a");
    assert.match(first.headers["set-cookie"]?.join() ?? "", /^seat=[0-9a-f]{16}; Path=\/;/);
    assert.equal(first.headers["x-cache"], "MISS");
    // Each request has a connection of its own: both workers answer.
    for (const more of await Promise.all(Array.from({ length: 20 }, () => ask(port, "/a")))) {
      assert.deepEqual(
        [more.headers["x-cache"], more.headers["set-cookie"], more.body.toString()],
        ["HIT", undefined, first.body.toString()],
      );
    }
    const cookie = first.headers["set-cookie"]![0]!.split(";")[0]!;
    const seated = await ask(port, "/b", { Cookie: cookie });
    assert.deepEqual([seated.headers["set-cookie"], seated.body], [undefined, first.body]);
    assert.equal((await ask(port, "/b")).headers["x-cache"], "HIT");
    await ask(port, "/old");
    const revalidated = await ask(port, "/old");
    assert.deepEqual(
      [revalidated.status, revalidated.headers["x-cache"], revalidated.headers["set-cookie"]],
      [200, "HIT", undefined],
    );
    // The upstream's cookie still keeps its response out of the store.
    for (let round = 0; round < 2; round++) {
      const own = await ask(port, "/own");
      assert.equal(own.headers["x-cache"], "MISS");
      assert.match(own.headers["set-cookie"]?.join() ?? "", /a=b.*seat=/);
    }
    assert.deepEqual(asked, ["/a", "/b", "/old", "/old", "/own", "/own"]);
    const headers = { Connection: "upgrade", Upgrade: "x" };
    const switching = request({ host: "127.0.0.1", port, path: "/", headers, agent: false }).end();
    const [switched, socket] = (await once(switching, "upgrade")) as [IncomingMessage, Socket];
    socket.destroy();
    assert.match(switched.headers["set-cookie"]?.join() ?? "", /^seat=/);
  });

  test(`responses are invalidated by prefix and by Cache-Tag, on ${runtime.name}`, async (context) => {
    const target = await startUpstream(context, (incoming, response) => {
      response.setHeader("Cache-Tag", `all, tag-${incoming.url!.split("/")[2]}`);
      response.end("x");
    });
    const cached = { target, cache_ttl_seconds: 60 };
    const routes = [
      { prefix: "/", ...cached },
      { prefix: "/notes", ...cached, methods: ["GET"] },
      { prefix: "/notes", target, methods: ["POST"] },
    ];
    const { port } = await gate.use({ routes });
    const paths = ["/shop/1", "/shop/2?q=1", "/shops/3", "/other/1"];
    const listHits = async (): Promise<string[]> => {
      const hits: string[] = [];
      for (const path of paths) {
        if ((await ask(port, path)).headers["x-cache"] === "HIT") hits.push(path);
      }
      return hits;
    };
    await listHits();
    assert.deepEqual(await listHits(), paths);
    const purged = await ask(port, "/api/v1/admin/cache?prefix=/shop", {}, "DELETE");
    assert.deepEqual(JSON.parse(purged.body.toString()), {
      status: "invalidated",
      entries_invalidated: 2,
      prefix: "/shop",
    });
    assert.deepEqual(await listHits(), ["/shops/3", "/other/1"]);
    const tagged = await ask(port, "/api/v1/admin/cache?tag=tag-1", {}, "DELETE");
    assert.equal(JSON.parse(tagged.body.toString()).entries_invalidated, 2);
    assert.deepEqual(await listHits(), ["/shop/2?q=1", "/shops/3"]);
    const all = await ask(port, "/api/v1/admin/cache?prefix=/", {}, "DELETE");
    assert.equal(JSON.parse(all.body.toString()).entries_invalidated, 4);
    for (const query of ["", "?prefix=shop"]) {
      assert.equal((await ask(port, `/api/v1/admin/cache${query}`, {}, "DELETE")).status, 400);
    }
    for (const prefix of ["/caf%C3%A9/a%20b", "/caf%25c3%25a9", "/caf%C3%A9/"]) {
      await ask(port, "/caf%C3%A9/a%20b");
      const { body } = await ask(port, `/api/v1/admin/cache?prefix=${prefix}`, {}, "DELETE");
      assert.equal(JSON.parse(body.toString()).entries_invalidated, 1, prefix);
    }
    await ask(port, "/notes/1");
    assert.equal((await ask(port, "/notes/1")).headers["x-cache"], "HIT");
    await ask(port, "/notes/1", {}, "POST");
    const changed = await ask(port, "/notes/1");
    assert.equal(changed.headers["x-cache"], "MISS", "a route for another method has changed it");
  });

  test(`the use of the cache is shown, on ${runtime.name}`, async (context) => {
    const target = await startUpstream(context, (_incoming, response) => void response.end("x"));
    const { port } = await small.use({
      routes: [{ prefix: "/", target, cache_ttl_seconds: 60 }],
    });
    const readUse = async (): Promise<Record<string, number>> =>
      JSON.parse((await ask(port, "/api/v1/admin/cache")).body.toString()) as never;
    const empty = await readUse();
    assert.deepEqual([empty["entries"], empty["bytes"]], [0, 0]);
    assert.ok(empty["bytes_max"]! <= SMALL_BYTES && empty["bytes_max"]! > 0);
    for (const path of ["/1", "/2", "/1", "/1"]) await ask(port, path);
    const lookups = empty["lookups_total"]! + 4;
    await waitFor(async () => (await readUse())["lookups_total"] === lookups, "four lookups");
    const used = await readUse();
    const grown = (name: string): number => used[name]! - empty[name]!;
    assert.deepEqual([used["entries"], grown("hits_total"), grown("evicted_total")], [2, 2, 0]);
    assert.ok(used["bytes"]! > 0 && used["bytes"]! <= used["bytes_max"]!);
  });

  test(`a user gets only own or public responses, on ${runtime.name}`, async (context) => {
    const target = await startUpstream(context, (incoming, response) => {
      if (incoming.url === "/public") response.setHeader("Cache-Control", "public, max-age=60");
      const { host, "x-forwarded-proto": proto, "x-forwarded-port": sentPort } = incoming.headers;
      if (incoming.url === "/address") response.end([proto, host, sentPort].join(" "));
      else response.end(`for ${String(incoming.headers["x-user-id"])}`);
    });
    const { port } = await gate.use({
      auth_token: TOKEN,
      jwt_secret: SECRET,
      trusted_proxies: ["127.0.0.1"],
      routes: [
        { prefix: "/", target, cache_ttl_seconds: 60 },
        { prefix: "/address", target, cache_ttl_seconds: 60, auth: { type: "none" } },
      ],
    });
    const sign = async (sub: string): Promise<Record<string, string>> => {
      const token = await new SignJWT({ sub })
        .setProtectedHeader({ alg: "HS256" })
        .setIssuedAt()
        .setExpirationTime("5m")
        .sign(Buffer.from(SECRET));
      return { Authorization: `Bearer ${token}` };
    };
    const [one, other] = [await sign("one"), await sign("other")];
    for (const status of ["MISS", "HIT"]) {
      for (const [headers, body] of [
        [one, "for one"],
        [other, "for other"],
      ] as const) {
        const answer = await ask(port, "/own", headers);
        assert.deepEqual([answer.headers["x-cache"], answer.body.toString()], [status, body]);
      }
    }
    await ask(port, "/public", one);
    assert.equal((await ask(port, "/public", other)).body.toString(), "for one");
    assert.equal((await ask(port, "/public")).status, 401);

    // A proxy may pass on what clients claim about the address that they asked for.
    const claims = [
      { Host: "one.test", "X-Forwarded-Host": "shop.test" },
      { Host: "shop.test", "X-Forwarded-Host": "shop.test" },
      { Host: "shop.test", "X-Forwarded-Proto": "https" },
      { Host: "shop.test", "X-Forwarded-Port": "81" },
    ];
    for (const claim of claims) {
      const { body } = await ask(port, "/address", claim);
      const { Host: host, "X-Forwarded-Proto": proto = "http", ...others } = claim;
      const sentPort = others["X-Forwarded-Port"] ?? port;
      assert.equal(body.toString(), `${proto} ${host} ${sentPort}`);
    }
  });

  test(`configuration of the cache that cannot work is refused, on ${runtime.name}`, async () => {
    const { port } = await gate.use({ routes: [] });
    const post = async (route: Record<string, unknown>): Promise<string> => {
      const sent = request({
        host: "127.0.0.1",
        port,
        path: "/api/v1/routes",
        method: "POST",
        headers: { "Content-Type": "application/json" },
        agent: false,
      }).end(JSON.stringify(route));
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      let text = "";
      for await (const piece of response) text += String(piece);
      return `${response.statusCode} ${text}`;
    };
    const target = "http://127.0.0.1:1";
    assert.match(await post({ prefix: "/", target, cache_methods: ["GET"] }), /^4\d\d .*requires/);
    assert.match(
      await post({ prefix: "/", target, cache_ttl_seconds: 1, cache_methods: ["HEAD"] }),
      /^4\d\d .*must contain GET/,
    );
    assert.match(
      await post({ prefix: "/", target, cache_ttl_seconds: 1, cache_methods: ["POST"] }),
      /^4\d\d .*is not allowed/,
    );
    assert.match(
      await post({ prefix: "/", respond: { status: 200 }, cache_ttl_seconds: 1 }),
      /^4\d\d .*is not allowed with respond/,
    );
  });
}

/** An upstream that returns the credentials it got, with Cache-Control and other fields from the query. */
function startMirror(context: TestContext): Promise<string> {
  return startUpstream(context, (incoming, response) => {
    for (const [name, value] of new URL(incoming.url!, "http://x").searchParams) {
      response.setHeader(name, value);
    }
    const { cookie = "", authorization = "" } = incoming.headers;
    response.end(
      `${cookie}|${authorization}|${String(incoming.headers["x-api-key"] ?? incoming.headers["x-auth-token"] ?? "")}`,
    );
  });
}

test("the response to a user's cookie or credential is not stored unless it is for all", async (context) => {
  const target = await startMirror(context);
  const route = { target, cache_ttl_seconds: 60, auth: { type: "none" } };
  const routes = [
    { ...route, prefix: "/" },
    { ...route, prefix: "/any", cache_with_cookies: true },
    {
      ...route,
      prefix: "/lang",
      cache_key_cookies: ["lang"],
      cache_ignore_cookies: ["_ga*", "id"],
    },
    { ...route, prefix: "/sticky", sticky: { cookie: "node" } },
  ];
  const { port } = await single.use({ routes });
  const read = async (path: string, headers: Record<string, string> = {}): Promise<string> => {
    const { headers: fields, body } = await ask(port, path, headers);
    return `${String(fields["x-cache"])} ${body.toString()}`;
  };

  // `/account/x.css`: the upstream ignores the suffix, and the stranger must not get the account.
  for (const headers of [
    { Cookie: "session=ada" },
    { Authorization: "Basic YQ==" },
    { "X-API-Key": "key-of-ada" },
    { "X-Auth-Token": "token-of-ada" },
  ]) {
    const path = `/account/${Object.keys(headers)[0]}.css`;
    assert.match(await read(path, headers), /^MISS .*[ay]/i);
    assert.equal(await read(path), "MISS ||");
    assert.equal(await read(path), "HIT ||");
    // The page of a stranger is not the page of the user.
    assert.match(await read(path, headers), /^MISS .*[ay]/i);
    assert.equal(await read(path), "HIT ||");
  }
  for (const said of [
    "cache-control=public",
    "cache-control=s-maxage%3D60",
    "cdn-cache-control=max-age%3D60",
  ]) {
    assert.equal(await read(`/all?${said}`, { Cookie: "a=1" }), "MISS a=1||");
    assert.equal(await read(`/all?${said}`, { Cookie: "b=2" }), "HIT a=1||");
    assert.equal(await read(`/all?${said}`), "HIT a=1||");
  }
  for (const said of [
    "cache-control=max-age%3D60",
    "cache-control=must-revalidate,max-age%3D60",
    "vary=Accept",
  ]) {
    assert.equal(await read(`/own?${said}`, { Cookie: "a=1" }), "MISS a=1||");
    assert.equal(await read(`/own?${said}`), "MISS ||");
  }
  assert.equal(await read("/any", { Cookie: "a=1" }), "MISS a=1||");
  assert.equal(await read("/any", { Cookie: "b=2" }), "HIT a=1||");
  assert.equal(await read("/any/x", { "X-Auth-Token": "t" }), "MISS ||t");
  assert.equal(await read("/any/x"), "MISS ||");

  assert.equal(await read("/lang", { Cookie: "lang=de; _ga_1=x" }), "MISS lang=de; _ga_1=x||");
  assert.equal(await read("/lang", { Cookie: "id=7; lang=de" }), "HIT lang=de; _ga_1=x||");
  assert.equal(await read("/lang", { Cookie: "lang=fr" }), "MISS lang=fr||");
  assert.equal(await read("/lang"), "MISS ||");
  assert.equal(
    await read("/lang", { Cookie: "lang=de; session=ada" }),
    "MISS lang=de; session=ada||",
  );
  assert.equal(await read("/lang", { Cookie: "lang=de" }), "HIT lang=de; _ga_1=x||");
  assert.equal(await read("/lang", { Cookie: "_ga=1" }), "HIT ||");

  // The gateway's own cookie says nothing about the user.
  assert.match(await read("/sticky", { Cookie: "node=abc" }), /^MISS/);
  assert.match(await read("/sticky", { Cookie: "node=def" }), /^HIT/);
});
