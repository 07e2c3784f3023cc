// Lengths that lie: refused before anything is allocated for them.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ProtocolError } from "../../../src/kafka/protocol/error.ts";
import { readResponse, writeResponse } from "../../../src/kafka/protocol/frame.ts";
import { apiVersions, metadata } from "../../../src/kafka/protocol/messages/index.ts";
import { Reader } from "../../../src/kafka/protocol/reader.ts";
import { array, int32, int8, string, struct } from "../../../src/kafka/protocol/schema.ts";
import { Writer } from "../../../src/kafka/protocol/writer.ts";

function flexible(bytes: number[]): Reader {
  const reader = new Reader(Buffer.from(bytes));
  reader.flexible = true;
  return reader;
}

describe("wrong lengths are rejected", () => {
  const list = array(int8);
  const cases: [name: string, read: () => unknown][] = [
    ["a string past the frame", () => new Reader(Buffer.from([0, 5, 65])).readString()],
    ["a negative string length", () => new Reader(Buffer.from([0xff, 0xfe])).readNullableString()],
    ["a null string where none may be", () => new Reader(Buffer.from([0xff, 0xff])).readString()],
    ["a compact string past the frame", () => flexible([9, 65]).readString()],
    ["a compact string over 32 767 bytes", () => flexible([0xff, 0xff, 0x03]).readString()],
    ["bytes past the frame", () => new Reader(Buffer.from([0x7f, 0xff, 0xff, 0xff])).readBytes()],
    ["negative bytes", () => new Reader(Buffer.from([0x80, 0, 0, 0])).readBytes()],
    ["an array of 2^31 - 1", () => list.read(new Reader(Buffer.from([0x7f, 0xff, 0xff, 0xff])), 0)],
    ["a negative array", () => list.read(new Reader(Buffer.from([0xff, 0xff, 0xff, 0xf0])), 0)],
    ["a compact array of 2^32 - 2", () => list.read(flexible([0xff, 0xff, 0xff, 0xff, 0x0f]), 0)],
    [
      "a varint of six bytes",
      () => flexible([0x80, 0x80, 0x80, 0x80, 0x80, 1]).readUnsignedVarint(),
    ],
    ["a varint over 32 bits", () => flexible([0xff, 0xff, 0xff, 0xff, 0x1f]).readUnsignedVarint()],
    ["a tag that is longer than the frame", () => struct({}).read(flexible([1, 0, 200]), 0)],
    ["tags out of order", () => struct({}).read(flexible([2, 1, 0, 1, 0]), 0)],
    ["a string that is not UTF-8", () => new Reader(Buffer.from([0, 1, 0xff])).readString()],
  ];
  for (const [name, read] of cases) {
    test(name, () => assert.throws(read, ProtocolError));
  }
});

test("the elements of all arrays of a frame share one budget", () => {
  const nested = array(array(int8));
  const writer = new Writer();
  nested.write(
    writer,
    [
      [1, 2, 3],
      [4, 5, 6],
    ],
    0,
  );
  const bytes = Buffer.concat(writer.finish());
  assert.deepEqual(nested.read(new Reader(bytes, 8), 0), [
    [1, 2, 3],
    [4, 5, 6],
  ]);
  assert.throws(() => nested.read(new Reader(bytes, 7), 0), /too many array elements/);
});

test("unknown tagged fields are skipped", () => {
  const type = struct({ name: string });
  assert.deepEqual(type.read(flexible([2, 65, 2, 3, 1, 0xff, 7, 0]), 0), { name: "A" });
});

test("large byte fields are referenced, not copied", () => {
  const writer = new Writer();
  const large = Buffer.alloc(10_000, 1);
  writer.writeInt32(1);
  writer.writeRecords([large, large]);
  writer.writeInt32(2);
  const chunks = writer.finish();
  assert.equal(chunks[1], large);
  assert.equal(chunks[2], large);
  assert.equal(Buffer.concat(chunks).length, 4 + 4 + 20_000 + 4);
});

test("an ApiVersions response has the oldest header in every version", () => {
  const empty = { errorCode: 35, apiKeys: [] };
  const frame = Buffer.concat(writeResponse(apiVersions, 4, 3, empty));
  assert.deepEqual([...frame.subarray(4, 10)], [0, 0, 0, 3, 0, 35]);
  const flexibleOne = { brokers: [], topics: [] };
  const other = Buffer.concat(writeResponse(metadata, 12, 3, flexibleOne)).subarray(4);
  assert.deepEqual([...other.subarray(0, 5)], [0, 0, 0, 3, 0]);
  assert.equal(readResponse(other, metadata, 12).correlationId, 3);
});

test("numbers of 64 bits are exact within 2^53", () => {
  for (const value of [0, -1, 1, 2 ** 32, -(2 ** 32), 2 ** 53, -(2 ** 53), 1_700_000_000_000]) {
    const writer = new Writer();
    writer.writeInt64(value);
    assert.equal(new Reader(Buffer.concat(writer.finish())).readInt64(), value);
  }
  assert.equal(int32.shape.kind, "int32");
});
