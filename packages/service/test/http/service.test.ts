// A declared service over HTTP: routes, bodies, results, errors, limits, drain.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type } from "arktype";
import { SignJWT } from "jose";
import * as v from "valibot";
import { WebSocket } from "ws";
import { gzipSync } from "node:zlib";
import { z } from "zod";
import {
  cache,
  events,
  files,
  HttpError,
  redirect,
  reply,
  route,
  server,
  webSocket,
  type ServiceRequest,
} from "@platform/service";
import { startTestService } from "@platform/service/testing";
import { waitFor } from "@platform/testing/wait";

const SECRET = "a-secret-of-at-least-thirty-two-bytes!";
const folder = mkdtempSync(join(tmpdir(), "service-"));
mkdirSync(join(folder, "public/sub"), { recursive: true });
writeFileSync(join(folder, "public/hello.txt"), "hello files");
writeFileSync(join(folder, "public/sub/index.html"), "<p>index</p>");
writeFileSync(join(folder, "public/.env"), "SECRET=1");
writeFileSync(join(folder, "secret.txt"), "secret");
symlinkSync(join(folder, "secret.txt"), join(folder, "public/link.txt"));

type Body = NonNullable<RequestInit["body"]>;

let streamsClosed = 0;
let lastSignal: AbortSignal | undefined;
let isLateRunning = false;
const socketLog: string[] = [];

server({ bodyBytesMax: 1_000, timeoutMs: 5_000 });
cache({ ttl: 1 });
route("GET", "/", () => ({ hello: "world" }));
route("GET", "/text", () => "plain");
const zipped = createServer((_, response) => {
  response.setHeader("Content-Encoding", "gzip");
  response.end(gzipSync("unzipped ".repeat(100)));
}).listen(0, "127.0.0.1");
route("GET", "/proxied", () => {
  const { port } = zipped.address() as { port: number };
  return fetch(`http://127.0.0.1:${port}/`);
});
route("GET", "/nothing", () => undefined);
route("GET", "/null", async () => null);
route("GET", "/bytes", () => Buffer.from([1, 2, 3]));
route("GET", "/response", () => new Response("own", { status: 418, headers: { "X-Own": "1" } }));
route("GET", "/reply", () =>
  reply(
    { id: 1 },
    { status: 201, headers: { Location: "/1" }, cookies: { sid: "a b", old: null } },
  ),
);
route("GET", "/redirect", () => redirect("/näxt?a=%2F"));
route("GET", "/items/:id/*", ({ params, query, cookies, headers }) => ({
  params,
  q: query.getAll("q"),
  cookies,
  agent: headers.get("User-Agent"),
}));
route("POST", "/echo", ({ body }) => ({ body }));
route("PUT", "/upload", async ({ body }) => {
  const { file, note } = body as { file: File; note: string };
  return { name: file.name, size: file.size, text: await file.text(), note };
});
route("POST", "/raw", { body: "bytes" }, ({ body }) => ({ bytes: body.length }));
route("POST", "/count", { body: "stream", bodyBytesMax: 5_000_000 }, async ({ body }) => {
  let bytes = 0;
  for await (const chunk of body) bytes += chunk.length;
  return { bytes };
});
const input = {
  zod: z.object({ n: z.number() }),
  valibot: v.object({ n: v.number() }),
  arktype: type({ n: "number" }),
};
route("POST", "/zod", { body: input.zod }, ({ body }) => body.n + 1);
route("POST", "/valibot", { body: input.valibot }, ({ body }) => body.n + 1);
route("POST", "/arktype", { body: input.arktype }, ({ body }) => body.n + 1);
const page = z.object({ page: z.coerce.number().int().min(1).default(1) });
route("GET", "/list", { query: page, summary: "Lists" }, ({ query }) => ({ page: query.page }));
route("GET", "/me", { requires: "notes:read" }, ({ caller }) => ({
  sub: caller.kind === "user" ? caller.claims.sub : null,
}));
route("GET", "/throw", () => {
  throw new Error("secret detail");
});
route("GET", "/reject", async () => {
  throw new HttpError(409, "Taken", { fields: { field: "name" }, headers: { "X-Why": "no" } });
});
route("GET", "/never", { timeoutMs: 200 }, ({ signal }: ServiceRequest) => {
  lastSignal = signal;
  return new Promise(() => {});
});
route("GET", "/late", { timeoutMs: 200 }, async () => {
  isLateRunning = true;
  await sleep(1_000);
  return "too late";
});
const wrong: Record<string, unknown> = { function: () => {}, symbol: Symbol("x"), bigint: 1n };
route("GET", "/wrong/:kind", ({ params }) => wrong[params.kind]);
const thrown: Record<string, unknown> = {
  text: "text",
  null: null,
  undefined: undefined,
  object: { secret: 1 },
  stackless: Object.assign(new Error("no stack"), { stack: 5 }),
};
route("GET", "/thrown/:kind", ({ params }) => {
  throw thrown[params.kind];
});
route("GET", "/getter", () => ({
  get text(): string {
    throw new Error("getter failed");
  },
}));
route("GET", "/then", () => ({
  // oxlint-disable-next-line unicorn/no-thenable -- that is the case
  then: () => {
    throw new Error("then failed");
  },
}));
route("GET", "/settled-twice", () => ({
  // oxlint-disable-next-line unicorn/no-thenable -- that is the case
  then: (resolve: (value: unknown) => void, reject: (error: Error) => void) => {
    resolve("first");
    resolve("second");
    reject(new Error("third"));
  },
}));
route("GET", "/locked", () => {
  const response = new Response("locked");
  response.body!.getReader();
  return response;
});
route(
  "GET",
  "/too-short",
  () => new Response(new Blob(["abc"]).stream(), { headers: { "Content-Length": "10" } }),
);
const cyclic: Record<string, unknown> = {};
cyclic["self"] = cyclic;
route("GET", "/cyclic", () => cyclic);
const used = new Response("once");
route("GET", "/twice", () => used);
route("GET", "/split", () => reply("x", { headers: { "X-A": "1\r\nX-B: 2" } }));
route("GET", "/split-error", async () => {
  throw new HttpError(400, "x", { headers: { "X-A": "1\r\nX-B: 2" } });
});
route("GET", "/lines", async function* () {
  yield { n: 1 };
  yield { n: 2 };
});
route("GET", "/broken", async function* () {
  yield "first";
  await sleep(20);
  throw new Error("source failed");
});
route("GET", "/forever", async function* () {
  try {
    for (let n = 0; ; n++) {
      yield `${n}\n`;
      await sleep(10);
    }
  } finally {
    streamsClosed++;
  }
});
route("GET", "/events", () =>
  events(async function* (signal) {
    yield { data: { n: 1 }, event: "count", id: "7" };
    yield { data: "two\nlines" };
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  }),
);
route("GET", "/socket", () =>
  webSocket({
    open: async (socket) => {
      await sleep(20);
      socket.send("open");
    },
    message: (socket, message) => {
      if (message === "fail") throw new Error("bad message");
      socket.send(typeof message === "string" ? `text ${message}` : `bytes ${message.length}`);
    },
    close: (_, code) => void socketLog.push(`closed ${code}`),
    messageBytesMax: 100,
  }),
);
route("GET", "/assets/*", files(join(folder, "public")));

const app = await startTestService({ env: { PLATFORM_JWT_SECRET: SECRET } });
const wsUrl = `${app.url.replace("http", "ws")}/socket`;
after(async () => {
  await app.stop();
  zipped.close();
  rmSync(folder, { recursive: true });
});

async function json(path: string, init?: RequestInit): Promise<{ status: number; body: unknown }> {
  const answer = await app.fetch(path, init);
  return { status: answer.status, body: await answer.json() };
}

/** Sends a request line that `fetch` would normalize. */
async function sendRaw(line: string): Promise<string> {
  const socket = connect(Number(new URL(app.url).port), "127.0.0.1");
  socket.write(`${line}\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  let text = "";
  for await (const chunk of socket) text += String(chunk);
  return text;
}

test("results become answers by their type", async () => {
  const cases: [path: string, status: number, type: string | null, text: string][] = [
    ["/", 200, "application/json", '{"hello":"world"}'],
    ["/text", 200, "text/plain; charset=utf-8", "plain"],
    ["/nothing", 204, null, ""],
    ["/null", 200, "application/json", "null"],
    ["/bytes", 200, "application/octet-stream", "\x01\x02\x03"],
    ["/response", 418, "text/plain;charset=UTF-8", "own"],
    ["/reply", 201, "application/json", '{"id":1}'],
    ["/lines", 200, "application/x-ndjson", '{"n":1}\n{"n":2}\n'],
  ];
  for (const [path, status, contentType, text] of cases) {
    const answer = await app.fetch(path);
    assert.equal(answer.status, status, path);
    assert.equal(answer.headers.get("content-type"), contentType, path);
    assert.equal(await answer.text(), text, path);
  }
  const answer = await app.fetch("/reply");
  assert.equal(answer.headers.get("location"), "/1");
  assert.deepEqual(answer.headers.getSetCookie(), [
    "sid=a%20b; Path=/; HttpOnly; Secure; SameSite=Lax",
    "old=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax",
  ]);
  const proxied = await app.fetch("/proxied");
  assert.equal(proxied.headers.get("content-encoding"), null);
  assert.equal(await proxied.text(), "unzipped ".repeat(100));
  const moved = await app.fetch("/redirect");
  assert.equal(moved.status, 303);
  assert.equal(moved.headers.get("location"), "/n%C3%A4xt?a=%2F");
});

test("parameters, query, cookies and headers are decoded", async () => {
  const headers = { Cookie: 'a=1; b="x%20y"; a=2', "User-Agent": "me" };
  assert.deepEqual(await json("/items/a%20b/c/d%2Fe?q=1&q=%C3%A9", { headers }), {
    status: 200,
    body: {
      params: { id: "a b", "*": "c/d/e" },
      q: ["1", "é"],
      cookies: { a: "1", b: "x y" },
      agent: "me",
    },
  });
});

test("bodies are parsed by their media type", async () => {
  const post = (body: Body, type?: string): Promise<{ status: number; body: unknown }> =>
    json("/echo", {
      method: "POST",
      body,
      headers: type === undefined ? {} : { "Content-Type": type },
    });
  const cases: [body: Body, type: string | undefined, parsed: unknown][] = [
    ['{"a":[1]}', "application/json", { a: [1] }],
    ['{"a":1}', "application/json; charset=utf-8", { a: 1 }],
    ['{"a":1}', "application/vnd.api+json", { a: 1 }],
    // The default type of `curl -d`.
    ['{"a":1}', "application/x-www-form-urlencoded", { a: 1 }],
    [
      new URLSearchParams([
        ["a", "1"],
        ["b", "x"],
        ["b", "y"],
      ]),
      undefined,
      { a: "1", b: ["x", "y"] },
    ],
    ["text", "text/plain", "text"],
    ['{"__proto__":{"admin":true},"b":1}', "application/json", { b: 1 }],
  ];
  for (const [body, contentType, parsed] of cases) {
    assert.deepEqual(await post(body, contentType), { status: 200, body: { body: parsed } });
  }
  assert.deepEqual(await json("/echo", { method: "POST" }), { status: 200, body: {} });
  const form = new FormData();
  form.set("file", new File(["content"], "a.txt"));
  form.set("note", "x");
  assert.deepEqual(await json("/upload", { method: "PUT", body: form }), {
    status: 200,
    body: { name: "a.txt", size: 7, text: "content", note: "x" },
  });
  assert.deepEqual((await json("/raw", { method: "POST", body: "{no json" })).body, { bytes: 8 });
});

test("malformed and oversized bodies are refused", async () => {
  const cases: [path: string, init: RequestInit, status: number, detail: RegExp][] = [
    [
      "/echo",
      { body: "{", headers: { "Content-Type": "application/json" } },
      400,
      /not valid JSON/,
    ],
    [
      "/echo",
      { body: Buffer.from([0x22, 0xff, 0x22]), headers: { "Content-Type": "application/json" } },
      400,
      /UTF-8/,
    ],
    ["/echo", { body: "x", headers: { "Content-Type": "multipart/form-data" } }, 400, /boundary/],
    [
      "/echo",
      { body: "x", headers: { "Content-Type": "multipart/form-data; boundary=a" } },
      400,
      /malformed/,
    ],
    ["/echo", { body: "x".repeat(1_001) }, 413, /larger than 1000 bytes/],
    [
      "/echo",
      { body: new Blob(["x".repeat(2_000)]).stream(), duplex: "half" },
      413,
      /larger than 1000/,
    ],
  ];
  for (const [path, init, status, detail] of cases) {
    const answer = await json(path, { method: "POST", ...init });
    assert.equal(answer.status, status);
    assert.match((answer.body as { detail: string }).detail, detail);
  }
});

test("a streamed body is not held in memory and may be larger than other bodies", async () => {
  const body = new Blob([Buffer.alloc(3_000_000, "a")]).stream();
  const answer = await json("/count", { method: "POST", body, duplex: "half" });
  assert.deepEqual(answer, { status: 200, body: { bytes: 3_000_000 } });
});

test("schemas of zod, valibot and arktype validate bodies and queries", async () => {
  for (const library of ["/zod", "/valibot", "/arktype"]) {
    const post = (body: unknown): Promise<{ status: number; body: unknown }> =>
      json(library, {
        method: "POST",
        body: JSON.stringify(body),
        headers: { "Content-Type": "application/json" },
      });
    assert.deepEqual(await post({ n: 1 }), { status: 200, body: 2 });
    const refused = (await post({ n: "1" })) as { status: number; body: Record<string, unknown> };
    assert.equal(refused.status, 400);
    assert.equal(refused.body["code"], "validation_failed");
    const [error] = refused.body["errors"] as { in: string; path: string }[];
    assert.deepEqual([error?.in, error?.path], ["body", "n"]);
  }
  assert.deepEqual(await json("/list?page=3"), { status: 200, body: { page: 3 } });
  assert.deepEqual(await json("/list"), { status: 200, body: { page: 1 } });
  assert.equal((await json("/list?page=0")).status, 400);
});

test("routes with scopes admit only valid tokens that have them", async () => {
  const sign = (scope: string, secret = SECRET): Promise<string> =>
    new SignJWT({ scope, sub: "ada" })
      .setProtectedHeader({ alg: "HS256" })
      .setExpirationTime(Math.floor(app.clock.now() / 1_000) + 600)
      .sign(Buffer.from(secret));
  const get = async (token?: string) =>
    json("/me", { headers: token === undefined ? {} : { Authorization: `Bearer ${token}` } });
  assert.equal((await get()).status, 401);
  assert.equal((await get(await sign("notes:write"))).status, 403);
  assert.equal((await get(await sign("notes:read", "x".repeat(32)))).status, 401);
  assert.deepEqual(await get(await sign("other notes:read")), {
    status: 200,
    body: { sub: "ada" },
  });
});

test("unknown paths and methods, HEAD and OPTIONS", async () => {
  assert.equal((await json("/missing")).status, 404);
  const wrongMethod = await app.fetch("/text", { method: "DELETE" });
  assert.equal(wrongMethod.status, 405);
  assert.equal(wrongMethod.headers.get("allow"), "GET, HEAD, OPTIONS");
  const options = await app.fetch("/text", { method: "OPTIONS" });
  assert.deepEqual([options.status, options.headers.get("allow")], [204, "GET, HEAD, OPTIONS"]);
  const head = await app.fetch("/", { method: "HEAD" });
  assert.equal(head.headers.get("content-length"), "17");
  assert.equal(await head.text(), "");
  assert.equal((await app.fetch("/forever", { method: "HEAD" })).status, 200);
  assert.match(await sendRaw("GET /items/../x HTTP/1.1"), /^HTTP\/1\.1 400 /);
  assert.match(await sendRaw("GET /items/%2E%2e/x HTTP/1.1"), /^HTTP\/1\.1 400 /);
});

test("handlers that fail answer 500 with a trace id, the log has the stack, the service continues", async () => {
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const paths = [
    "/throw",
    "/wrong/function",
    "/wrong/symbol",
    "/wrong/bigint",
    "/cyclic",
    "/split",
    "/split-error",
    "/getter",
    "/then",
    "/locked",
    ...Object.keys(thrown).map((kind) => `/thrown/${kind}`),
  ];
  for (const path of paths) {
    const { status, body } = await json(path, { headers: { traceparent } });
    const problem = body as Record<string, unknown>;
    assert.deepEqual(
      [status, problem["code"], problem["trace_id"]],
      [500, "internal", "a".repeat(32)],
      path,
    );
    assert.ok(!JSON.stringify(body).includes("secret detail"));
    const line = app.log.findLast((one) => one["path"] === path);
    assert.deepEqual([line?.["level"], line?.["trace_id"]], ["error", "a".repeat(32)], path);
    assert.match(String(line?.["declared_at"]), /service\.test\.ts:\d+:\d+$/, path);
    assert.match(JSON.stringify(line?.["error"]), /"stack":/, path);
  }
  const conflict = await app.fetch("/reject");
  assert.equal(conflict.headers.get("x-why"), "no");
  const problem = (await conflict.json()) as Record<string, unknown>;
  assert.deepEqual(
    [problem["status"], problem["code"], problem["detail"], problem["field"]],
    [409, "conflict", "Taken", "name"],
  );
  assert.equal(await (await app.fetch("/twice")).text(), "once");
  assert.equal((await json("/twice")).status, 500);
  assert.equal(await (await app.fetch("/settled-twice")).text(), "first");
  assert.equal((await json("/")).status, 200);
});

test("a handler that never answers, or too late, is answered with 500 and its signal aborted", async () => {
  const answers = Promise.all([json("/never"), json("/late")]);
  await waitFor(() => lastSignal !== undefined && isLateRunning);
  app.clock.advance(300);
  const [never, late] = await answers;
  assert.deepEqual([never.status, late.status], [500, 500]);
  assert.match((never.body as { detail: string }).detail, /did not answer within 200 ms/);
  assert.ok(lastSignal?.aborted);
  assert.equal((await json("/")).status, 200);
});

test("a stream that fails breaks the connection, so that it does not look complete", async () => {
  const answer = await app.fetch("/broken");
  await assert.rejects(answer.text());
  await waitFor(() => app.log.some((line) => line["msg"] === "answer broke off"));
  await assert.rejects((await app.fetch("/too-short")).text());
  await waitFor(() => JSON.stringify(app.log.at(-2)).includes("ended after 3 of 10 bytes"));
});

test("the source of a stream is closed when its client disconnects", async () => {
  const before = streamsClosed;
  const abort = new AbortController();
  const answer = await app.fetch("/forever", { signal: abort.signal });
  const reader = answer.body!.getReader();
  await reader.read();
  abort.abort();
  await waitFor(() => streamsClosed === before + 1);
});

test("events are sent as they come", async () => {
  const answer = await app.fetch("/events");
  assert.equal(answer.headers.get("content-type"), "text/event-stream");
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("lines")) text += (await reader.read()).value;
  assert.equal(text, ': open\n\nevent: count\nid: 7\ndata: {"n":1}\n\ndata: two\ndata: lines\n\n');
  await reader.cancel();
});

test("WebSockets are upgraded, messages are handled in order", async () => {
  const socket = new WebSocket(wsUrl);
  const received: string[] = [];
  socket.on("message", (data: Buffer) => received.push(data.toString()));
  await new Promise((resolve) => socket.on("open", resolve));
  socket.send("hi");
  socket.send(Buffer.alloc(3));
  await waitFor(() => received.length === 3);
  assert.deepEqual(received, ["open", "text hi", "bytes 3"]);
  socket.send("fail");
  const [code] = await new Promise<[number]>((resolve) =>
    socket.on("close", (one) => resolve([one])),
  );
  assert.equal(code, 1011);
  await waitFor(() => socketLog.length > 0);
});

test("WebSockets of foreign pages and too large messages are refused", async () => {
  const foreign = new WebSocket(wsUrl, { origin: "https://evil.example" });
  const error = await new Promise<Error>((resolve) => foreign.on("error", resolve));
  assert.match(error.message, /403/);
  assert.equal((await json("/socket")).status, 426);
  const large = new WebSocket(wsUrl);
  large.on("open", () => large.send("x".repeat(101)));
  const code = await new Promise((resolve) => large.on("close", resolve));
  assert.equal(code, 1009);
});

test("files are served with validators and ranges, and only from their folder", async () => {
  const file = await app.fetch("/assets/hello.txt");
  assert.equal(await file.text(), "hello files");
  assert.equal(file.headers.get("content-type"), "text/plain; charset=utf-8");
  const etag = file.headers.get("etag")!;
  const same = await app.fetch("/assets/hello.txt", { headers: { "If-None-Match": etag } });
  assert.equal(same.status, 304);
  const part = await app.fetch("/assets/hello.txt", { headers: { Range: "bytes=6-" } });
  assert.deepEqual([part.status, await part.text()], [206, "files"]);
  assert.equal(part.headers.get("content-range"), "bytes 6-10/11");
  const beyond = await app.fetch("/assets/hello.txt", { headers: { Range: "bytes=99-" } });
  assert.equal(beyond.status, 416);
  assert.equal(await (await app.fetch("/assets/sub/")).text(), "<p>index</p>");
  for (const path of [
    "/assets/.env",
    "/assets/..%2fsecret.txt",
    "/assets/link.txt",
    "/assets/none",
    "/assets/",
  ]) {
    assert.equal((await app.fetch(path)).status, 404, path);
  }
});

test("probes, metrics and documentation need no code", async () => {
  assert.equal(((await json("/healthz")).body as { status: string }).status, "UP");
  assert.equal((await json("/readyz")).status, 200);
  await json("/items/1/2");
  const metrics = await (await app.fetch("/metrics")).text();
  assert.match(
    metrics,
    /platform_http_requests_total\{route="\/items\/:id\/\*",method="GET",status="200"\}/,
  );
  assert.ok(!app.log.some((line) => line["path"] === "/readyz"), "probes do not fill the log");
  assert.match(metrics, /platform_service_cache_entries\{cache="1"\} 0/);
  const forwarded = { headers: { "X-Forwarded-For": "203.0.113.9" } };
  assert.equal((await app.fetch("/metrics", forwarded)).status, 403);
  assert.equal((await app.fetch("/api/docs", forwarded)).status, 403);
  const docs = await (await app.fetch("/api/docs")).text();
  assert.match(docs, /<!doctype html>/);
  const font = /url\("(\/api\/docs\/fonts\/[^"]+)"\)/.exec(docs)![1]!;
  const { status, headers } = await app.fetch(font);
  assert.deepEqual([status, headers.get("content-type")], [200, "font/woff2"]);
  assert.match(headers.get("cache-control") ?? "", /immutable/);
  assert.equal((await app.fetch(font, forwarded)).status, 403);
  const { body } = (await json("/api/docs/openapi.json")) as {
    body: { paths: Record<string, Record<string, Record<string, unknown>>> };
  };
  const list = body.paths["/list"]!["get"]!;
  assert.equal(list["summary"], "Lists");
  assert.equal((list["parameters"] as { name: string }[])[0]!.name, "page");
  assert.ok(JSON.stringify(body.paths["/zod"]).includes('"number"'));
  assert.ok(JSON.stringify(body.paths["/arktype"]).includes('"number"'));
});

test("invalid declarations are refused with a reason", () => {
  const declare =
    (...args: unknown[]) =>
    (): void =>
      (route as (...all: unknown[]) => void)(...args);
  const handler = (): void => {};
  assert.throws(declare("FETCH", "/x", handler), /route FETCH \/x: expected one of GET, POST/);
  assert.throws(
    declare("GET", "/text", handler),
    /declared twice: it exists at .*service\.test\.ts:\d+:\d+/,
  );
  assert.throws(declare("GET", "/healthz", handler), /belongs to the server/);
  assert.throws(declare("GET", "/y", {}), /handler must be a function/);
  assert.throws(declare("GET", "/y", { body: "stream" }, handler), /has no body/);
  assert.throws(declare("POST", "/y", { body: {} }, handler), /body must be a Standard Schema/);
  assert.throws(declare("GET", "/y", { requires: ["a b"] }, handler), /requires must be a scope/);
  assert.throws(
    () => server({}),
    /a service has one server: it is declared at .*service\.test\.ts/,
  );
});

test("a drain finishes requests, ends streams and closes WebSockets", async () => {
  const streamed = await app.fetch("/forever");
  const eventStream = await app.fetch("/events");
  const socket = new WebSocket(wsUrl);
  await new Promise((resolve) => socket.on("open", resolve));
  const closed = new Promise((resolve) => socket.on("close", resolve));
  const waiting = connect(Number(new URL(app.url).port), "127.0.0.1");
  await new Promise((resolve) => waiting.once("connect", resolve));
  const stopped = app.stop();
  // Its request was on the way.
  waiting.write("GET /text HTTP/1.1\r\nHost: localhost\r\n\r\n");
  assert.match(await streamed.text(), /^0\n/);
  assert.match(await eventStream.text(), /two/);
  assert.equal(await closed, 1001);
  let late = "";
  for await (const chunk of waiting) late += String(chunk);
  assert.match(late, /^HTTP\/1\.1 200 OK[^]*Connection: close[^]*plain$/);
  await stopped;
  await assert.rejects(app.fetch("/"));
});
