// Direct operations behave like routed ones, for good and bad requests.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { z } from "zod";
import { createRetryLaterError, createUnauthorizedError } from "@platform/kernel/errors";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi, defineDirectRoute, listenHttp, StatusAnswer } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import { createTracer } from "@platform/kernel/trace";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const json = ["Content-Type", "application/json"];
const token = ["Authorization", "Bearer right"];
const trace = ["traceparent", `00-${traceId}-b7ad6b7169203331-01`];

interface Line {
  level: string;
  status: number;
  path: string;
  route: string;
  trace_id: string;
}

async function start(t: TestContext) {
  const lines: Line[] = [];
  const direct: string[] = [];
  const metrics = new MetricRegistry();
  const ids = createIdSource();
  const api = createApi({
    service: "notes",
    version: "1",
    routes: [
      defineDirectRoute({
        method: "POST",
        path: "/api/v1/notes",
        summary: "Take a note",
        body: z.strictObject({ text: z.string().max(20), at: z.int().default(7) }),
        bodyBytesMax: 64,
        status: [201, 202],
        answer: z.object({
          text: z.string(),
          at: z.int().optional(),
          caller: z.string().optional(),
          path: z.string().optional(),
          agent: z.string().nullable().optional(),
        }),
        handle: async ({ body, caller, headers, path }) => {
          if (body.text === "busy") throw createRetryLaterError("overloaded", "Later.", 3);
          if (body.text === "later") return new StatusAnswer(202, { text: "queued" });
          if (body.text === "bug") throw new Error("the password is hunter2");
          return { ...body, caller: caller.kind, path, agent: headers.get("User-Agent") };
        },
      }),
    ],
    guard: ({ headers }) => {
      if (headers.get("authorization") === "Bearer right") return { kind: "operator" };
      throw createUnauthorizedError("Who are you?");
    },
    health: new HealthRegistry({ service: "notes", version: "1" }),
    metrics,
    logger: createLogger({ service: "notes", write: (line) => lines.push(JSON.parse(line)) }),
    tracer: createTracer({ ids, clock: systemClock }),
    clock: systemClock,
  });
  const listener = await listenHttp({
    address: { host: "127.0.0.1", port: 0 },
    fetch: (asked, bindings) => api.fetch(asked, bindings),
    intercept: (asked, answer) => {
      const isTaken = api.intercept(asked, answer);
      if (isTaken) direct.push(asked.url!);
      return isTaken;
    },
  });
  t.after(() => listener.close(100));
  const ask = async (path: string, headers: string[], body: string | Buffer, method = "POST") => {
    const all = ["Host", "localhost", "User-Agent", "t", ...headers];
    const asked = request(`${listener.url}${path}`, { method, headers: all });
    asked.end(body);
    const [answer] = await once(asked, "response");
    const { date: _date, ...rest } = answer.headers;
    return { status: answer.statusCode, headers: rest, body: JSON.parse(await text(answer)) };
  };
  return { ask, lines, direct, metrics, port: listener.port! };
}

const good = '{"text":"hällo"}';
const curlType = "application/x-www-form-urlencoded";
const length = (body: string | Buffer) => ["Content-Length", String(Buffer.byteLength(body))];

const cases: [name: string, status: number, headers: string[], body: string | Buffer][] = [
  ["a good request", 201, [...json, ...token], good],
  ["a repeated header", 401, [...json, ...token, ...token], good],
  ["no credentials", 401, json, good],
  ["no credentials and no JSON", 401, json, "{"],
  ["a wrong member", 400, [...json, ...token], '{"text":5,"more":1}'],
  ["no body", 400, [...json, ...token], ""],
  ["no JSON", 400, [...json, ...token], "{"],
  ["no UTF-8", 400, [...json, ...token], Buffer.from([0x22, 0xff, 0x22])],
  ["a byte order mark", 201, [...json, ...token], `\ufeff${good}`],
  ["another media type", 415, ["Content-Type", "text/plain", ...token], good],
  ["no media type", 201, token, good],
  ["curl's default media type", 201, ["Content-Type", curlType, ...token], good],
  ["a form", 415, ["Content-Type", curlType, ...token], "text=x"],
  ["another charset", 415, ["Content-Type", "application/json; charset=latin1", ...token], good],
  ["another status of the operation", 202, [...json, ...token], '{"text":"later"}'],
  ["a refusal of the operation", 503, [...json, ...token], '{"text":"busy"}'],
  ["a bug of the operation", 500, [...json, ...token], '{"text":"bug"}'],
];

test("direct and routed requests have the same responses, logs and metrics", async (t) => {
  const { ask, lines, direct, metrics } = await start(t);
  for (const [name, status, headers, body] of cases) {
    direct.length = lines.length = 0;
    const all = [...headers, ...length(body), ...trace];
    const short = await ask("/api/v1/notes", all, body);
    assert.deepEqual(direct, ["/api/v1/notes"], name);
    const routed = await ask("/api/v1/notes?way=router", all, body);
    assert.equal(direct.length, 1, name);
    assert.equal(short.status, status, name);
    assert.deepEqual(short, routed, name);
    assert.ok(!JSON.stringify(short).includes("hunter2"));
    const [a, b] = lines.map((line) => [
      line.status,
      line.trace_id,
      line.level,
      line.path,
      line.route,
    ]);
    assert.deepEqual(a, b, name);
    assert.deepEqual(a!.slice(0, 2), [status, traceId], name);
  }
  const counted = /requests_total\{route="\/api\/v1\/notes",method="POST",status="201"\} 8\b/;
  assert.match(await metrics.render(), counted);
});

test("the router handles other methods, larger bodies and bodies without declared length", async (t) => {
  const { ask, direct } = await start(t);
  const long = JSON.stringify({ text: "x".repeat(64) });
  const headers = [...json, ...token];
  assert.equal((await ask("/api/v1/notes", [...headers, ...length(long)], long)).status, 413);
  const chunked = [...headers, "Transfer-Encoding", "chunked"];
  assert.equal((await ask("/api/v1/notes", chunked, good)).status, 201);
  assert.equal((await ask("/api/v1/notes", chunked, long)).status, 413);
  assert.equal((await ask("/api/v1/notes", token, "", "GET")).status, 405);
  assert.equal((await ask("/api/v1/%6eotes", [...headers, ...length(good)], good)).status, 404);
  assert.deepEqual(direct, []);
  const legacy = await ask("/api/notes", [...headers, ...length(good)], good);
  assert.deepEqual([legacy.status, legacy.body.path], [201, "/api/v1/notes"]);
  assert.deepEqual(direct, ["/api/notes"]);
});

test("a client that disconnects during its body ends its request", async (t) => {
  const { lines, port } = await start(t);
  const socket = connect(port, "127.0.0.1");
  const head = ["POST /api/v1/notes HTTP/1.1", "Host: localhost", "Content-Length: 50"];
  socket.write(`${[...head, "Authorization: Bearer right"].join("\r\n")}\r\n\r\n{"te`);
  await once(socket, "ready");
  socket.end();
  await t.waitFor(() => assert.equal(lines[0]?.status, 400), { timeout: 20_000 });
});
