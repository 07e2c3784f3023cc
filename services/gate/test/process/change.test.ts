// The gateway as a process: changes through API, file and signal while it runs, and what is left of them afterwards.
import assert from "node:assert/strict";
import {
  Agent,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
  createServer,
  request,
} from "node:http";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate } from "../fixture/shared-gate.ts";
import { listInternalRoutes } from "../../src/http/internal-routes.ts";

async function startUpstream(
  context: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(answer);
  return await serve(context, server);
}

/** One request on a connection of its own, so that any worker may get it. */
function ask(
  url: string,
  options: RequestOptions & { body?: unknown } = {},
): Promise<{ status: number; text: string; headers: IncomingMessage["headers"] }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent: new Agent({ keepAlive: false }), ...options }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, text, headers: answer.headers }),
      );
      answer.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(options.body === undefined ? undefined : JSON.stringify(options.body));
  });
}

for (const runtime of runtimesOfRules) {
  const shared = shareGate({ runtime, config: { workers: 4 } });

  test(`${runtime.name}: acknowledged changes of the API survive kill -9`, async (context) => {
    const target = await startUpstream(context, (_request, response) => response.end("up"));
    const folder = makeFolder(context);
    const config = {
      workers: 1,
      routes: [
        { prefix: "/file", target },
        { prefix: "/gone", target },
      ],
    };
    const first = await startGate(context, { runtime, folder, config });
    const routes = `${first.url}/api/v1/routes`;
    await ask(routes, { method: "POST", body: { prefix: "/api-made", target } });
    await ask(`${routes}?prefix=/gone`, { method: "DELETE" });
    first.signal("SIGKILL");
    assert.equal((await first.ended).signal, "SIGKILL");

    const second = await startGate(context, { runtime, folder, config });
    assert.equal((await ask(`${second.url}/api-made/x`)).text, "up");
    assert.equal((await ask(`${second.url}/file`)).text, "up");
    assert.equal((await ask(`${second.url}/gone`)).status, 502);
    await ask(`${second.url}/api/v1/routes?prefix=/api-made`, { method: "DELETE" });
    await ask(`${second.url}/api/v1/routes`, { method: "POST", body: { prefix: "/gone", target } });
    assert.ok(!existsSync(join(folder, "gate.json.overlay.json")), "nothing differs from the file");
    second.signal("SIGTERM");
    assert.equal((await second.ended).code, 0);
  });

  test(`${runtime.name}: every worker has applied a change when it is acknowledged`, async (context) => {
    const targets = await Promise.all(
      ["one", "two"].map((name) =>
        startUpstream(context, (_request, response) => response.end(name)),
      ),
    );
    const gate = await shared.use({ routes: [] });
    for (let round = 0; round < 12; round++) {
      const target = targets[round % 2] ?? assert.fail();
      const set = await ask(`${gate.url}/api/v1/routes`, {
        method: "POST",
        body: { prefix: "/r", target },
      });
      assert.equal(set.status, 200, set.text);
      const seen = await Promise.all(Array.from({ length: 8 }, () => ask(`${gate.url}/r`)));
      const wanted = round % 2 === 0 ? "one" : "two";
      assert.deepEqual(
        seen.map(({ text }) => text),
        seen.map(() => wanted),
      );
    }
    const removed = await ask(`${gate.url}/api/v1/routes?prefix=/r`, { method: "DELETE" });
    assert.equal(removed.status, 200);
    const gone = await Promise.all(Array.from({ length: 8 }, () => ask(`${gate.url}/r`)));
    assert.ok(gone.every(({ status }) => status === 502));
  });

  test(`${runtime.name}: SIGHUP applies a valid file, and changes nothing for an invalid one`, async (context) => {
    const target = await startUpstream(context, (_request, response) => response.end("up"));
    const gate = await shared.use({ routes: [{ prefix: "/a", target }] });
    const path = join(shared.folder, "gate.json");
    writeFileSync(path, '{"routes": [{"prefix": "/b"}]}');
    gate.signal("SIGHUP");
    const refusal = await gate.waitForLine((line) => /nothing has changed/.test(line.msg));
    assert.match(String(refusal["reason"]), /gate\.json:1:13: routes\[0\]\.target: is required/);
    assert.equal((await ask(`${gate.url}/a`)).text, "up");
    writeFileSync(path, JSON.stringify({ addr: ":1", routes: [{ prefix: "/b", target }] }));
    gate.signal("SIGHUP");
    await gate.waitForLine(
      (line) => line.msg === "configuration reloaded" && line["caller"] === "SIGHUP",
    );
    assert.equal((await ask(`${gate.url}/b`)).text, "up");
    assert.equal((await ask(`${gate.url}/a`)).status, 502);
  });

  test(`${runtime.name}: identity_fields of the file are cut from requests, other fields pass`, async (context) => {
    const target = await startUpstream(context, ({ rawHeaders }, response) =>
      response.end(rawHeaders.join("\n")),
    );
    const headers = { "X-User": "root", "X-Me": "me", X_Me: "me" };
    for (const [config, cut, kept] of [
      [{}, "X-User", "X-Me"],
      [{ identity_fields: ["x-me"] }, /X.Me/, "X-User"],
    ] as const) {
      const routes = [{ prefix: "/", target }];
      const gate = await shared.use({ ...config, routes });
      const { status, text } = await ask(gate.url, { headers });
      assert.equal(status, 200);
      assert.doesNotMatch(text, new RegExp(cut));
      assert.match(text, new RegExp(kept));
    }
  });

  test(`${runtime.name}: with a token all internal routes except probes require it`, async (context) => {
    const token = "0123456789abcdef0123456789abcdef";
    const gate = await startGate(context, {
      runtime,
      config: { workers: 1, routes: [{ prefix: "/", target: "http://127.0.0.1:1" }] },
      env: { PLATFORM_GATE_AUTH_TOKEN: token },
    });
    for (const { path, match, access } of listInternalRoutes("all")) {
      const url = `${gate.url}${path}${match === "below" ? "x" : ""}`;
      const closed = await ask(url);
      const wrong = await ask(url, { headers: { authorization: `Bearer ${token}x` } });
      const open = await ask(url, { headers: { authorization: `Bearer ${token}` } });
      if (["admin", "metrics", "document"].includes(access)) {
        assert.deepEqual([closed.status, wrong.status], [401, 401], path);
        assert.match(String(closed.headers["www-authenticate"]), /^Bearer/);
        assert.ok(open.status !== 401 && open.status !== 403, path);
        // Below a collection, 404 is the answer to an id that does not exist.
        assert.ok(open.status !== 404 || match === "below", path);
      } else {
        assert.notEqual(closed.status, 401, path);
      }
      assert.doesNotMatch(closed.text + open.text, new RegExp(token));
    }
    const audit = await ask(`${gate.url}/api/v1/routes`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: { prefix: "/new", target: "http://127.0.0.1:1" },
    });
    assert.equal(audit.status, 200);
    const line = await gate.waitForLine((it) => it["audit"] === true);
    assert.equal(line["caller"], "operator");
    assert.ok(!JSON.stringify(gate.lines()).includes(token));
  });

  test(`${runtime.name}: without a token the internal routes are available only to programs on this machine`, async () => {
    const gate = await shared.use({ routes: [] });
    const url = `${gate.url}/api/v1/routes`;
    assert.equal((await ask(url)).status, 200);
    const foreign: Record<string, string>[] = [
      { host: "gate.example.com" },
      { "x-forwarded-for": "127.0.0.1" },
      { forwarded: "for=127.0.0.1" },
      { origin: "http://evil.example" },
      { "sec-fetch-site": "cross-site" },
    ];
    for (const headers of foreign) {
      assert.equal((await ask(url, { headers })).status, 403, JSON.stringify(headers));
    }
  });

  test(`${runtime.name}: a drain finishes active requests, cleans up, and exits with 0`, async (context) => {
    const arrived = Promise.withResolvers<ServerResponse>();
    const target = await startUpstream(context, (_request, response) => arrived.resolve(response));
    const folder = makeFolder(context);
    const gate = await startGate(context, {
      runtime,
      folder,
      env: { TMPDIR: folder },
      config: { workers: 2, routes: [{ prefix: "/", target }] },
    });
    const slow = ask(`${gate.url}/slow`);
    const response = await arrived.promise;
    gate.signal("SIGTERM");
    await gate.waitForLine((line) => line.msg === "stopping");
    await delay(100);
    response.end("finished");
    assert.equal((await slow).text, "finished");
    const { code, stderr } = await gate.ended;
    assert.deepEqual([code, stderr], [0, ""]);
    await assert.rejects(ask(`${gate.url}/healthz`), /ECONNREFUSED/);
    assert.deepEqual(readdirSync(folder), ["gate.json"]);
  });

  test(`${runtime.name}: live metrics are sent through a WebSocket once a second`, async (context) => {
    const target = await startUpstream(context, (_request, response) => response.end("up"));
    const gate = await shared.use({ routes: [{ prefix: "/a", target }] });
    const socket = new WebSocket(`ws://127.0.0.1:${gate.port}/api/v1/admin/metrics/ws`);
    context.after(() => socket.terminate());
    const updates: Record<string, unknown>[] = [];
    const done = Promise.withResolvers<void>();
    socket.on("error", done.reject);
    socket.on("message", (data: Buffer) => {
      updates.push(JSON.parse(data.toString()) as Record<string, unknown>);
      if (updates.length === 1) void ask(`${gate.url}/a`);
      if (updates.length === 3) done.resolve();
    });
    await done.promise;
    assert.deepEqual(Object.keys(updates[0] ?? {}), [
      "timestamp",
      "total_requests",
      "total_errors",
      "request_rate",
      "error_rate",
      "active_connections",
      "p50_ms",
      "p99_ms",
      "cache_hit_ratio",
      "breakers",
    ]);
    assert.deepEqual(updates.at(-1)?.["active_connections"], { [target]: 0 });
    assert.ok(Number(updates.at(-1)?.["total_requests"]) >= 1);
    assert.equal((await ask(`${gate.url}/api/v1/admin/metrics/ws`)).status, 426);
  });

  test(`${runtime.name}: admin_addr moves the internal routes except probes from the main listener`, async (context) => {
    const target = await startUpstream(context, (_request, response) => response.end("up"));
    const gate = await startGate(context, {
      runtime,
      config: { workers: 1, admin_addr: "127.0.0.1:0", routes: [{ prefix: "/", target }] },
    });
    const admin = `http://127.0.0.1:${gate.ports["admin"]}`;
    assert.equal((await ask(`${gate.url}/api/v1/routes`)).text, "up");
    assert.equal((await ask(`${gate.url}/readyz`)).status, 200);
    assert.equal((await ask(`${admin}/readyz`)).status, 200);
    assert.equal(JSON.parse((await ask(`${admin}/api/v1/routes`)).text).length, 1);
    assert.equal((await ask(`${admin}/elsewhere`)).status, 502);
    const set = await ask(`${admin}/api/v1/routes`, {
      method: "POST",
      body: { prefix: "/b", target: `${target}/x` },
    });
    assert.equal(set.text, "route /b registered\n");
    const reload = await ask(`${admin}/api/v1/admin/reload`, { method: "POST" });
    assert.equal(reload.status, 200, reload.text);
  });
}
