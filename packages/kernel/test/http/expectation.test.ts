// Clients that wait for 100 (Continue) before they send a body (RFC 9110 section 10.1.1), and coded bodies.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { z } from "zod";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import { HealthRegistry } from "@platform/kernel/health";
import {
  createApi,
  defineDirectRoute,
  defineRoute,
  listenHttp,
  NO_BODY,
} from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import { createTracer } from "@platform/kernel/trace";

const body = z.object({ text: z.string() });

async function listen(t: TestContext): Promise<number> {
  const route = { tag: "T", summary: "s", body, answer: body } as const;
  const api = createApi({
    service: "test",
    version: "1.0.0",
    routes: [
      defineRoute({ ...route, method: "POST", path: "/api/v1/notes", handle: (call) => call.body }),
      defineRoute({
        ...route,
        method: "POST",
        path: "/api/v1/late",
        query: z.object({ n: z.literal("1") }),
        // Refuses after its body was read.
        handle: () => {
          throw new PlatformError("conflict");
        },
      }),
      defineRoute({
        method: "PUT",
        path: "/api/v1/bytes",
        tag: "T",
        summary: "s",
        bodyKind: "bytes",
        answer: z.object({ size: z.int() }),
        handle: (call) => ({ size: call.body.length }),
      }),
      defineRoute({
        ...route,
        method: "POST",
        path: "/api/v1/own",
        answer: NO_BODY,
        authorize: () => {
          throw new PlatformError("forbidden");
        },
        handle: () => undefined,
      }),
      defineDirectRoute({
        ...route,
        method: "POST",
        path: "/api/v1/direct",
        handle: (call) => Promise.resolve({ text: call.body.text }),
      }),
    ],
    guard: ({ headers }) => {
      if (headers.get("authorization") !== "Bearer good") throw createUnauthorizedError("no");
      return { kind: "operator" } as never;
    },
    health: new HealthRegistry({ service: "test", version: "1.0.0" }),
    metrics: new MetricRegistry(),
    logger: createLogger({ service: "test", level: "off" }),
    tracer: createTracer({ ids: createIdSource(), clock: systemClock }),
    clock: systemClock,
    bodyBytesMax: 1_000,
  });
  const listener = await listenHttp({
    address: { host: "127.0.0.1", port: 0 },
    fetch: api.fetch,
    intercept: api.intercept,
  });
  t.after(() => listener.close(0));
  return listener.port!;
}

/** Sends a head, the body only after 100, and returns all that was received until the connection ends. */
function exchange(port: number, head: string, content: string, next = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1" }).setEncoding("latin1");
    let received = "";
    socket.on("data", (text: string) => {
      const isInvited = received === "" && text.startsWith("HTTP/1.1 100 Continue\r\n\r\n");
      received += text;
      if (isInvited) socket.write(content + next);
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(received));
    socket.write(head);
  });
}

const GOOD = "Authorization: Bearer good\r\n";
const JSON_TYPE = "Content-Type: application/json\r\n";
const CONTENT = '{"text":"hello"}';

function formatHead(line: string, fields: string, length = CONTENT.length): string {
  return `${line} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n${fields}Content-Length: ${length}\r\n\r\n`;
}

test("requests that are refused by their head get no 100, and their connection closes", async (t) => {
  const port = await listen(t);
  const cases: [status: number, head: string][] = [
    [401, formatHead("POST /api/v1/notes", JSON_TYPE)],
    [401, formatHead("POST /api/v1/direct", JSON_TYPE)],
    [403, formatHead("POST /api/v1/own", GOOD + JSON_TYPE)],
    [404, formatHead("POST /api/v1/none", GOOD + JSON_TYPE)],
    [405, formatHead("DELETE /api/v1/notes", GOOD + JSON_TYPE)],
    [413, formatHead("POST /api/v1/notes", GOOD + JSON_TYPE, 1_001)],
    [413, formatHead("POST /api/v1/direct", GOOD + JSON_TYPE, 1_001)],
    [413, formatHead("PUT /api/v1/bytes", GOOD, 1_001)],
    [415, formatHead("POST /api/v1/notes", `${GOOD}Content-Type: text/plain\r\n`)],
    [415, formatHead("POST /api/v1/direct", `${GOOD}Content-Type: text/plain\r\n`)],
    [415, formatHead("POST /api/v1/notes", `${GOOD}${JSON_TYPE}Content-Encoding: gzip\r\n`)],
    [415, formatHead("PUT /api/v1/bytes", `${GOOD}Content-Encoding: br\r\n`)],
    [400, formatHead("POST /api/v1/late?n=2", GOOD + JSON_TYPE)],
  ];
  for (const [status, head] of cases) {
    const received = await exchange(port, head, CONTENT);
    assert.match(received, new RegExp(`^HTTP/1\\.1 ${status} `), head);
    assert.match(received, /\r\nconnection: close\r\n/i, head);
  }
});

test("the first read of a body sends one 100, and the connection stays open", async (t) => {
  const port = await listen(t);
  const last = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  for (const path of ["notes", "direct", "late?n=1"]) {
    const head = formatHead(`POST /api/v1/${path}`, GOOD + JSON_TYPE);
    const received = await exchange(port, head, CONTENT, last);
    const status = path.startsWith("late") ? 409 : 200;
    assert.match(
      received,
      new RegExp(`^HTTP/1\\.1 100 Continue\r\n\r\nHTTP/1\\.1 ${status} `),
      path,
    );
    assert.equal(received.match(/HTTP\/1\.1 100/g)?.length, 1);
    assert.match(received, /HTTP\/1\.1 200 OK\r\n[^]*"status":"UP"/i);
  }
});

test("clients that do not wait, and requests without a body, are answered as before", async (t) => {
  const port = await listen(t);
  const close = "Connection: close\r\n";
  const eager = formatHead("POST /api/v1/notes", GOOD + JSON_TYPE + close) + CONTENT;
  assert.match(await exchange(port, eager, ""), /HTTP\/1\.1 200 /);
  const empty = formatHead("GET /healthz", close, 0);
  assert.match(await exchange(port, empty, ""), /^HTTP\/1\.1 200 /);
  const old = `POST /api/v1/notes HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\n${GOOD}${JSON_TYPE}Content-Length: ${CONTENT.length}\r\n\r\n${CONTENT}`;
  assert.match(await exchange(port, old, ""), /^HTTP\/1\.1 200 /);
});

test("a coded body is 415 with the codings that are read (RFC 9110 section 15.5.16)", async (t) => {
  const port = await listen(t);
  const send = (path: string, coding: string) =>
    fetch(`http://127.0.0.1:${port}/api/v1/${path}`, {
      method: "POST",
      headers: {
        authorization: "Bearer good",
        "content-type": "application/json",
        "content-encoding": coding,
      },
      body: CONTENT,
    });
  for (const path of ["notes", "direct"]) {
    for (const coding of ["gzip", "identity, br", "x-own"]) {
      const response = await send(path, coding);
      assert.equal(response.status, 415, `${path} ${coding}`);
      assert.equal(response.headers.get("accept-encoding"), "identity");
    }
    assert.equal((await send(path, "identity")).status, 200);
  }
});
