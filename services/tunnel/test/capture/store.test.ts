// The rings of captured requests: eviction, memory, and what is kept of a message.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CaptureStore } from "../../src/capture/capture-store.ts";
import { parseRequest, parseResponse } from "../../src/capture/message.ts";
import { RawMessage } from "../../src/capture/raw-message.ts";
import type { RequestTap } from "../../src/capture/tap.ts";
import type { TunnelRow } from "../../src/database/schema.ts";

const HEAD = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n";

function begin(store: CaptureStore, tunnelId: string, path = "/"): RequestTap {
  const tunnel = { id: tunnelId } as TunnelRow;
  return store.begin({ tunnel, method: "GET", path, client: "::1", startedAt: 0 });
}

function raw(...parts: (string | Buffer)[]): RawMessage {
  const message = new RawMessage();
  for (const part of parts) message.add(Buffer.from(part as string, "latin1"));
  return message;
}

test("a full ring evicts its oldest request, and only its own", () => {
  const store = new CaptureStore({ requestsMax: 3, bytesMax: 1_000_000 });
  begin(store, "quiet", "/q");
  for (let index = 0; index < 10; index++) begin(store, "busy", `/${index}`);
  const paths = store.list("busy").map((entry) => entry.begun.path);
  assert.deepEqual(paths, ["/9", "/8", "/7"]);
  assert.equal(store.list("quiet").length, 1);
  assert.equal(store.size, 4);
});

test("when the memory is used up, the tunnel that holds the most loses its oldest requests", () => {
  const store = new CaptureStore({ requestsMax: 1_000, bytesMax: 1_000_000 });
  const small = begin(store, "quiet");
  small.onRequestBytes(Buffer.alloc(1_000));
  for (let index = 0; index < 50; index++) {
    begin(store, "busy").onRequestBytes(Buffer.alloc(90_000));
    assert.ok(store.bytes <= 1_000_000);
  }
  assert.equal(store.list("quiet").length, 1);
  begin(store, "quiet").onRequestBytes(Buffer.alloc(90_000));
  assert.equal(store.list("quiet").length, 2);
  const kept = store.list("busy").length;
  assert.ok(kept >= 8 && kept <= 11, String(kept));
  store.forget("busy");
  store.forget("quiet");
  assert.equal(store.bytes, 0);
  assert.equal(store.size, 0);
});

test("long paths count", () => {
  const store = new CaptureStore({ requestsMax: 1_000, bytesMax: 1_000_000 });
  for (let index = 0; index < 100; index++) begin(store, "a", `/${"x".repeat(30_000)}`);
  assert.ok(store.size > 20 && store.size < 34, String(store.size));
  store.forget("a");
  assert.equal(store.bytes, 0);
});

test("bytes of an evicted or ended request are ignored", () => {
  const store = new CaptureStore({ requestsMax: 1, bytesMax: 1_000_000 });
  const evicted = begin(store, "a");
  const ended = begin(store, "a");
  evicted.onRequestBytes(Buffer.alloc(50_000));
  ended.onEnd({
    status: 200,
    latencyMs: 1,
    isComplete: true,
    errorCode: "",
    bytesIn: 0,
    bytesOut: 0,
  });
  const before = store.bytes;
  ended.onResponseBytes(Buffer.alloc(50_000));
  assert.equal(store.bytes, before);
});

test("after a retry the request begins again", () => {
  const store = new CaptureStore({ requestsMax: 1, bytesMax: 1_000_000 });
  const tap = begin(store, "a");
  tap.onRequestBytes(Buffer.from(`${HEAD}ab`));
  tap.onRestart();
  tap.onRequestBytes(Buffer.from(`${HEAD}abcd`));
  const entry = store.find("a", tap.id)!;
  assert.equal(parseRequest(entry.request)?.content.toString(), "abcd");
});

test("bytes of a WebSocket are not captured", () => {
  const store = new CaptureStore({ requestsMax: 1, bytesMax: 1_000_000 });
  const tap = begin(store, "a");
  for (const part of ["HTTP/1.", "1 101 Switching Protocols\r\n\r\n"])
    tap.onResponseBytes(Buffer.from(part));
  tap.onResponseBytes(Buffer.from("secret frames"));
  assert.doesNotMatch(store.find("a", tap.id)!.response.bytes.toString(), /secret/);
});

test("messages are parsed however they arrived in parts", () => {
  const text = `${HEAD}abcd`;
  for (let at = 1; at < text.length; at++) {
    const message = parseRequest(raw(text.slice(0, at), text.slice(at)));
    assert.equal(message?.content.toString(), "abcd");
    assert.equal(message?.isComplete, true);
  }
});

test("a body that broke off or was cut is marked, in each framing", () => {
  const cases: [string, string, boolean][] = [
    ["Content-Length: 4\r\n\r\nabc", "abc", false],
    ["Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc", true],
    ["Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nd", "abcd", false],
    ["\r\nabc", "abc", true],
  ];
  for (const [text, content, isComplete] of cases) {
    const message = parseResponse(raw(`HTTP/1.1 200 OK\r\n${text}`), "GET");
    assert.equal(message?.content.toString(), content, text);
    assert.equal(message?.isComplete, isComplete, text);
  }
  const large = raw(`HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n`, Buffer.alloc(500_000));
  const message = parseResponse(large, "GET");
  assert.equal(message?.content.length, 65_536);
  assert.equal(message?.isComplete, false);
  assert.ok(large.capacity <= 110_000);
});

test("informational heads are skipped, and HEAD, 204 and 304 have no body", () => {
  const hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
  const final = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
  assert.equal(parseResponse(raw(hint, final), "GET")?.startLine, "HTTP/1.1 200 OK");
  assert.equal(parseResponse(raw(final), "HEAD")?.isComplete, true);
  assert.equal(parseResponse(raw(hint), "GET"), undefined);
});
