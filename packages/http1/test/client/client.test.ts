// Forwarding fields and request IDs: values that upstreams receive, and claims of clients that are trusted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AddressSet } from "@platform/kernel/network";
import { HeadWriter, Parse, RequestParser } from "@platform/http1";
import { ForwardingFields } from "../../src/client/forwarding-fields.ts";
import { HexPool, RequestIds } from "../../src/client/request-ids.ts";

function parse(lines: string[]): RequestParser {
  const parser = new RequestParser();
  const bytes = Buffer.from(["GET / HTTP/1.1", ...lines, "", ""].join("\r\n"), "latin1");
  assert.equal(parser.execute(bytes, 0, bytes.length), Parse.Complete);
  return parser;
}

const CLIENT = { remoteAddress: "203.0.113.9", localPort: 8080, secure: false };

test("forwarding fields of untrusted clients are replaced", () => {
  const fields = new ForwardingFields();
  const head = parse([
    "Host: a.example:8080",
    "X-Forwarded-For: 127.0.0.1",
    "X-Forwarded-Proto: https",
    "Forwarded: for=127.0.0.1",
  ]);
  fields.read(CLIENT, head, new AddressSet([]));
  assert.equal(fields.clientAddress, "203.0.113.9");
  assert.equal(
    fields.lines.toString(),
    'X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Port: 8080\r\nX-Forwarded-Host: a.example:8080\r\nForwarded: for=203.0.113.9;host="a.example:8080";proto=http\r\n',
  );
});

test("the fields follow the Host of each request, and a reload of trusted proxies", () => {
  const fields = new ForwardingFields();
  const nobody = new AddressSet([]);
  fields.read(CLIENT, parse(["Host: a"]), nobody);
  const first = fields.lines;
  fields.read(CLIENT, parse(["Host: a"]), nobody);
  assert.equal(fields.lines, first);
  fields.read(CLIENT, parse(["Host: b"]), nobody);
  assert.match(fields.lines.toString(), /X-Forwarded-Host: b\r\n/);
  assert.equal(fields.origin, "http 8080");
  const head = parse(["Host: b", "X-Forwarded-For: 198.51.100.7"]);
  fields.read(CLIENT, head, new AddressSet(["203.0.113.0/24"]));
  assert.equal(fields.clientAddress, "198.51.100.7");
  fields.read(CLIENT, head, nobody);
  assert.equal(fields.clientAddress, "203.0.113.9");
});

test("the values of a trusted proxy are kept in both forms, and the proxy is appended", () => {
  const fields = new ForwardingFields();
  const head = parse([
    "Host: inner",
    "X-Forwarded-For: 198.51.100.1",
    "X-Forwarded-For: 203.0.113.77",
    "X-Forwarded-Proto: HTTPS",
    "X-Forwarded-Host: outer.example",
    "X-Forwarded-Port: 443",
    "Forwarded: for=198.51.100.1;proto=https",
  ]);
  const peer = { remoteAddress: "2001:db8::5", localPort: 80, secure: false };
  fields.read(peer, head, new AddressSet(["2001:db8::/32", "203.0.113.0/24"]));
  assert.equal(fields.clientAddress, "198.51.100.1");
  assert.deepEqual([fields.host, fields.origin], ["outer.example", "https 443 inner  "]);
  assert.equal(
    fields.lines.toString(),
    'X-Forwarded-For: 198.51.100.1, 203.0.113.77, 2001:db8::5\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 443\r\nX-Forwarded-Host: outer.example\r\nForwarded: for=198.51.100.1;host="outer.example";proto=https, for=203.0.113.77, for="[2001:db8::5]";host="inner";proto=http\r\n',
  );
  const spoofed = parse(["Host: inner", 'Forwarded: for="[::1]:1";by=x, for=2;host="evil"']);
  fields.read(peer, spoofed, new AddressSet(["2001:db8::/32"]));
  assert.equal(fields.clientAddress, "2001:db8::5", "2 is no address");
});

function readIds(lines: string[]): { ids: RequestIds; sent: string } {
  const ids = new RequestIds();
  ids.read(parse(["Host: a", ...lines]).fields, new HexPool());
  const writer = new HeadWriter();
  writer.begin();
  ids.write(writer);
  return { ids, sent: writer.view().toString("latin1") };
}

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

test("a trace continues with a new span, its state and its sampling", () => {
  const { ids, sent } = readIds([
    `traceparent: 00-${TRACE}-${SPAN}-00`,
    "tracestate: a=1",
    "tracestate: b=2",
    "X-Request-Id: req-1",
  ]);
  assert.equal(ids.traceId, TRACE);
  assert.equal(ids.parentSpanId, SPAN);
  assert.notEqual(ids.spanId, SPAN);
  assert.equal(ids.isSampled, false);
  assert.equal(
    sent,
    `traceparent: 00-${TRACE}-${ids.spanId}-00\r\nX-Request-Id: req-1\r\ntracestate: a=1,b=2\r\n`,
  );
});

test("without a valid traceparent a new, sampled trace starts and the state is dropped", () => {
  const broken = [
    "",
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-01-x`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00_${TRACE}-${SPAN}-01`,
    `0x-${TRACE}-${SPAN}-01`,
  ];
  for (const value of broken) {
    const { ids, sent } = readIds([`traceparent: ${value}`, "tracestate: a=1"]);
    assert.match(
      sent,
      /^traceparent: 00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01\r\nX-Request-Id: [0-9a-f]{32}\r\n$/,
      value,
    );
    assert.notEqual(ids.traceId, TRACE);
    assert.equal(ids.parentSpanId, "");
    assert.equal(ids.isSampled, true);
  }
  const twice = readIds([
    `traceparent: 00-${TRACE}-${SPAN}-01`,
    `traceparent: 00-${TRACE}-${SPAN}-01`,
  ]);
  assert.notEqual(twice.ids.traceId, TRACE);
});

test("a later version of traceparent is read like version 00 and sent as version 00", () => {
  const { sent } = readIds([`traceparent: cc-${TRACE}-${SPAN}-01-what-comes`]);
  assert.match(sent, new RegExp(`^traceparent: 00-${TRACE}-[0-9a-f]{16}-01\r\n`));
});

test("an invalid request ID is replaced", () => {
  for (const value of ["", "two words", "x".repeat(129), "t\tab", "\u00e9"]) {
    const { ids, sent } = readIds([`X-Request-Id: ${value}`]);
    assert.match(ids.requestId, /^[0-9a-f]{32}$/);
    assert.ok(sent.includes(`X-Request-Id: ${ids.requestId}\r\n`));
  }
});

test("IDs do not repeat after the pool is refilled", () => {
  const pool = new HexPool();
  const ids = new RequestIds();
  const { fields } = parse(["Host: a"]);
  const seen = new Set<string>();
  for (let request = 0; request < 2_000; request++) {
    ids.read(fields, pool);
    assert.equal(ids.requestId, ids.traceId);
    seen.add(ids.traceId).add(ids.spanId);
  }
  const { fields: inTrace } = parse(["Host: a", `traceparent: 00-${TRACE}-${SPAN}-01`]);
  for (let request = 0; request < 2_000; request++) {
    ids.read(inTrace, pool);
    seen.add(ids.spanId).add(ids.requestId);
  }
  assert.equal(seen.size, 8_000);
});
