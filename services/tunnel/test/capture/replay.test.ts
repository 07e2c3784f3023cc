// Captured requests and their replay, over the API of a relay with a real client and a real local service.
import assert from "node:assert/strict";
import { createServer, type AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { checkLoopback } from "@platform/kernel/http";
import { waitFor } from "@platform/testing/wait";
import {
  Cleanup,
  send,
  startLocal,
  startTestClient,
  startTestRelay,
  type PublicResponse,
} from "../fixture/stage.ts";

interface Seen {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

interface Summary {
  id: string;
  method: string;
  path: string;
  status: number;
  state: string;
  error: string;
  replay_of?: string;
}

const cleanup = new Cleanup();
const seen: Seen[] = [];
let port = 0;
let localPort = 0;
let tunnelId = "";
let finish = (): unknown => undefined;

before(async () => {
  localPort = await startLocal(cleanup, (request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      seen.push({ method, url, headers, body: Buffer.concat(pieces).toString() });
      if (url.startsWith("/gzip")) {
        response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
        response.end(gzipSync('{"zipped":true,"password":"p"}'));
      } else if (url.startsWith("/hang")) {
        response.flushHeaders();
        finish = () => response.end();
      } else {
        response.writeHead(url.startsWith("/bad") ? 500 : 201, {
          "content-type": "application/json",
          "set-cookie": "sid=verysecret; Path=/",
        });
        response.end('{"done":true}');
      }
    });
  });
  ({ port } = await startTestRelay(cleanup, { max_ring_buffer: 20 }));
  const client = await startTestClient(cleanup, {
    port,
    tunnels: [{ target: String(localPort), subdomain: "demo" }],
  });
  const [grant] = client.welcomes[0]!.tunnels;
  assert.ok(grant !== undefined && "id" in grant);
  tunnelId = grant.id;
});
after(() => cleanup.run());

function open(path: string, options: Partial<Parameters<typeof send>[0]> = {}) {
  return send({ port, host: `demo.localhost:${port}`, path, ...options });
}

async function api(
  path: string,
  options: Partial<Parameters<typeof send>[0]> = {},
): Promise<PublicResponse & { json: never }> {
  const response = await send({
    port,
    host: `localhost:${port}`,
    path: `/api/v1/tunnels/${tunnelId}${path}`,
    ...options,
  });
  const text = response.body.toString();
  return { ...response, json: (text === "" ? undefined : JSON.parse(text)) as never };
}

async function list(query = ""): Promise<Summary[]> {
  return ((await api(`/requests${query}`)).json as { requests: Summary[] }).requests;
}

async function newest(): Promise<Summary> {
  const [first] = await list();
  assert.ok(first !== undefined);
  return first;
}

function replay(id: string, edits?: object, headers: Record<string, string> = {}) {
  return api(`/replay/${id}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    ...(edits === undefined ? {} : { body: JSON.stringify(edits) }),
  });
}

describe("captured requests", () => {
  test("are listed newest first, with what the specification names", async () => {
    await open("/one");
    await open("/bad?token=abc", { method: "DELETE" });
    const [second, first] = await list();
    assert.equal(first?.path, "/one");
    assert.deepEqual(
      [second?.method, second?.path, second?.status, second?.state],
      ["DELETE", "/bad?token=[redacted]", 500, "complete"],
    );
    assert.match((second as unknown as { timestamp: string }).timestamp, /^\d{4}-.*Z$/);
    assert.equal(typeof (second as unknown as { latency_ms: number }).latency_ms, "number");
  });

  test("are shown whole, without credentials", async () => {
    await open("/login?api_key=k1", {
      method: "POST",
      headers: {
        authorization: "Bearer s3cr3t",
        cookie: "sid=verysecret",
        "content-type": "application/json",
      },
      body: '{"user":"ada","password":"hunter2"}',
    });
    const { id } = await newest();
    const { body, json } = await api(`/requests/${id}`);
    const detail = json as {
      request: { headers: [string, string][]; body: { text: string } };
      response: { status: number; headers: [string, string][]; body: { text: string } };
    };
    assert.equal(detail.request.body.text, '{"user":"ada","password":"[redacted]"}');
    assert.equal(detail.response.status, 201);
    assert.equal(detail.response.body.text, '{"done":true}');
    assert.ok(detail.request.headers.some(([name]) => name.toLowerCase() === "authorization"));
    const har = await api(`/requests/${id}?format=har`);
    for (const text of [body.toString(), har.body.toString()]) {
      assert.doesNotMatch(text, /s3cr3t|verysecret|hunter2|k1/);
    }
  });

  test("compressed bodies are shown as text", async () => {
    await open("/gzip");
    const { json } = await api(`/requests/${(await newest()).id}`);
    const { response } = json as { response: { body: { text: string; decoded: string } } };
    assert.equal(response.body.text, '{"zipped":true,"password":"[redacted]"}');
    assert.equal(response.body.decoded, "gzip");
  });

  test("are found by status, method and text", async () => {
    await open("/needle", { method: "PUT", body: "in a hAystack" });
    assert.deepEqual(
      (await list("?q=haystack%20method:put")).map(({ path }) => path),
      ["/needle"],
    );
    assert.ok((await list("?q=status:5xx")).every(({ status }) => status === 500));
    assert.equal((await list("?q=nowhere-to-be-found")).length, 0);
  });

  test("an answer of the relay itself is captured with its code", async () => {
    const dead = createServer();
    await new Promise<void>((resolve) => {
      dead.listen(0, "127.0.0.1", resolve);
    });
    const { port: deadPort } = dead.address() as AddressInfo;
    await new Promise((resolve) => dead.close(resolve));
    const client = await startTestClient(cleanup, {
      port,
      key: "another-client-key-0123456789",
      tunnels: [{ target: String(deadPort), subdomain: "dead" }],
    });
    const [grant] = client.welcomes[0]!.tunnels;
    assert.ok(grant !== undefined && "id" in grant);
    await send({ port, host: `dead.localhost:${port}` });
    const response = await send({
      port,
      host: `localhost:${port}`,
      path: `/api/v1/tunnels/${grant.id}/requests`,
    });
    const { requests } = JSON.parse(response.body.toString()) as { requests: Summary[] };
    assert.deepEqual([requests[0]?.status, requests[0]?.error], [502, "target_refused"]);
  });

  test("an open request is listed before it ends", async () => {
    const pending = open("/hang");
    const find = async () => (await list()).find(({ path }) => path === "/hang");
    await waitFor(async () => (await find())?.status === 200);
    assert.equal((await find())?.state, "open");
    finish();
    await pending;
    await waitFor(async () => (await find())?.state === "complete");
  });

  test("HAR 1.2 has the fields that importers require", async () => {
    const { json, headers } = await api("/requests?format=har");
    const { log } = json as {
      log: { version: string; entries: { request: Record<string, unknown>; timings: unknown }[] };
    };
    assert.equal(log.version, "1.2");
    assert.match(headers["content-disposition"] ?? "", /^attachment/);
    const [entry] = log.entries;
    for (const key of ["method", "url", "httpVersion", "headers", "queryString", "cookies"]) {
      assert.ok(key in entry!.request, key);
    }
    assert.match(String(entry!.request["url"]), /^http:\/\/demo\.localhost:\d+\//);
  });
});

describe("replay", () => {
  test("sends the same bytes again, through the tunnel, and is captured", async () => {
    const sent = {
      authorization: "Bearer s3cr3t",
      "x-webhook": "v1",
      "content-type": "text/plain",
    };
    await open("/hook?token=abc", { method: "POST", headers: sent, body: "payload" });
    const original = await newest();
    const first = seen.at(-1)!;
    const { status, json } = await replay(original.id);
    assert.equal(status, 200);
    const answer = json as { status: string; response_status: number; request_id: string };
    assert.equal(answer.status, "replayed");
    assert.equal(answer.response_status, 201);
    const again = seen.at(-1)!;
    assert.notEqual(again, first);
    assert.deepEqual(
      [again.method, again.url, again.body, again.headers["authorization"]],
      ["POST", "/hook?token=abc", "payload", "Bearer s3cr3t"],
    );
    assert.equal(again.headers["x-webhook"], "v1");
    assert.equal(again.headers["host"], first.headers["host"]);
    assert.equal(again.headers["x-platform-tunnel-replay"], original.id);
    const captured = await newest();
    assert.deepEqual(
      [captured.id, captured.replay_of, captured.status],
      [answer.request_id, original.id, 201],
    );
  });

  test("applies edits, and hidden values in them keep their place", async () => {
    await open("/a?token=abc", {
      method: "POST",
      headers: { authorization: "Bearer s3cr3t", "content-type": "application/json" },
      body: '{"password":"p","n":1}',
    });
    const { id } = await newest();
    const { status, body } = await replay(id, {
      method: "PUT",
      path: "/b?token=[redacted]&x=1",
      headers: [
        ["Authorization", "Bearer [redacted]"],
        ["Content-Type", "application/json"],
        ["Content-Length", "99999"],
        ["Transfer-Encoding", "chunked"],
      ],
      body: '{"password":"[redacted]","n":2}',
    });
    assert.equal(status, 200, body.toString());
    const { method, url, headers, body: received } = seen.at(-1)!;
    assert.deepEqual(
      [method, url, received],
      ["PUT", "/b?token=abc&x=1", '{"password":"p","n":2}'],
    );
    assert.equal(headers["authorization"], "Bearer s3cr3t");
    assert.equal(headers["transfer-encoding"], undefined);
  });

  test("is never taken for a request of this machine, whatever is edited away", async () => {
    await open("/plain");
    const { id } = await newest();
    assert.equal((await replay(id, { headers: [["Host", "localhost"]] })).status, 200);
    const { headers } = seen.at(-1)!;
    const getHeader = (name: string) => headers[name]?.toString();
    const peer = { kind: "tcp", address: "127.0.0.1" } as const;
    assert.equal(checkLoopback({ peer, getHeader }).allowed, false, JSON.stringify(headers));
  });

  test("invalid edits are refused with what is wrong", async () => {
    await open("/plain");
    const { id } = await newest();
    const count = seen.length;
    const cases: [object, RegExp][] = [
      [{ headers: [["X-A", "a\r\nX-B: c"]] }, /body\.headers\.0\.1/],
      [{ headers: [["X A", "a"]] }, /body\.headers\.0\.0/],
      [{ path: "no-slash" }, /body\.path/],
      [{ path: "/a HTTP/1.1\r\nX: y" }, /body\.path/],
      [{ method: "GET /x" }, /body\.method/],
      [{ method: "CONNECT" }, /CONNECT/],
      [
        {
          headers: [
            ["Host", "a"],
            ["host", "b"],
          ],
        },
        /two Host/,
      ],
      [{ path: "/?token=[redacted]" }, /path: \[redacted\]/],
      [{ body: "a", body_base64: "YQ==" }, /cannot be combined/],
      [{ other: 1 }, /body/],
    ];
    for (const [edits, detail] of cases) {
      const { status, json } = await replay(id, edits);
      assert.equal(status, 400, JSON.stringify(edits));
      assert.match((json as { detail: string }).detail, detail);
    }
    assert.equal(seen.length, count);
  });

  test("a body that was captured only in part needs a new one", async () => {
    await open("/large", { method: "POST", body: Buffer.alloc(200_000, "a") });
    const { id } = await newest();
    assert.equal((await replay(id)).status, 409);
    assert.equal((await replay(id, { body: "short" })).status, 200);
    assert.equal(seen.at(-1)!.body, "short");
  });

  test("a WebSocket handshake is not replayed", async () => {
    await open("/ws", {
      headers: { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
    });
    assert.equal((await replay((await newest()).id)).status, 409);
  });

  test("pages of other origins cannot replay", async () => {
    await open("/plain");
    const { id } = await newest();
    for (const headers of [
      { origin: "http://evil.example" },
      { origin: `http://demo.localhost:${port}` },
      { "sec-fetch-site": "same-site" },
    ]) {
      assert.equal((await replay(id, undefined, headers)).status, 403);
    }
  });

  test("unknown requests and tunnels are 404", async () => {
    assert.equal((await replay("none")).status, 404);
    const other = await send({
      port,
      host: `localhost:${port}`,
      path: "/api/v1/tunnels/none/requests",
    });
    assert.equal(other.status, 404);
  });
});

test("tunnels of other subjects are not shown, and replay is their owner's alone", async () => {
  const relay = await startTestRelay(cleanup, {
    auth_token: "ada:token-of-ada,bob:token-of-bob,operator-token",
  });
  const client = await startTestClient(cleanup, {
    port: relay.port,
    token: "token-of-ada",
    tunnels: [{ target: String(localPort), subdomain: "ada" }],
  });
  const [grant] = client.welcomes[0]!.tunnels;
  assert.ok(grant !== undefined && "id" in grant);
  await send({ port: relay.port, host: `ada.localhost:${relay.port}`, path: "/private" });
  const call = (token: string, path: string, method = "GET", headers = {}) =>
    send({
      port: relay.port,
      host: `localhost:${relay.port}`,
      path: `/api/v1/tunnels/${grant.id}${path}`,
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
  const own = await call("token-of-ada", "/requests");
  const { requests } = JSON.parse(own.body.toString()) as { requests: Summary[] };
  assert.ok(requests[0] !== undefined);
  assert.equal(requests[0].path, "/private");
  const count = seen.length;
  for (const [path, method] of [
    ["/requests", "GET"],
    [`/requests/${requests[0].id}`, "GET"],
    [`/replay/${requests[0].id}`, "POST"],
    ["/share", "POST"],
    ["/shares", "GET"],
  ] as const) {
    assert.equal((await call("token-of-bob", path, method)).status, 404, path);
  }
  assert.equal(seen.length, count);
  assert.equal((await call("operator-token", "/requests")).status, 200);
  const foreign = { origin: "http://evil.example", "content-type": "application/json" };
  for (const path of [`/replay/${requests[0].id}`, "/share"]) {
    assert.equal((await call("token-of-ada", path, "POST", foreign)).status, 403);
  }
  assert.equal(seen.length, count);
});
