// The head writer: cuts, injection, bounds, giving the scratch away, and round trips through the parsers.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Known, RequestParser, ResponseParser } from "../../src/parse/index.ts";
import {
  compileCuts,
  compileForwardCuts,
  HeadWriteError,
  HeadWriter,
} from "../../src/write/index.ts";

function parse(text: string): RequestParser {
  const parser = new RequestParser();
  const bytes = Buffer.from(text, "latin1");
  parser.execute(bytes, 0, bytes.length);
  assert.equal(parser.refusal, null);
  return parser;
}

test("forwarding cuts hop-by-hop, nominated and named fields, aliases included, and keeps the rest as sent", () => {
  const head = parse(
    "GET /a HTTP/1.1\r\nX-First:1\r\nHost: h\r\nconnection: x-hop, keep-alive, Accept-Language\r\nX-HOP: 1\r\nAccept-Language: en\r\nTE: trailers\r\n" +
      "X_Forwarded-For: 6\r\nX-Forwarded-For: 6\r\nAccept:  */* \r\nX-Other: 2\r\nProxy-Authorization: s\r\n\r\n",
  );
  const writer = new HeadWriter();
  writer.begin();
  writer.copyFields(head.fields, compileForwardCuts(["X-Forwarded-For", "X-OTHER"]));
  assert.equal(writer.view().toString("latin1"), "X-First:1\r\nHost: h\r\nAccept:  */* \r\n");
});

test("copying without cuts preserves the section byte for byte", () => {
  const head = parse("GET /a HTTP/1.1\r\nHost: h\r\nX-A:\t1\r\nx-b:  \r\n\r\n");
  const writer = new HeadWriter();
  writer.copyFields(head.fields, compileCuts([]));
  assert.equal(writer.view().toString("latin1"), "Host: h\r\nX-A:\t1\r\nx-b:  \r\n");
});

test("the request line of every form is written in origin form", () => {
  const rows: [string, string | null, string][] = [
    ["GET /a%20b?q=1 HTTP/1.1\r\nHost: h\r\n\r\n", null, "GET /a%20b?q=1 HTTP/1.1\r\n"],
    ["FROB /a HTTP/1.0\r\n\r\n", null, "FROB /a HTTP/1.1\r\n"],
    ["GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", null, "GET / HTTP/1.1\r\n"],
    ["GET http://h?q HTTP/1.1\r\nHost: h\r\n\r\n", null, "GET /?q HTTP/1.1\r\n"],
    ["OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", null, "OPTIONS * HTTP/1.1\r\n"],
    ["OPTIONS http://h HTTP/1.1\r\nHost: h\r\n\r\n", null, "OPTIONS * HTTP/1.1\r\n"],
    ["GET /old?q HTTP/1.1\r\nHost: h\r\n\r\n", "/new/path", "GET /new/path?q HTTP/1.1\r\n"],
  ];
  const writer = new HeadWriter();
  for (const [text, path, line] of rows) {
    writer.begin();
    writer.requestLine(parse(text), path);
    assert.equal(writer.view().toString("latin1"), line);
  }
});

test("strings cannot break out of their line", () => {
  const head = parse("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const writer = new HeadWriter();
  const attempts: [string, () => void][] = [
    ["bad_field_value", () => writer.field("X-A", "1\r\nX-B: 2")],
    ["bad_field_value", () => writer.field("X-A", "1\n2")],
    ["bad_field_value", () => writer.field("X-A", "1\0")],
    ["bad_field_value", () => writer.field("X-A", "\u{10a}")],
    ["bad_field_value", () => writer.fieldAfter(Buffer.from("X-A: "), "\r")],
    ["bad_field_value", () => writer.value("a\r")],
    ["bad_field_name", () => writer.field("", "1")],
    ["bad_field_name", () => writer.field("X-A:", "1")],
    ["bad_field_name", () => writer.field("X A", "1")],
    ["bad_field_name", () => writer.field("X\r\nA", "1")],
    ["bad_path", () => writer.requestLine(head, "/a b")],
    ["bad_path", () => writer.requestLine(head, "/a?b")],
    ["bad_path", () => writer.requestLine(head, "a")],
    ["bad_path", () => writer.requestLine(head, "/a\r\nX: y")],
  ];
  for (const [code, attempt] of attempts) {
    writer.begin();
    writer.field("X-Before", "1");
    assert.throws(attempt, (error) => error instanceof HeadWriteError && error.code === code);
    assert.equal(writer.view().toString("latin1"), "X-Before: 1\r\n");
  }
});

test("numbers are written in decimal digits", () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (value) => {
      const writer = new HeadWriter(64);
      writer.number(value);
      assert.equal(writer.view().toString("latin1"), String(value));
    }),
  );
});

test("the scratch grows to its maximum and shrinks again", () => {
  const writer = new HeadWriter(16, 64);
  writer.raw(Buffer.alloc(64, "a"));
  assert.equal(writer.view().length, 64);
  assert.throws(() => writer.byte(0x61), { code: "head_too_large" });
  assert.equal(writer.view().toString(), "a".repeat(64));
  writer.begin();
  assert.equal(writer.bytes.length, 16);
});

test("a scratch that a socket retains is not modified", () => {
  const writer = new HeadWriter();
  writer.field("X-A", "1");
  const held = writer.view();
  writer.takeOver();
  writer.field("X-B", "2");
  assert.equal(held.toString(), "X-A: 1\r\n");
  assert.equal(writer.view().toString(), "X-B: 2\r\n");
});

test("a copied response parses to the same response", () => {
  const fields = fc.array(
    fc.tuple(
      fc.constantFrom("Server", "X-A", "Set-Cookie", "Age"),
      fc.constantFrom("1", "a b", "", "\xe9"),
    ),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 200, max: 599 }),
      fc.constantFrom("OK", "", "Quite odd"),
      fields,
      (status, reason, lines) => {
        const bytes = Buffer.from(
          `HTTP/1.0 ${status} ${reason}\r\n${lines.map(([name, value]) => `${name}:  ${value} \r\n`).join("")}\r\n`,
          "latin1",
        );
        const first = new ResponseParser();
        first.execute(bytes, 0, bytes.length);
        const writer = new HeadWriter();
        writer.statusLineOf(first);
        writer.copyFields(first.fields, compileCuts(["age"]));
        writer.field("X-Added", "1");
        writer.endHead();
        const second = new ResponseParser();
        const view = writer.view();
        second.execute(view, 0, view.length);
        assert.equal(second.refusal, null);
        assert.deepEqual([second.status, second.reasonString(), second.minor], [status, reason, 1]);
        const kept = lines.filter(([name]) => name !== "Age");
        assert.deepEqual([...second.fields.entries()], [...kept, ["X-Added", "1"]]);
        assert.equal(second.fields.has(Known.Age), false);
      },
    ),
  );
});
