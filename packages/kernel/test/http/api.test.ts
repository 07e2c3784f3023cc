// APIs over real sockets: operations, guard, errors, legacy paths, observability, documentation.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import { HealthRegistry } from "@platform/kernel/health";
import {
  createApi,
  createEtag,
  bytes,
  defineRoute,
  isNotModified,
  listenHttp,
  NO_BODY,
  pageQuery,
  readPage,
  requireIfMatch,
  type Api,
  type HttpListener,
  type PagedList,
} from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { createManualClock, systemClock } from "@platform/kernel/time";
import { createTracer, type FinishedSpan } from "@platform/kernel/trace";

const CURL_TYPE = "application/x-www-form-urlencoded";

const user = z
  .object({ name: z.string().min(1), age: z.number().int().optional() })
  .meta({ id: "User" });
interface Tree {
  children: Tree[];
}
const tree: z.ZodType<Tree> = z.object({ children: z.array(z.lazy(() => tree)) });

const routes = [
  defineRoute({
    method: "POST",
    path: "/api/v1/users",
    summary: "Make a user",
    body: user,
    answer: z.object({ id: z.string(), user }),
    status: 201,
    handle: ({ body, answerHeaders }) => {
      answerHeaders.set("Location", "/api/v1/users/7");
      return { id: "7", user: body };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/api/v1/users/{id}",
    summary: "A user",
    params: z.object({ id: z.string().regex(/^\d+$/, "digits") }),
    query: z.object({ verbose: z.enum(["yes", "no"]).optional() }),
    answer: z.object({ id: z.string(), verbose: z.string() }),
    handle: ({ params, query }) => ({ id: params.id, verbose: query.verbose ?? "unset" }),
  }),
  defineRoute({
    method: "DELETE",
    path: "/api/v1/users/{id}",
    summary: "Remove a user",
    access: (caller) => {
      if (caller.kind !== "operator") throw new PlatformError("forbidden", "operators only");
    },
    answer: NO_BODY,
    handle: () => undefined,
  }),
  defineRoute({
    method: "GET",
    path: "/api/v1/users/me",
    summary: "Oneself",
    access: "public",
    answer: bytes("text/plain"),
    handle: ({ caller }) => caller.kind,
  }),
  defineRoute({
    method: "PUT",
    path: "/api/v1/files/{path*}",
    summary: "Store",
    bodyKind: "bytes",
    bodyBytesMax: 8,
    answer: z.object({ path: z.string(), size: z.number() }),
    handle: ({ params, body }) => ({ path: params["path"]!, size: body.byteLength }),
  }),
  defineRoute({
    method: "GET",
    path: "/api/v1/broken",
    summary: "Fails",
    access: "public",
    answer: z.object({}),
    handle: () => {
      throw new Error("the password is hunter2");
    },
  }),
  defineRoute({
    method: "GET",
    path: "/api/v1/peer",
    summary: "Who asks",
    access: "public",
    answer: z.object({ kind: z.string(), address: z.string().optional() }),
    handle: ({ peer }) => peer,
  }),
  defineRoute({
    method: "GET",
    path: "/api/v1/figures",
    summary: "Asked every few seconds",
    isRoutine: true,
    answer: z.array(z.number()),
    handle: () => [],
  }),
  defineRoute({
    method: "POST",
    path: "/api/v1/trees",
    summary: "A recursive body",
    body: tree,
    answer: z.object({ count: z.int() }),
    handle: ({ body }) => ({ count: body.children.length }),
  }),
];

describe("an API", () => {
  const lines: Record<string, unknown>[] = [];
  const spans: FinishedSpan[] = [];
  const health = new HealthRegistry({ service: "demo", version: "2.0.0", reuseMs: 0 });
  const metrics = new MetricRegistry();
  let api: Api;
  let listener: HttpListener;
  before(async () => {
    api = createApi({
      service: "demo",
      version: "2.0.0",
      routes,
      guard: ({ headers }) => {
        const header = headers.get("authorization");
        if (header === "Bearer op") return { kind: "operator" };
        if (header === "Bearer user") {
          return {
            kind: "user",
            claims: { exp: 1, scope: [], roles: [], all: {} },
          };
        }
        throw createUnauthorizedError("A token is needed.");
      },
      health,
      metrics,
      logger: createLogger({
        service: "demo",
        level: "debug",
        write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
      }),
      tracer: createTracer({
        ids: createIdSource(),
        clock: systemClock,
        exporter: { export: (span) => void spans.push(span), shutdown: async () => {} },
      }),
      clock: createManualClock(),
      bodyBytesMax: 200,
      metricsToken: "metrics-token",
    });
    listener = await listenHttp({ address: { host: "127.0.0.1", port: 0 }, fetch: api.fetch });
  });
  after(() => listener.close(500));

  const ask = (path: string, init: RequestInit = {}, token = "op"): Promise<Response> =>
    fetch(`${listener.url}${path}`, {
      ...init,
      headers: { Authorization: `Bearer ${token}`, ...(init.headers as Record<string, string>) },
    });
  const post = (body: string, headers: Record<string, string> = {}): Promise<Response> =>
    ask("/api/v1/users", {
      method: "POST",
      body,
      headers: { "Content-Type": "application/json", ...headers },
    });
  const problemOf = async (answer: Response): Promise<Record<string, unknown>> => {
    assert.equal(answer.headers.get("content-type"), "application/problem+json");
    return (await answer.json()) as Record<string, unknown>;
  };

  test("an operation receives validated input and responds with its status and headers", async () => {
    const answer = await post('{"name":"ann","extra":1}');
    assert.equal(answer.status, 201);
    assert.equal(answer.headers.get("location"), "/api/v1/users/7");
    assert.deepEqual(await answer.json(), { id: "7", user: { name: "ann" } });
    const found = await ask("/api/v1/users/12?verbose=yes");
    assert.deepEqual(await found.json(), { id: "12", verbose: "yes" });
  });

  test("invalid input is a 400 that lists all errors by location", async () => {
    const answer = await post('{"name":"","age":"x"}');
    assert.equal(answer.status, 400);
    const problem = await problemOf(answer);
    assert.equal(problem["code"], "validation_failed");
    const errors = problem["errors"] as { in: string; path: string; message: string }[];
    assert.deepEqual(
      errors.map(({ message, ...error }) => ({ ...error, hasMessage: message.length > 0 })),
      [
        { in: "body", path: "name", hasMessage: true, code: "too_short", params: { min: 1 } },
        {
          in: "body",
          path: "age",
          hasMessage: true,
          code: "wrong_type",
          params: { expected: "number" },
        },
      ],
    );
    const both = await problemOf(await ask("/api/v1/users/x?verbose=a&verbose=b"));
    assert.deepEqual(
      (both["errors"] as { in: string; path: string }[]).map((error) => [error.in, error.path]),
      [
        ["path", "id"],
        ["query", "verbose"],
      ],
    );
    assert.equal(both["detail"], "path.id: digits (and 1 more)");
    assert.equal(both["error"], both["detail"]);
    assert.equal(both["instance"], "/api/v1/users/x");
  });

  test("a body that is missing, invalid JSON, of another type or not UTF-8 is rejected", async () => {
    const cases: [answer: Response, status: number, code: string][] = [
      [await post(""), 400, "validation_failed"],
      [await post("{"), 400, "bad_request"],
      [await post("{}", { "Content-Type": "text/plain" }), 415, "unsupported_media_type"],
      [await post("a=b", { "Content-Type": CURL_TYPE }), 415, "unsupported_media_type"],
      [await post("{}", { "Content-Type": CURL_TYPE }), 400, "validation_failed"],
      [
        await post("{}", { "Content-Type": "application/json; charset=latin1" }),
        415,
        "unsupported_media_type",
      ],
      [
        await ask("/api/v1/users", {
          method: "POST",
          body: new Uint8Array([0x22, 0xff, 0x22]),
          headers: { "Content-Type": "application/json" },
        }),
        400,
        "bad_request",
      ],
    ];
    for (const [answer, status, code] of cases) {
      assert.equal(answer.status, status);
      assert.equal((await problemOf(answer))["code"], code);
    }
    const typed = await post('{"name":"a"}', {
      "Content-Type": "application/merge-patch+json; charset=UTF-8",
    });
    assert.equal(typed.status, 201);
  });

  test("a body beyond the limit is 413, with declared length or streamed", async () => {
    assert.equal((await post(`{"name":"${"x".repeat(189)}"}`)).status, 201);
    assert.equal((await post(`{"name":"${"x".repeat(190)}"}`)).status, 413);
    const streamed = await ask("/api/v1/users", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: new Blob(["x".repeat(150), "y".repeat(150)]).stream(),
      duplex: "half",
    });
    assert.equal(streamed.status, 413);
    const own = await ask("/api/v1/files/a/b%20c", { method: "PUT", body: "12345678" });
    assert.deepEqual(await own.json(), { path: "a/b c", size: 8 });
    assert.equal((await ask("/api/v1/files/a", { method: "PUT", body: "123456789" })).status, 413);
  });

  test("requests that programs repeat are logged at debug, unless they fail", async () => {
    await ask("/api/v1/figures");
    await ask("/api/v1/figures", {}, "wrong");
    const findLevels = (): unknown[] =>
      lines.filter(({ path }) => path === "/api/v1/figures").map(({ level }) => level);
    const deadline = performance.now() + 5_000;
    while (findLevels().length < 2 && performance.now() < deadline) await sleep(5);
    assert.deepEqual(findLevels(), ["debug", "info"]);
  });

  test("an incomplete body is a client error", async () => {
    const before = lines.length;
    const socket = connect(listener.port!, "127.0.0.1").on("error", () => {});
    socket.end(
      "POST /api/v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer op\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
    );
    const deadline = performance.now() + 20_000;
    while (lines.length === before && performance.now() < deadline) await sleep(5);
    assert.equal(lines[before]?.["status"], 400);
    assert.equal(lines[before]?.["level"], "info");
  });

  test("names of Object.prototype in a body or query are plain data", async () => {
    const answer = await post('{"__proto__":{"polluted":1},"constructor":2,"name":"a"}');
    assert.deepEqual(await answer.json(), { id: "7", user: { name: "a" } });
    assert.equal((await ask("/api/v1/users/1?__proto__=x&toString=y")).status, 200);
    assert.equal(({} as { polluted?: number }).polluted, undefined);
  });

  test("the guard rejects callers with 401, the operation's check with 403", async () => {
    const stranger = await ask("/api/v1/users/1", {}, "wrong");
    assert.equal(stranger.status, 401);
    assert.equal(stranger.headers.get("www-authenticate"), "Bearer");
    assert.equal((await problemOf(stranger))["code"], "unauthorized");
    assert.equal((await ask("/api/v1/users/1", { method: "DELETE" }, "user")).status, 403);
    const done = await ask("/api/v1/users/1", { method: "DELETE" });
    assert.equal(done.status, 204);
    assert.equal(await (await ask("/api/v1/users/me", {}, "wrong")).text(), "anonymous");
  });

  test("metrics and documentation are open to this machine, and guarded for others", async () => {
    const forwarded = { headers: { "X-Forwarded-For": "192.0.2.1" } };
    for (const path of ["/metrics", "/api/docs", "/api/docs/openapi.json"]) {
      assert.equal((await fetch(`${listener.url}${path}`)).status, 200, path);
      assert.equal((await ask(path, forwarded, "wrong")).status, 401, path);
    }
    assert.equal((await ask("/metrics", forwarded, "user")).status, 403);
    const metrics = { headers: { ...forwarded.headers, Authorization: "Bearer metrics-token" } };
    assert.equal((await fetch(`${listener.url}/metrics`, metrics)).status, 200);
    assert.equal((await fetch(`${listener.url}/api/docs`, metrics)).status, 401);
  });

  test("unauthenticated callers receive no validation errors", async () => {
    const answer = await fetch(`${listener.url}/api/v1/users`, { method: "POST", body: "{" });
    assert.equal(answer.status, 401);
  });

  test("the more specific path wins, and its missing methods are taken from the general one", async () => {
    assert.equal(await (await ask("/api/v1/users/me")).text(), "anonymous");
    assert.equal((await ask("/api/v1/users/me", { method: "DELETE" })).status, 204);
  });

  test("an unknown path is 404, a wrong method 405 with Allow, OPTIONS lists the methods", async () => {
    const missing = await ask("/api/v1/nothing?token=secret");
    assert.equal(missing.status, 404);
    const problem = await problemOf(missing);
    assert.equal(problem["instance"], "/api/v1/nothing");
    const wrong = await ask("/api/v1/users/1", { method: "PATCH" });
    assert.equal(wrong.status, 405);
    assert.equal(wrong.headers.get("allow"), "GET, DELETE, HEAD, OPTIONS");
    assert.equal((await ask("/healthz", { method: "POST" })).status, 405);
    const options = await ask("/api/v1/users", { method: "OPTIONS" });
    assert.equal(options.status, 204);
    assert.equal(options.headers.get("allow"), "POST, OPTIONS");
  });

  test("HEAD responds like GET without a body", async () => {
    const answer = await ask("/api/v1/users/1", { method: "HEAD" });
    assert.equal(answer.status, 200);
    assert.equal(await answer.text(), "");
  });

  test("a path without a version means version 1", async () => {
    assert.equal((await ask("/api/users/12")).status, 200);
    assert.equal((await ask("/api/v2/users/12")).status, 404);
  });

  test("an unexpected error is a 500 without details, and a log line with details", async () => {
    const answer = await ask("/api/v1/broken");
    assert.equal(answer.status, 500);
    const text = await answer.text();
    assert.ok(!text.includes("hunter2"));
    const line = lines.find((entry) => entry["msg"] === "request failed")!;
    assert.ok(JSON.stringify(line["error"]).includes("hunter2"));
    assert.equal(line["trace_id"], (JSON.parse(text) as { trace_id: string }).trace_id);
  });

  test("all responses forbid sniffing, framing and caching", async () => {
    for (const path of ["/api/v1/users/1", "/healthz", "/nothing"]) {
      const { headers } = await ask(path);
      assert.equal(headers.get("x-content-type-options"), "nosniff");
      assert.equal(headers.get("x-frame-options"), "DENY");
      assert.equal(headers.get("cache-control"), "no-store");
      assert.match(headers.get("content-security-policy")!, /default-src 'none'/);
    }
  });

  test("probes reflect the health registry and require no credentials", async () => {
    const up = { status: "UP", service: "demo", version: "2.0.0" };
    assert.deepEqual(await (await ask("/healthz", {}, "")).json(), up);
    assert.equal((await ask("/readyz", {}, "")).status, 503);
    health.setState("ready");
    assert.deepEqual(await (await ask("/readyz", {}, "")).json(), up);
  });

  test("requests are counted by pattern, not by path", async () => {
    await ask("/api/v1/users/424242");
    await ask("/random/path");
    const answer = await ask("/metrics");
    assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    const text = await answer.text();
    assert.match(
      text,
      /requests_total\{route="\/api\/v1\/users\/\{id\}",method="GET",status="200"\} \d/,
    );
    assert.match(text, /requests_total\{route="unmatched",method="GET",status="404"\} \d/);
    assert.ok(!text.includes("424242") && !text.includes("random"));
  });

  test("a trace is continued: span, log line and problem share its id", async () => {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, tracestate: "v=1" };
    const answer = await ask("/api/v1/users/x?secret=1", { headers });
    assert.equal((await problemOf(answer))["trace_id"], traceId);
    const span = spans.find((entry) => entry.context.traceId === traceId)!;
    assert.equal(span.name, "GET /api/v1/users/{id}");
    assert.equal(span.kind, "server");
    assert.equal(span.parentSpanId, "00f067aa0ba902b7");
    assert.equal(span.attributes.get("http.response.status_code"), 400);
    const line = lines.find((entry) => entry["trace_id"] === traceId)!;
    assert.equal(line["span_id"], span.context.spanId);
    assert.equal(line["status"], 400);
    assert.equal(line["route"], "/api/v1/users/{id}");
    assert.ok(!JSON.stringify(line).includes("secret"));
  });

  test("the OpenAPI document shows paths, parameters, bodies, components and problems", async () => {
    const document = (await (await ask("/api/docs/openapi.json")).json()) as {
      openapi: string;
      info: object;
      paths: Record<string, Record<string, Record<string, unknown>>>;
      components: { schemas: Record<string, object> };
    };
    assert.equal(document.openapi, "3.1.0");
    assert.deepEqual(document.info, { title: "demo", version: "2.0.0" });
    assert.ok(document.paths["/healthz"]?.["get"]);
    assert.ok(document.paths["/api/v1/files/{path}"]?.["put"]);
    const get = document.paths["/api/v1/users/{id}"]!["get"]!;
    assert.deepEqual(get["parameters"], [
      { name: "id", in: "path", required: true, schema: { type: "string", pattern: "^\\d+$" } },
      {
        name: "verbose",
        in: "query",
        required: false,
        schema: { type: "string", enum: ["yes", "no"] },
      },
    ]);
    const create = document.paths["/api/v1/users"]!["post"]!;
    assert.deepEqual(create["security"], [{ bearer: [] }]);
    assert.ok(document.components.schemas["User"]);
    assert.ok(document.components.schemas["Recursive"]);
    const references = JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g);
    for (const [, reference] of references) {
      const name = /^#\/components\/schemas\/(\w+)$/.exec(reference!)?.[1];
      assert.ok(name !== undefined && name in document.components.schemas, String(reference));
    }
  });

  test("the OpenAPI document shows the declared success of each operation", async () => {
    const { paths } = (await (await ask("/api/docs/openapi.json")).json()) as {
      paths: Record<string, Record<string, { responses: Record<string, { content?: object }> }>>;
    };
    const read = (path: string, method: string) =>
      Object.entries(paths[path]![method]!.responses)
        .filter(([, { content = {} }]) => !("application/problem+json" in content))
        .map(([status, { content = {} }]) => [status, ...Object.keys(content)]);
    assert.deepEqual(read("/api/v1/users", "post"), [["201", "application/json"]]);
    assert.deepEqual(read("/api/v1/users/{id}", "delete"), [["204"]]);
    assert.deepEqual(read("/api/v1/users/me", "get"), [["200", "text/plain"]]);
    assert.deepEqual(read("/readyz", "get"), [
      ["200", "application/json"],
      ["503", "application/json"],
    ]);
  });

  test("the documentation page complies with its own policy and loads no external resources", async () => {
    const answer = await ask("/api/docs");
    const html = await answer.text();
    const policy = answer.headers.get("content-security-policy")!;
    const script = /<script type="module">([^]*?)<\/script>/.exec(html)![1]!;
    const style = /<style>([^]*?)<\/style>/.exec(html)![1]!;
    for (const text of [script, style]) {
      assert.ok(policy.includes(`'sha256-${createHash("sha256").update(text).digest("base64")}'`));
    }
    assert.ok(!/unsafe|https?:/.test(policy));
    assert.ok(!/(?:src|href)="https?:/.test(html) && !script.includes("innerHTML"));
    assert.ok(html.length < 45_000, `${html.length} bytes: fonts are files of their own`);
    const fonts = [...style.matchAll(/url\("([^"]*)"\)/g)].map(([, path]) => path!);
    assert.ok(fonts.length >= 2);
    for (const path of fonts) {
      assert.match(path, /^\/api\/docs\/fonts\/[\w-]+-[0-9a-f]{16}\.woff2$/);
      const font = await ask(path);
      assert.equal(font.status, 200);
      assert.equal(font.headers.get("content-type"), "font/woff2");
      assert.match(font.headers.get("cache-control")!, /max-age=31536000, immutable/);
      const headers = { "x-forwarded-for": "192.0.2.1" };
      const foreign = await fetch(`${listener.url}${path}`, { headers });
      assert.equal(foreign.status, 401, "as private as the page");
    }
    const document = await (await ask("/api/docs/openapi.json")).text();
    assert.ok(!document.includes("/fonts/"), "fonts are no operations");
  });

  test("a duplicate route is rejected when the API is created", () => {
    const twice = defineRoute({
      method: "GET",
      path: "/healthz",
      summary: "",
      answer: NO_BODY,
      handle: () => undefined,
    });
    assert.throws(
      () =>
        createApi({
          service: "x",
          version: "1",
          routes: [twice],
          guard: () => ({ kind: "operator" }),
          health,
          metrics: new MetricRegistry(),
          logger: createLogger({ service: "x", level: "off" }),
          tracer: createTracer({ ids: createIdSource(), clock: systemClock }),
          clock: systemClock,
        }),
      /duplicate route: GET \/healthz/,
    );
  });
});

test("the signal of a handler is aborted when its client disconnects", async () => {
  let gone: Promise<unknown> | undefined;
  let arrived = (): void => {};
  const arrival = new Promise<void>((resolve) => (arrived = resolve));
  const wait = defineRoute({
    method: "GET",
    path: "/api/v1/wait",
    summary: "Waits",
    access: "public",
    answer: NO_BODY,
    handle: async ({ signal }) => {
      gone = new Promise((resolve) => signal.addEventListener("abort", resolve));
      arrived();
      await gone;
    },
  });
  const api = createApi({
    service: "x",
    version: "1",
    routes: [wait],
    guard: () => ({ kind: "operator" }),
    health: new HealthRegistry({ service: "x", version: "1" }),
    metrics: new MetricRegistry(),
    logger: createLogger({ service: "x", level: "off" }),
    tracer: createTracer({ ids: createIdSource(), clock: systemClock }),
    clock: systemClock,
  });
  const listener = await listenHttp({ address: { host: "127.0.0.1", port: 0 }, fetch: api.fetch });
  const abort = new AbortController();
  const asked = fetch(`${listener.url}/api/v1/wait`, { signal: abort.signal });
  await arrival;
  abort.abort();
  await assert.rejects(asked);
  await gone;
  await listener.close(500);
});

describe("entity tags", () => {
  const tag = createEtag("a");
  const headers = (name: string, value: string): Headers => new Headers({ [name]: value });

  test("equal content has the same tag, other content a different one", () => {
    assert.equal(createEtag("a"), tag);
    assert.notEqual(createEtag("b"), tag);
    assert.match(tag, /^"[\w-]{22}"$/);
  });

  test("If-Match accepts the current tag and rejects others with 412", () => {
    requireIfMatch(new Headers(), tag);
    requireIfMatch(headers("if-match", `"x", ${tag}`), tag);
    requireIfMatch(headers("if-match", "*"), tag);
    requireIfMatch(headers("if-match", '"part"'), tag, '"part"');
    requireIfMatch(headers("if-match", tag), tag, '"part"');
    for (const [value, current] of [
      ['"x"', tag],
      [`W/${tag}`, tag],
      ["*", undefined],
      [tag, undefined],
      ["junk", tag],
      [`${"x".repeat(5_000)}${tag}`, tag],
    ] as const) {
      assert.throws(
        () => requireIfMatch(headers("if-match", value), current),
        (error) => error instanceof PlatformError && error.code === "precondition_failed",
        value,
      );
    }
  });

  test("If-None-Match compares weakly", () => {
    assert.ok(isNotModified(headers("if-none-match", `W/${tag}`), tag));
    assert.ok(isNotModified(headers("if-none-match", "*"), tag));
    assert.ok(!isNotModified(headers("if-none-match", '"x"'), tag));
    assert.ok(!isNotModified(new Headers(), tag));
  });
});

describe("pagination", () => {
  const letters: PagedList<string, string> = {
    key: z.string(),
    keyOf: (letter) => letter,
    read: async (limit, after = "") =>
      ["a", "b", "c"].filter((letter) => letter > after).slice(0, limit),
  };

  test("the cursor of a page returns the next one; the last page has no cursor", async () => {
    const first = await readPage({ limit: 2 }, letters);
    assert.deepEqual(first.items, ["a", "b"]);
    const rest = await readPage({ limit: 2, cursor: first.next_cursor! }, letters);
    assert.deepEqual(rest, { items: ["c"], next_cursor: null });
    assert.equal((await readPage({ limit: 3 }, letters)).next_cursor, null);
  });

  test("an invalid cursor is a 400", async () => {
    for (const text of ["", "%%%", "null", '["x",1]', "[1]", "[]"]) {
      const cursor = Buffer.from(text).toString("base64url");
      await assert.rejects(
        readPage({ limit: 2, cursor }, letters),
        (error) => error instanceof PlatformError && error.code === "validation_failed",
      );
    }
  });

  test("the limit is an integer from 1 to 200, 50 by default", () => {
    assert.equal(pageQuery.parse({}).limit, 50);
    assert.equal(pageQuery.parse({ limit: "200" }).limit, 200);
    for (const limit of ["0", "201", "-1", "1.5", "", "x", ["1", "2"]]) {
      assert.ok(!pageQuery.safeParse({ limit }).success, String(limit));
    }
  });
});
