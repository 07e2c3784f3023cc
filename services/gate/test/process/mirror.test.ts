// Mirroring at the real gateway: the mirror gets what the upstream gets, and never affects a response.
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { runtimesOfRules } from "../fixture/gate-process.ts";
import { followMetric } from "../fixture/metrics.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate } from "../fixture/shared-gate.ts";

interface Seen {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

async function startServer(context: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  return await serve(context, server);
}

/** A server that keeps what it gets; `respond` ends the response. */
async function startRecorder(context: TestContext, respond: RequestListener) {
  const seen: Seen[] = [];
  const url = await startServer(context, (request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      const { method = "", url: path = "", headers } = request;
      seen.push({ method, url: path, headers, body });
      respond(request, response);
    });
  });
  return { seen, url };
}

/** Fields that differ between two connections. */
function withoutConnection({ headers, ...rest }: Seen) {
  const {
    connection: _connection,
    "content-length": length,
    "transfer-encoding": coding,
    ...own
  } = headers;
  return { ...rest, headers: own, hasBody: length !== undefined || coding !== undefined };
}

for (const runtime of runtimesOfRules) {
  const shared = shareGate({ runtime, config: { workers: 1 } });

  test(`a mirror gets the requests of the upstream, body included (${runtime.name})`, async (context) => {
    const upstream = await startRecorder(context, (_request, response) => response.end("real"));
    const mirror = await startRecorder(context, (_request, response) => {
      response.writeHead(500).end("mirror");
    });
    const gate = await shared.use({
      auth_token: "the-operator-token",
      routes: [
        {
          prefix: "/api",
          target: `${upstream.url}/base`,
          strip_prefix: true,
          request_headers: { set: { "X-Env": "prod" } },
          mirror: { target: mirror.url, max_body_size: 1_000 },
        },
      ],
    });
    const ask = async (path: string, init: RequestInit = {}): Promise<string> => {
      const headers = { Authorization: "Bearer the-operator-token" };
      const answer = await fetch(`${gate.url}${path}`, { ...init, headers });
      assert.equal(answer.status, 200);
      return answer.text();
    };
    assert.equal(await ask("/api/a%20b?x=1"), "real");
    await waitFor(() => mirror.seen.length === 1, "the mirror gets the request");
    assert.equal(await ask("/api/form", { method: "POST", body: "a=1&b=é" }), "real");
    await waitFor(() => mirror.seen.length === 2, "the mirror gets the body");
    assert.equal(
      await ask("/api/stream", {
        method: "PUT",
        body: new Blob(["x".repeat(500)]).stream(),
        duplex: "half",
      }),
      "real",
    );
    await waitFor(() => mirror.seen.length === 3, "the mirror gets the streamed body");
    assert.deepEqual(
      mirror.seen.map((seen) => withoutConnection(seen)),
      upstream.seen.map((seen) => withoutConnection(seen)),
    );
    assert.equal(mirror.seen[0]!.url, "/base/a%20b?x=1");
    assert.equal(mirror.seen[0]!.headers["x-env"], "prod");
    assert.equal(mirror.seen[0]!.headers.authorization, undefined);
    // A body above the limit is forwarded but not mirrored.
    assert.equal(await ask("/api/large", { method: "POST", body: "x".repeat(2_000) }), "real");
    const count = async (name: string): Promise<number> => {
      const text = await ask("/metrics");
      return Number(new RegExp(`^platform_gate_${name}_total (\\d+)`, "m").exec(text)?.[1]);
    };
    await waitFor(
      async () => (await count("mirror_skipped")) === 1,
      "the skipped request is counted",
    );
    await waitFor(async () => (await count("mirrored")) === 3, "the others are counted");
    assert.equal(mirror.seen.length, 3);
  });

  test(`a mirror that hangs or is down delays nothing (${runtime.name})`, async (context) => {
    const target = await startServer(context, (_request, response) => response.end("real"));
    const hanging = await startRecorder(context, () => undefined);
    const other = await startRecorder(context, (_request, response) => response.end());
    const gate = await shared.use({
      routes: [
        { prefix: "/hanging", target, mirror: { target: hanging.url } },
        { prefix: "/other", target, mirror: { target: other.url } },
        { prefix: "/down", target, mirror: { target: "http://127.0.0.1:1" } },
      ],
    });
    const readSkipped = await followMetric(gate.url, "platform_gate_mirror_skipped_total");
    const readFailed = await followMetric(gate.url, "platform_gate_mirror_failed_total");
    const ask = async (path: string): Promise<void> => {
      assert.equal(await (await fetch(`${gate.url}${path}`)).text(), "real");
    };
    await Promise.all(Array.from({ length: 20 }, () => ask("/down")));
    // More than the places of a worker.
    for (let round = 0; round < 6; round++) {
      await Promise.all(Array.from({ length: 25 }, () => ask("/hanging")));
    }
    assert.ok((await readSkipped()) > 0);
    assert.ok(hanging.seen.length <= 128);
    await ask("/other");
    await waitFor(() => other.seen.length === 1, "the mirror of another route");
    await waitFor(async () => (await readFailed()) >= 20, "failures are counted");
  });

  test(`the share of mirrored requests is that of the configuration (${runtime.name})`, async (context) => {
    const target = await startServer(context, (_request, response) => response.end("real"));
    const mirror = await startRecorder(context, (_request, response) => response.end());
    const route = { prefix: "/", target, mirror: { target: mirror.url, percent: 20 } };
    const gate = await shared.use({ routes: [route] });
    for (let round = 0; round < 8; round++) {
      await Promise.all(Array.from({ length: 25 }, async () => (await fetch(gate.url)).text()));
    }
    // 40 are expected, with a standard deviation of 6.
    await waitFor(() => mirror.seen.length > 10, "most copies have arrived");
    assert.ok(mirror.seen.length < 90, `${mirror.seen.length} of 200`);
  });
}
