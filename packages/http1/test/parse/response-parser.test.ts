// Response heads: grammar, framing by method and status, refusals, and the properties of splitting.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  Framing,
  Known,
  Method,
  type MethodId,
  Parse,
  type RefusalCode,
  ResponseParser,
} from "../../src/parse/index.ts";

function parse(text: string, methodId: MethodId = Method.GET): ResponseParser {
  const parser = new ResponseParser();
  parser.expect(methodId);
  const bytes = Buffer.from(text, "latin1");
  parser.execute(bytes, 0, bytes.length);
  return parser;
}

test("status line and fields are read in place", () => {
  const bytes = Buffer.from(
    "..HTTP/1.1 404 Not Here\xe9\r\nServer: x\r\nContent-Length: 2\r\n\r\nhi",
    "latin1",
  );
  const parser = new ResponseParser();
  assert.equal(parser.execute(bytes, 2, bytes.length), Parse.Complete);
  assert.deepEqual([parser.status, parser.reasonString(), parser.minor], [404, "Not Here\xe9", 1]);
  assert.equal(parser.fields.get(Known.Server), "x");
  assert.equal(bytes.toString("latin1", parser.next), "hi");
  parser.keep();
  bytes.fill(0);
  assert.equal(parser.reasonString(), "Not Here\xe9");
  assert.equal(parser.fields.get(Known.ContentLength), "2");
});

test("the reason phrase may be empty, with or without its space", () => {
  for (const line of ["HTTP/1.1 200 ", "HTTP/1.1 200"]) {
    const parser = parse(`${line}\r\nContent-Length: 0\r\n\r\n`);
    assert.deepEqual([parser.refusal, parser.status, parser.reasonString()], [null, 200, ""]);
  }
});

test("framing and reuse follow status, method, version and fields", () => {
  const rows: [string, MethodId, number, number, boolean][] = [
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", Method.GET, Framing.Length, 5, true],
    ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", Method.GET, Framing.None, 0, true],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", Method.GET, Framing.Chunked, -1, true],
    ["HTTP/1.1 200 OK\r\n", Method.GET, Framing.UntilClose, -1, false],
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", Method.HEAD, Framing.None, 5, true],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", Method.HEAD, Framing.None, -1, true],
    ["HTTP/1.1 200 OK\r\n", Method.HEAD, Framing.None, -1, true],
    ["HTTP/1.1 204 No Content\r\n", Method.GET, Framing.None, -1, true],
    ["HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n", Method.GET, Framing.None, 0, true],
    ["HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n", Method.GET, Framing.None, 5, true],
    ["HTTP/1.1 100 Continue\r\n", Method.POST, Framing.None, -1, true],
    [
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n",
      Method.GET,
      Framing.Tunnel,
      -1,
      false,
    ],
    ["HTTP/1.1 200 OK\r\n", Method.CONNECT, Framing.Tunnel, -1, false],
    ["HTTP/1.1 407 No\r\nContent-Length: 1\r\n", Method.CONNECT, Framing.Length, 1, true],
    ["HTTP/1.0 200 OK\r\nContent-Length: 5\r\n", Method.GET, Framing.Length, 5, false],
    [
      "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n",
      Method.GET,
      Framing.Length,
      5,
      true,
    ],
    [
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n",
      Method.GET,
      Framing.Length,
      5,
      false,
    ],
    ["HTTP/1.1 999 Odd\r\nContent-Length: 5\r\n", Method.GET, Framing.Length, 5, true],
  ];
  for (const [text, methodId, framing, length, keepAlive] of rows) {
    const parser = parse(`${text}\r\n`, methodId);
    assert.equal(parser.refusal, null, text);
    assert.deepEqual(
      [parser.framing, parser.contentLength, parser.keepAlive],
      [framing, length, keepAlive],
      text,
    );
  }
});

test("an informational head is followed by another that keeps the method", () => {
  const bytes = Buffer.from(
    "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
  );
  const parser = new ResponseParser();
  parser.expect(Method.HEAD);
  parser.execute(bytes, 0, bytes.length);
  assert.equal(parser.informational, true);
  const at = parser.next;
  parser.reset();
  assert.equal(parser.execute(bytes, at, bytes.length), Parse.Complete);
  assert.deepEqual([parser.status, parser.framing, parser.next], [200, Framing.None, bytes.length]);
});

const refusedResponses: [string, RefusalCode][] = [
  ["http/1.1 200 OK\r\n\r\n", "bad_status_line"],
  ["HTTP/1.1  200 OK\r\n\r\n", "bad_status_line"],
  ["HTTP/1.1 20 OK\r\n\r\n", "bad_status_line"],
  ["HTTP/1.1 2000 OK\r\n\r\n", "bad_status_line"],
  ["HTTP/1.1 099 OK\r\n\r\n", "bad_status_line"],
  ["HTTP/1.1 +20 OK\r\n\r\n", "bad_status_line"],
  ["HTTP/1.1\t200 OK\r\n\r\n", "bad_status_line"],
  ["HTTP/1.1 200 O\0K\r\n\r\n", "bad_status_line"],
  ["HTTP/2.0 200 OK\r\n\r\n", "version_unsupported"],
  ["HTTP/1.2 200 OK\r\n\r\n", "version_unsupported"],
  ["ICY 200 OK\r\n\r\n", "bad_status_line"],
  ["\r\nHTTP/1.1 200 OK\r\n\r\n", "bad_status_line"],
  ["<html>", "bad_status_line"],
  ["HTTP/1.1 200 OK\n\n", "bare_lf"],
  ["HTTP/1.1 200 OK\rX: y\r\n\r\n", "bare_cr"],
  ["HTTP/1.1 200 OK\r\nX: 1\r\n 2\r\n\r\n", "obs_fold"],
  ["HTTP/1.1 200 OK\r\nX : 1\r\n\r\n", "space_before_colon"],
  ["HTTP/1.1 200 OK\r\n X: 1\r\n\r\n", "leading_whitespace"],
  ["HTTP/1.1 200 OK\r\nX\r\n\r\n", "bad_field_name"],
  ["HTTP/1.1 200 OK\r\nX: \0\r\n\r\n", "bad_field_value"],
  ["HTTP/1.1 200 OK\r\nX: 1\nY: 2\r\n\r\n", "bare_lf"],
  [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "length_and_chunked",
  ],
  ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "content_length_repeated"],
  ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "content_length_repeated"],
  ["HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", "bad_content_length"],
  ["HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", "bad_content_length"],
  ["HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "bad_content_length"],
  ["HTTP/1.1 200 OK\r\nContent-Length: 9007199254740992\r\n\r\n", "bad_content_length"],
  ["HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "transfer_encoding_in_1_0"],
  ["HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer_coding_unknown"],
  ["HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "transfer_coding_unknown"],
  ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", "bad_transfer_encoding"],
  ["HTTP/1.1 200 OK\r\nTransfer_Encoding: chunked\r\n\r\n", "alias_of_framing_field"],
  ["HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "body_not_allowed"],
  ["HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", "body_not_allowed"],
  ["HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n", "body_not_allowed"],
  ["HTTP/1.1 101 Switching Protocols\r\nTransfer-Encoding: chunked\r\n\r\n", "body_not_allowed"],
  [
    "HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 5\r\n\r\n",
    "connection_names_framing",
  ],
  [`HTTP/1.1 200 OK\r\nX: ${"a".repeat(33_000)}\r\n\r\n`, "head_too_large"],
  [`HTTP/1.1 200 ${"a".repeat(33_000)}\r\n\r\n`, "head_too_large"],
  [`HTTP/1.1 200 OK\r\n${"X: 1\r\n".repeat(129)}\r\n`, "too_many_fields"],
];

test("malformed responses are refused, whole and byte by byte", () => {
  for (const [text, code] of refusedResponses) {
    assert.equal(parse(text).refusal?.code, code, JSON.stringify(text.slice(0, 100)));
    const parser = new ResponseParser();
    for (const byte of Buffer.from(text, "latin1")) parser.execute(Buffer.from([byte]), 0, 1);
    assert.equal(parser.refusal?.code, code, JSON.stringify(text.slice(0, 100)));
  }
});

test("any split of a response, damaged or not, yields the same head", () => {
  const lines = fc.array(
    fc.constantFrom(
      "Server: x",
      "Content-Length: 12",
      "Transfer-Encoding: chunked",
      "Connection: close, x-a",
      "X-A:  b ",
      "Set-Cookie: a=b",
    ),
    { maxLength: 6 },
  );
  const damage = fc.option(fc.tuple(fc.nat(), fc.constantFrom(..."\0\n\r \t:9".split(""))), {
    nil: undefined,
  });
  fc.assert(
    fc.property(
      fc.constantFrom(100, 101, 200, 204, 304, 502),
      lines,
      damage,
      fc.array(fc.nat(), { maxLength: 6 }),
      (status, fields, hit, cuts) => {
        let text = `HTTP/1.1 ${status} Reason here\r\n${fields.map((line) => `${line}\r\n`).join("")}\r\nrest`;
        if (hit !== undefined) {
          const at = hit[0] % text.length;
          text = text.slice(0, at) + hit[1] + text.slice(at);
        }
        const bytes = Buffer.from(text, "latin1");
        const whole = parse(text);
        const split = new ResponseParser();
        split.expect(Method.GET);
        const borders = [
          0,
          ...cuts.map((cut) => cut % bytes.length).sort((one, other) => one - other),
          bytes.length,
        ];
        let consumed = 0;
        for (let index = 1; index < borders.length; index++) {
          const piece = Buffer.from(bytes.subarray(borders[index - 1], borders[index]));
          const status = split.execute(piece, 0, piece.length);
          consumed = borders[index - 1]! + split.next;
          if (status !== Parse.NeedsMore) break;
        }
        assert.deepEqual(split.refusal, whole.refusal);
        if (whole.refusal !== null || whole.fields.end === 0) return;
        assert.equal(consumed, whole.next);
        const view = (parser: ResponseParser): unknown => [
          parser.status,
          parser.reasonString(),
          parser.framing,
          parser.contentLength,
          parser.keepAlive,
          [...parser.fields.entries()],
        ];
        assert.deepEqual(view(split), view(whole));
      },
    ),
    { numRuns: 500 },
  );
});
