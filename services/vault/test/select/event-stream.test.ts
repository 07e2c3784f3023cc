// The messages of the event stream: as S3's clients read them, for any records.
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import {
  encodeContinuation,
  encodeEnd,
  encodeError,
  encodeRecords,
  encodeStats,
} from "../../src/select/output/event-stream.ts";

test("an End message is the one of the API reference", () => {
  // "Appendix: SelectObjectContent Response": two headers of strings, no payload, 56 bytes.
  const message = encodeEnd();
  assert.equal(message.length, 56);
  assert.equal(message.readUInt32BE(0), 56);
  assert.equal(message.readUInt32BE(4), 40);
  const headers = message.toString("latin1", 12, 52);
  assert.equal(headers, "\x0d:message-type\x07\0\x05event\x0b:event-type\x07\0\x03End");
  assert.equal(message.readUInt32BE(8), crc32(message.subarray(0, 8)));
  assert.equal(message.readUInt32BE(52), crc32(message.subarray(0, 52)));
});

test("any records are split into messages of 1 MiB at most, and lose nothing", () => {
  const size = fc.oneof(
    fc.integer({ min: 0, max: 100 }),
    fc.integer({ min: 1_048_570, max: 2_200_000 }),
  );
  fc.assert(
    fc.property(size, fc.nat({ max: 255 }), (bytes, value) => {
      const records = Buffer.alloc(bytes, value);
      const payloads = encodeRecords(records).map((message) => {
        const end = message.length - 4;
        assert.equal(message.readUInt32BE(0), message.length);
        assert.equal(message.readUInt32BE(end), crc32(message.subarray(0, end)));
        return message.subarray(12 + message.readUInt32BE(4), end);
      });
      assert.ok(payloads.every((payload) => payload.length > 0 && payload.length <= 1_048_576));
      assert.ok(Buffer.concat(payloads).equals(records));
    }),
    { numRuns: 30 },
  );
});

test("statistics are XML, errors are headers", () => {
  const stats = { scannedBytes: 1, processedBytes: 2, returnedBytes: 3 };
  for (const type of ["Stats", "Progress"] as const) {
    const text = encodeStats(type, stats).toString("latin1");
    assert.ok(
      text.includes(
        `<${type}><BytesScanned>1</BytesScanned><BytesProcessed>2</BytesProcessed><BytesReturned>3</BytesReturned></${type}>`,
      ),
    );
  }
  const error = encodeError("CastFailed", "é".repeat(10_000)).toString("latin1");
  assert.ok(error.includes(":error-code\x07\0\nCastFailed"));
  assert.ok(error.includes(":message-type\x07\0\x05error"));
  assert.ok(encodeContinuation().toString("latin1").includes(":event-type\x07\0\x04Cont"));
});
