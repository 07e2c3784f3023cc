// Answers made here are framed rightly for method, status and version, and parse back to what they are.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  Chunk,
  ChunkedDecoder,
  Framing,
  Known,
  Method,
  Parse,
  ResponseParser,
} from "../../src/parse/index.ts";
import {
  type AnswerContext,
  CHUNK_END,
  CHUNK_HEAD_BYTES_MAX,
  HeadWriter,
  HttpDate,
  LAST_CHUNK,
  prepareAnswer,
  writeAnswer,
  writeChunkHead,
  writePrepared,
  writeStreamHead,
} from "../../src/write/index.ts";

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 0);
const context: AnswerContext = { methodId: Method.GET, minor: 1, keepAlive: true, nowMs: NOW_MS };

function written(write: (writer: HeadWriter, date: HttpDate) => void): string {
  const writer = new HeadWriter();
  write(writer, new HttpDate());
  return writer.view().toString("latin1");
}

test("a whole response has length, date and content", () => {
  const text = written((writer, date) =>
    writeAnswer(writer, date, { status: 200, headers: [["X-A", "1"]], body: "hü" }, context),
  );
  assert.equal(
    text,
    "HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 3\r\nDate: Fri, 20 Nov 2026 12:00:00 GMT\r\n\r\nh\xc3\xbc",
  );
});

test("whole answers are framed by method, status, version and keep-alive", () => {
  const rows: [number, Partial<AnswerContext>, string | undefined, string | undefined, string][] = [
    [200, {}, "2", undefined, "hi"],
    [200, { methodId: Method.HEAD }, "2", undefined, ""],
    [204, {}, undefined, undefined, ""],
    [304, {}, undefined, undefined, ""],
    [404, { keepAlive: false }, "2", "close", "hi"],
    [200, { minor: 0 }, "2", "keep-alive", "hi"],
    [200, { minor: 0, keepAlive: false }, "2", "close", "hi"],
    [599, {}, "2", undefined, "hi"],
  ];
  for (const [status, changes, length, connection, body] of rows) {
    const used = { ...context, ...changes };
    const answer = { status, body: "hi" };
    const direct = written((writer, date) => writeAnswer(writer, date, answer, used));
    const prepared = written((writer, date) =>
      writePrepared(writer, date, prepareAnswer(answer), used),
    );
    assert.equal(prepared, direct);
    const bytes = Buffer.from(direct, "latin1");
    const parser = new ResponseParser();
    parser.expect(used.methodId);
    assert.equal(parser.execute(bytes, 0, bytes.length), Parse.Complete);
    assert.equal(parser.status, status);
    assert.equal(parser.fields.get(Known.ContentLength), length);
    assert.equal(parser.fields.get(Known.Connection), connection);
    assert.equal(bytes.toString("latin1", parser.next), body);
  }
});

test("streamed responses declare their framing", () => {
  const rows: [number, number | undefined, Partial<AnswerContext>, number, boolean][] = [
    [200, undefined, {}, Framing.Chunked, true],
    [200, 5, {}, Framing.Length, true],
    [200, 0, {}, Framing.None, true],
    [200, undefined, { minor: 0 }, Framing.UntilClose, false],
    [200, 5, { minor: 0 }, Framing.Length, true],
    [200, undefined, { methodId: Method.HEAD }, Framing.None, true],
    [204, undefined, {}, Framing.None, true],
    [304, undefined, {}, Framing.None, true],
  ];
  for (const [status, contentLength, changes, framing, keepAlive] of rows) {
    const used = { ...context, ...changes };
    const writer = new HeadWriter();
    const head = contentLength === undefined ? { status } : { status, contentLength };
    assert.equal(writeStreamHead(writer, new HttpDate(), head, used), framing);
    const parser = new ResponseParser();
    parser.expect(used.methodId);
    assert.equal(parser.execute(writer.view(), 0, writer.length), Parse.Complete);
    assert.deepEqual(
      [parser.framing, parser.keepAlive],
      [framing, keepAlive],
      `${status} ${contentLength}`,
    );
  }
});

test("fields that only the writer sets are refused from callers, in any spelling", () => {
  for (const name of [
    "Content-Length",
    "transfer-encoding",
    "CONNECTION",
    "Date",
    "Content_Length",
  ]) {
    assert.throws(() => prepareAnswer({ status: 200, headers: [[name, "1"]] }), {
      code: "framing_field_set",
    });
  }
});

test("the Date field is formatted once a second", () => {
  const date = new HttpDate();
  const first = date.field(NOW_MS);
  assert.equal(date.field(NOW_MS + 999), first);
  assert.equal(date.field(NOW_MS + 1000).toString(), "Date: Fri, 20 Nov 2026 12:00:01 GMT\r\n");
});

test("chunk framing decodes to the written content", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 5 }),
      (parts) => {
        const pieces = parts.flatMap((part) => {
          const head = Buffer.alloc(CHUNK_HEAD_BYTES_MAX);
          return [head.subarray(0, writeChunkHead(head, 0, part.length)), part, CHUNK_END];
        });
        const bytes = Buffer.concat([...pieces, LAST_CHUNK]);
        const decoder = new ChunkedDecoder();
        const data: Buffer[] = [];
        let at = 0;
        let status = decoder.execute(bytes, at, bytes.length);
        for (; status === Chunk.Data; status = decoder.execute(bytes, at, bytes.length)) {
          data.push(bytes.subarray(decoder.dataStart, decoder.dataEnd));
          at = decoder.next;
        }
        assert.equal(status, Chunk.Complete);
        assert.deepEqual(Buffer.concat(data), Buffer.concat(parts));
      },
    ),
  );
  const head = Buffer.alloc(CHUNK_HEAD_BYTES_MAX);
  const length = writeChunkHead(head, 0, Number.MAX_SAFE_INTEGER);
  assert.equal(head.toString("latin1", 0, length), "1fffffffffffff\r\n");
});
