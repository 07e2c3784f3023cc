// The view of a request head, reuse of the parser, limits, and the properties of splitting.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  Framing,
  Known,
  Method,
  Parse,
  type RequestLimits,
  RequestParser,
  TargetForm,
} from "../../src/parse/index.ts";
import { SeenConnection } from "./connection.ts";

function parse(text: string, limits: RequestLimits = {}): RequestParser {
  const parser = new RequestParser(limits);
  const bytes = Buffer.from(text, "latin1");
  parser.execute(bytes, 0, bytes.length);
  return parser;
}

test("a head in the middle of a chunk is not copied, and next points after it", () => {
  const bytes = Buffer.from(
    "junkGET /a%20b/c?x=1&y HTTP/1.1\r\nHost: a.example:80\r\nX-A:  1 \r\n\r\nrest",
  );
  const parser = new RequestParser();
  assert.equal(parser.execute(bytes, 4, bytes.length), Parse.Complete);
  assert.equal(parser.bytes, bytes);
  assert.equal(bytes.toString("latin1", parser.next), "rest");
  assert.equal(parser.methodId, Method.GET);
  assert.equal(parser.method, "GET");
  assert.equal(parser.pathString(), "/a%20b/c");
  assert.equal(parser.queryString(), "x=1&y");
  assert.equal(parser.hostString(), "a.example:80");
  assert.deepEqual(
    [...parser.fields.entries()],
    [
      ["Host", "a.example:80"],
      ["X-A", "1"],
    ],
  );
  assert.equal(
    bytes.toString("latin1", parser.fields.start, parser.fields.end),
    "Host: a.example:80\r\nX-A:  1 \r\n",
  );
});

test("keep copies a whole head from the chunk, including ranges", () => {
  const bytes = Buffer.from(
    "..POST http://a.example/p?q HTTP/1.1\r\nHost: a.example\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n",
  );
  const parser = new RequestParser();
  parser.execute(bytes, 2, bytes.length);
  parser.keep();
  bytes.fill(0);
  assert.equal(parser.method, "POST");
  assert.equal(parser.targetString(), "http://a.example/p?q");
  assert.equal(parser.pathString(), "/p");
  assert.equal(parser.queryString(), "q");
  assert.equal(parser.hostString(), "a.example");
  assert.equal(parser.fields.get(Known.Cookie), "a=1; b=2");
});

test("the four target forms", () => {
  const forms: [string, number, string, string | undefined][] = [
    ["GET / HTTP/1.1\r\nHost: h\r\n\r\n", TargetForm.Origin, "/", undefined],
    ["GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", TargetForm.Absolute, "", undefined],
    ["GET HTTPS://H?x HTTP/1.1\r\nHost: h\r\n\r\n", TargetForm.Absolute, "", "x"],
    ["OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", TargetForm.Asterisk, "", undefined],
    ["CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", TargetForm.Authority, "", undefined],
  ];
  for (const [text, form, path, query] of forms) {
    const parser = parse(text);
    assert.equal(parser.refusal, null, text);
    assert.deepEqual(
      [parser.targetForm, parser.pathString(), parser.queryString()],
      [form, path, query],
      text,
    );
  }
});

test("Connection determines reuse, upgrades and nominated fields", () => {
  const cases: [string, boolean, boolean, string[]][] = [
    ["GET / HTTP/1.1\r\nHost: h\r\n", true, false, []],
    ["GET / HTTP/1.0\r\nHost: h\r\n", false, false, []],
    ["GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", true, false, []],
    ["GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n", false, false, []],
    ["GET / HTTP/1.1\r\nHost: h\r\nConnection: CLOSE\r\n", false, false, []],
    [
      "GET / HTTP/1.1\r\nHost: h\r\nConnection: ,, x-b ,\r\nConnection: close\r\nX-A: 1\r\nX-B: 2\r\nx-b: 3\r\n",
      false,
      false,
      ["X-B", "x-b"],
    ],
    ["GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", true, true, []],
    ["GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n", true, false, []],
    ["GET / HTTP/1.0\r\nUpgrade: websocket\r\nConnection: upgrade\r\n", false, false, []],
  ];
  for (const [text, keepAlive, upgrade, nominated] of cases) {
    const parser = parse(`${text}\r\n`);
    assert.equal(parser.refusal, null, text);
    assert.deepEqual([parser.keepAlive, parser.upgrade], [keepAlive, upgrade], text);
    const indexes = Array.from({ length: parser.fields.count }, (_, index) => index);
    const names = indexes.filter((index) => parser.fields.isNominated(index));
    assert.deepEqual(
      names.map((index) => parser.fields.name(index)),
      nominated,
      text,
    );
  }
});

test("framing, length and expectation", () => {
  const cases: [string, number, number, boolean][] = [
    ["", Framing.None, 0, false],
    ["Content-Length: 0\r\n", Framing.None, 0, false],
    ["Content-Length: 9007199254740991\r\n", Framing.Length, 9007199254740991, false],
    ["Transfer-Encoding: Chunked\r\nExpect: 100-Continue\r\n", Framing.Chunked, 0, true],
    ["Expect: 100-continue\r\n", Framing.None, 0, false],
    ["Content-Length: 0\r\nExpect: 100-continue\r\n", Framing.None, 0, true],
  ];
  for (const [lines, framing, length, expect] of cases) {
    const parser = parse(`POST / HTTP/1.1\r\nHost: h\r\n${lines}\r\n`);
    assert.deepEqual(
      [parser.framing, parser.contentLength, parser.expectContinue],
      [framing, length, expect],
      lines,
    );
  }
});

test("an expectation in HTTP/1.0 and unknown expectations are ignored", () => {
  for (const [minor, expect, isInvited] of [
    [0, "Expect: 100-continue", false],
    [1, "Expect: wonders", false],
    [1, "Expect:", false],
    [1, "Expect: wonders\r\nExpect: 100-continue", true],
  ] as const) {
    const text = `POST / HTTP/1.${minor}\r\nHost: h\r\n${expect}\r\nContent-Length: 1\r\n\r\n`;
    const parser = parse(text);
    assert.deepEqual([parser.refusal, parser.expectContinue], [null, isInvited], text);
  }
});

test("names with underscores are reported as aliases and not found as the real field", () => {
  const { fields } = parse(
    "GET / HTTP/1.1\r\nHost: h\r\nX_Forwarded-For: 1\r\nX-Forwarded-For: 2\r\n\r\n",
  );
  assert.equal(fields.hasAlias, true);
  assert.deepEqual([fields.isAlias(1), fields.isAlias(2)], [true, false]);
  assert.deepEqual(
    [fields.knownAt(1), fields.knownAt(2)],
    [Known.XForwardedFor, Known.XForwardedFor],
  );
  assert.equal(fields.get(Known.XForwardedFor), "2");
});

test("lower-case entries contain all lines, with aliases as sent", () => {
  const parser = parse(
    "GET / HTTP/1.1\r\nHOST: H\r\nX_Forwarded_Host: A\r\nx-forwarded-HOST: B\r\nX-Any: C\r\n\r\n",
  );
  const lower = [...parser.fields.entries()].map(([name, value]) => [name.toLowerCase(), value]);
  assert.deepEqual([...parser.fields.lowerEntries()], lower);
  assert.deepEqual(lower[1], ["x_forwarded_host", "A"]);
});

test("a reused parser retains nothing of the previous request", () => {
  const first = Buffer.from(
    `POST /a?b HTTP/1.0\r\nHost: h\r\nConnection: x-c, keep-alive\r\nX-C: 1\r\nTransfer-Coding: 1\r\nContent-Length: 3\r\n${"Via: x\r\n".repeat(60)}\r\n`,
  );
  const second = Buffer.from("GET / HTTP/1.1\r\nHost: i\r\nX-D: 1\r\nX-E: 2\r\n\r\n");
  const reused = new RequestParser();
  for (const size of [first.length, 5]) {
    for (let at = 0; at < first.length; at += size)
      reused.execute(first, at, Math.min(first.length, at + size));
    assert.equal(reused.fields.count, 65);
    reused.reset();
    assert.equal(reused.begun, false);
    assert.equal(reused.execute(second, 0, second.length), Parse.Complete);
    const fresh = new RequestParser();
    fresh.execute(second, 0, second.length);
    const view = ({
      methodId,
      minor,
      framing,
      contentLength,
      keepAlive,
      queryStart,
      fields,
    }: RequestParser): unknown => [
      methodId,
      minor,
      framing,
      contentLength,
      keepAlive,
      queryStart,
      [...fields.entries()],
      Object.values(Known).map((known) => fields.first(known)),
      [0, 1, 2].map((index) => [
        fields.isNominated(index),
        fields.isAlias(index),
        fields.next(index),
      ]),
    ];
    assert.deepEqual(view(reused), view(fresh));
    reused.reset();
  }
});

test("a reused parser retains no name of a line with a refused value", () => {
  const reused = new RequestParser();
  const refused = Buffer.from("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \x01\r\n\r\n");
  assert.equal(reused.execute(refused, 0, refused.length), Parse.Refused);
  reused.reset();
  const next = Buffer.from("GET / HTTP/1.1\r\nHost: a\r\nX-A: 9\r\n\r\n");
  assert.equal(reused.execute(next, 0, next.length), Parse.Complete);
  assert.equal(reused.fields.has(Known.ContentLength), false);
  assert.equal(reused.contentLength, 0);
});

test("limits are exact", () => {
  const head = "GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n\r\n";
  assert.equal(parse(head, { headBytesMax: head.length }).refusal, null);
  assert.equal(parse(head, { headBytesMax: head.length - 1 }).refusal?.code, "head_too_large");
  assert.equal(parse(head, { fieldsMax: 2 }).refusal, null);
  assert.equal(parse(head, { fieldsMax: 1 }).refusal?.code, "too_many_fields");
  const target = "GET /123456 HTTP/1.1\r\nHost: h\r\n\r\n";
  assert.equal(parse(target, { targetBytesMax: 7 }).refusal, null);
  assert.equal(parse(target, { targetBytesMax: 6 }).refusal?.code, "target_too_long");
  assert.equal(parse(`${"M".repeat(32)} / HTTP/1.1\r\nHost: h\r\n\r\n`).refusal, null);
  assert.equal(
    parse("MKCALENDAR / HTTP/1.1\r\nHost: h\r\n\r\n", { knownMethodsOnly: true }).refusal?.status,
    501,
  );
});

test("a refusal remains until reset, and contains no byte of the message", () => {
  const parser = parse("GET /s3cret\0 HTTP/1.1\r\n\r\n");
  const more = Buffer.from("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  assert.equal(parser.execute(more, 0, more.length), Parse.Refused);
  assert.equal(JSON.stringify(parser.refusal).includes("s3cret"), false);
});

test("a head of one byte per chunk takes linear time", () => {
  const bytes = Buffer.from(`GET / HTTP/1.1\r\nHost: h\r\nX-A: ${"a".repeat(30_000)}\r\n\r\n`);
  const parser = new RequestParser();
  // Not the time in which other processes run.
  const before = process.threadCpuUsage();
  for (let at = 0; at < bytes.length; at++) parser.execute(bytes, at, at + 1);
  assert.equal(parser.fields.count, 2);
  // Quadratic work would be half a billion steps.
  const { user, system } = process.threadCpuUsage(before);
  assert.ok(user + system < 1_000_000, `${user + system} µs`);
});

const token = fc.string({
  unit: fc.constantFrom(..."abcXYZ019-_!#$%&'*+.^`|~".split("")),
  minLength: 1,
  maxLength: 12,
});
const value = fc
  .string({ unit: fc.constantFrom(...'abc xyz,;="/\\\t\x80\xff'.split("")), maxLength: 20 })
  .map((text) => text.trim());
const request = fc.record({
  method: fc.constantFrom("GET", "POST", "PATCH", "FROB"),
  path: fc
    .string({ unit: fc.constantFrom(..."ab/.~%41".split("")), maxLength: 20 })
    .map((text) => `/${text.replaceAll(/%(?![0-9a-f]{2})/gi, "")}`),
  fields: fc.array(
    fc.tuple(
      token.map((name) => `x${name}`),
      value,
    ),
    { maxLength: 12 },
  ),
  chunks: fc.option(
    fc.array(fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 40 }), { maxLength: 4 }),
    { nil: undefined },
  ),
  trailers: fc.array(
    fc.tuple(
      token.map((name) => `t${name}`),
      value,
    ),
    { maxLength: 3 },
  ),
});

function write({
  method,
  path,
  fields,
  chunks,
  trailers,
}: typeof request extends fc.Arbitrary<infer T> ? T : never): string {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: h",
    ...fields.map(([name, text]) => `${name}: ${text}`),
  ];
  if (chunks === undefined) return `${lines.join("\r\n")}\r\nContent-Length: 3\r\n\r\nabc`;
  const body = chunks.map((chunk) => `${chunk.length.toString(16)};x=1\r\n${chunk}\r\n`).join("");
  const ending = trailers.map(([name, text]) => `${name}:${text}\r\n`).join("");
  return `${lines.join("\r\n")}\r\nTransfer-Encoding: chunked\r\n\r\n${body}0\r\n${ending}\r\n`;
}

test("any split of pipelined requests with bodies and trailers yields the same requests", () => {
  fc.assert(
    fc.property(
      fc.array(request, { minLength: 1, maxLength: 3 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      (requests, cuts) => {
        const bytes = Buffer.from(requests.map((one) => write(one)).join(""), "latin1");
        const seen = new SeenConnection();
        pushSplit(seen, bytes, cuts);
        assert.equal(seen.refusal, null);
        assert.equal(seen.requests.length, requests.length);
        for (const [index, one] of requests.entries()) {
          const got = seen.requests[index]!;
          assert.equal(got.method, one.method);
          assert.equal(got.target, one.path);
          assert.deepEqual(got.fields.slice(1, -1), one.fields);
          assert.equal(got.body, one.chunks?.join("") ?? "abc");
          assert.deepEqual(got.trailers, one.chunks === undefined ? [] : one.trailers);
        }
      },
    ),
    { numRuns: 300 },
  );
});

test("any split of damaged requests yields the same verdict as the whole", () => {
  const damage = fc.tuple(
    fc.nat(),
    fc.constantFrom(..."\0\n\r \t:;,\x7f\xff0Zg".split("")),
    fc.boolean(),
  );
  fc.assert(
    fc.property(
      request,
      damage,
      fc.array(fc.nat(), { maxLength: 8 }),
      (one, [where, character, replaces], cuts) => {
        const text = write(one);
        const at = where % text.length;
        const bytes = Buffer.from(
          text.slice(0, at) + character + text.slice(at + (replaces ? 1 : 0)),
          "latin1",
        );
        const whole = new SeenConnection();
        whole.push(bytes);
        const split = new SeenConnection();
        pushSplit(split, bytes, cuts);
        assert.deepEqual(split.refusal, whole.refusal);
        assert.deepEqual(split.requests, whole.requests);
        assert.equal(split.pending, whole.pending);
      },
    ),
    { numRuns: 1000 },
  );
});

test("random bytes are refused or incomplete, and never throw", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const seen = new SeenConnection();
      seen.push(Buffer.from(bytes));
      assert.equal(seen.requests.length, 0);
    }),
    { numRuns: 300 },
  );
});

/** Pushes copies of the pieces and wipes each behind, as a reused read buffer would be. */
function pushSplit(seen: SeenConnection, bytes: Buffer, cuts: number[]): void {
  const borders = [
    0,
    ...cuts.map((cut) => cut % bytes.length).sort((one, other) => one - other),
    bytes.length,
  ];
  for (let index = 1; index < borders.length; index++) {
    const piece = Buffer.from(bytes.subarray(borders[index - 1], borders[index]));
    seen.push(piece);
    piece.fill(0x21);
  }
}
