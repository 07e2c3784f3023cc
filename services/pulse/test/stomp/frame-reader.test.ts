// Frames come out as they went in, however the bytes are cut; anything else is an error that names the fault.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeFrame, type Frame } from "../../src/stomp/frame/frame.ts";
import { FrameReader } from "../../src/stomp/frame/frame-reader.ts";
import { StompError } from "../../src/stomp/frame/stomp-error.ts";
import { chooseVersion, type StompVersion } from "../../src/stomp/frame/version.ts";

const LIMITS = { headersMax: 20, lineBytesMax: 1_000, headBytesMax: 4_000, bodyBytesMax: 10_000 };

function createReader(version?: StompVersion): FrameReader {
  const reader = new FrameReader(LIMITS);
  reader.version = version;
  return reader;
}

function readAll(reader: FrameReader): Frame[] {
  const frames: Frame[] = [];
  for (let frame = reader.next(); frame !== undefined; frame = reader.next()) frames.push(frame);
  return frames;
}

function read(text: string, version?: StompVersion): Frame[] {
  const reader = createReader(version);
  reader.push(Buffer.from(text));
  return readAll(reader);
}

function headersOf(text: string, version: StompVersion): Record<string, string> {
  return Object.fromEntries(read(`SEND\n${text}\n\n\0`, version)[0]!.headers);
}

const anyText = fc
  .string({ unit: "grapheme", maxLength: 20 })
  .map((text) => text.replaceAll("\0", ""));
const headerName = anyText.filter((text) => text !== "" && text !== "content-length");
const escapedFrame = fc.record({
  headers: fc.uniqueArray(fc.tuple(headerName, anyText), {
    selector: ([name]) => name,
    maxLength: 5,
  }),
  body: fc.uint8Array({ maxLength: 300 }),
  beats: fc.constantFrom("", "\n", "\n\n\n"),
});

test("frames are complete and in order for any split of the bytes", () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(
      fc.array(escapedFrame, { maxLength: 6 }),
      fc.constantFrom<StompVersion>("1.1", "1.2"),
      sizes,
      fc.boolean(),
      (sent, version, cuts, isShared) => {
        const bytes = Buffer.concat(
          sent.map(({ headers, body, beats }) => {
            const all = [...headers, ["content-length", String(body.length)] as const];
            const frame = encodeFrame("SEND", all, version, Buffer.from(body));
            return Buffer.concat([frame, Buffer.from(beats)]);
          }),
        );
        const reader = createReader(version);
        const shared = Buffer.alloc(64);
        const found: { headers: [string, string][]; body: number[] }[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const end = Math.min(bytes.length, at + cuts[turn % cuts.length]!);
          if (isShared) reader.push(shared, bytes.copy(shared, 0, at, end), true);
          else reader.push(bytes.subarray(at, end));
          at = end;
          const frames = readAll(reader);
          // The next read overwrites the bytes.
          shared.fill(0xee);
          for (const { headers, body } of frames) {
            found.push({ headers: [...headers].slice(0, -1), body: [...body] });
          }
        }
        // A carriage return has no escape in 1.1 and stays as it is.
        assert.deepEqual(
          found,
          sent.map(({ headers, body }) => ({
            headers: headers.map(([name, value]) => [name, value]),
            body: [...body],
          })),
        );
        assert.equal(reader.bytes, 0);
      },
    ),
  );
});

test("no bytes make the reader fail other than with a StompError, and it holds at most the limits", () => {
  const part = fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc
      .constantFrom("SEND\n", "content-length:3\n", "\n", "\r\n", "a:b\n", "\0", "\\c", ":", "\\x")
      .map((text) => Buffer.from(text)),
  );
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 60 }),
      fc.constantFrom<StompVersion | undefined>(undefined, "1.0", "1.1", "1.2"),
      (parts, version) => {
        const reader = createReader(version);
        try {
          for (const bytes of parts) {
            reader.push(bytes);
            readAll(reader);
          }
        } catch (error) {
          assert.ok(error instanceof StompError, String(error));
        }
      },
    ),
  );
});

test("escapes depend on the version", () => {
  const text = "a\\cb:x\\ny\\\\z";
  assert.deepEqual(headersOf(text, "1.2"), { "a:b": "x\ny\\z" });
  assert.deepEqual(headersOf(text, "1.1"), { "a:b": "x\ny\\z" });
  assert.deepEqual(headersOf(text, "1.0"), { "a\\cb": "x\\ny\\\\z" });
  assert.deepEqual(headersOf("a:x\\ry", "1.2"), { a: "x\ry" });
  assert.throws(() => headersOf("a:x\\ry", "1.1"), /undefined escape/);
  assert.throws(() => headersOf("a:x\\ty", "1.2"), /undefined escape/);
  assert.throws(() => headersOf("a:x\\", "1.2"), /undefined escape/);
});

test("CONNECT and CONNECTED are never escaped", () => {
  const [frame] = read("CONNECT\naccept-version:1.2\npasscode:a\\cb\\t\n\n\0");
  assert.equal(frame!.headers.get("passcode"), "a\\cb\\t");
  const headers = [["server", "a\\b:c"]] as const;
  assert.equal(
    encodeFrame("CONNECTED", headers, "1.2").toString(),
    "CONNECTED\nserver:a\\b:c\n\n\0",
  );
});

test("of repeated headers the first counts", () => {
  assert.deepEqual(headersOf("foo:World\nfoo:Hello", "1.2"), { foo: "World" });
});

test("headers are UTF-8", () => {
  assert.deepEqual(headersOf("größe:日本 😀", "1.1"), { größe: "日本 😀" });
  assert.deepEqual(headersOf("größe:日本 😀", "1.2"), { größe: "日本 😀" });
  const reader = createReader("1.2");
  reader.push(Buffer.from([...Buffer.from("SEND\na:"), 0xff, 10, 10, 0]));
  assert.throws(() => reader.next(), /not UTF-8/);
});

test("spaces are part of headers, but not in 1.0", () => {
  assert.deepEqual(headersOf("a: b ", "1.1"), { a: " b " });
  assert.deepEqual(headersOf("a: b ", "1.0"), { a: "b" });
  assert.equal(read("CONNECT\nlogin: joe\n\n\0")[0]!.headers.get("login"), "joe");
});

test("lines may end with CR LF in 1.2 and before the version is known, and nowhere else", () => {
  for (const version of ["1.2", undefined] as const) {
    const body = version === undefined ? "" : "hello";
    const [frame] = read(`\r\nSEND\r\na:b\r\n\r\n${body}\0\r\n\r\n`, version);
    assert.equal(frame!.command, "SEND");
    assert.deepEqual(Object.fromEntries(frame!.headers), { a: "b" });
    assert.equal(frame!.body.toString(), body);
  }
  assert.throws(() => read("SEND\na:x\ry\n\n\0", "1.2"), /carriage return/);
  assert.deepEqual(headersOf("a:b\r", "1.1"), { a: "b\r" });
});

test("a body with content-length may hold NUL, one without ends at the first", () => {
  const [counted] = read("SEND\ncontent-length:3\n\na\0b\0", "1.2");
  assert.deepEqual([...counted!.body], [97, 0, 98]);
  const frames = read("SEND\n\na\0\nSEND\n\n\0", "1.2");
  assert.deepEqual(
    frames.map(({ body }) => body.toString()),
    ["a", ""],
  );
});

test("faults are named", () => {
  const cases: [string, RegExp][] = [
    ["SEND\ncontent-length:2\n\nabc\0", /no NUL follows the 2 bytes/],
    ["SEND\ncontent-length:-1\n\n\0", /no number of bytes/],
    ["SEND\ncontent-length:99999\n\n", /10000 bytes at most/],
    ["SEND\nnonsense\n\n\0", /without a name or colon/],
    ["SEND\n:x\n\n\0", /without a name or colon/],
    ["DISCONNECT\0", /empty line is missing/],
    [`SEND\n${"a:b\n".repeat(21)}\n\0`, /20 headers at most/],
    [`SEND\na:${"b".repeat(1_000)}`, /1000 bytes at most/],
    [`SEND\n${`a:${"b".repeat(900)}\n`.repeat(5)}\n\0`, /4000 bytes at most/],
    [`SEND\n\n${"x".repeat(10_001)}`, /10000 bytes at most/],
  ];
  for (const [text, fault] of cases)
    assert.throws(() => read(text, "1.2"), fault, text.slice(0, 40));
});

test("a frame before the version is known has no body", () => {
  assert.throws(() => read("CONNECT\n\nx\0"), /0 bytes at most/);
  assert.throws(() => read("CONNECT\ncontent-length:1000\n\n"), /0 bytes at most/);
});

test("the newest common version is chosen", () => {
  assert.equal(chooseVersion(undefined), "1.0");
  assert.equal(chooseVersion("1.0,1.1,2.0"), "1.1");
  assert.equal(chooseVersion("1.1, 1.2"), "1.2");
  assert.equal(chooseVersion("2.0"), undefined);
});

test("what a version cannot express is left out", () => {
  const headers = [
    ["a:b", "c"],
    ["d", "e\nf"],
    ["g", "h:i"],
    ["j", "k\0"],
  ] as const;
  assert.equal(encodeFrame("MESSAGE", headers, "1.0").toString(), "MESSAGE\ng:h:i\n\n\0");
  assert.equal(
    encodeFrame("MESSAGE", headers, "1.2").toString(),
    "MESSAGE\na\\cb:c\nd:e\\nf\ng:h\\ci\n\n\0",
  );
});
