// The codec: frames survive any split of the bytes, and malformed ones are refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  encodeEnd,
  encodeFrame,
  encodeGoAway,
  encodeOpen,
  encodeReset,
  encodeWindow,
  FrameType,
  type FrameTypeId,
  PAYLOAD_BYTES_MAX,
  readCount,
  STREAM_MAX,
  WireError,
} from "../../src/frame/format.ts";
import { FrameReader } from "../../src/frame/frame-reader.ts";

interface Frame {
  type: FrameTypeId;
  stream: number;
  payload: Buffer;
}

const anyStream = fc.integer({ min: 1, max: STREAM_MAX });
const anyBytes = (minLength: number, maxLength: number) =>
  fc.uint8Array({ minLength, maxLength }).map((bytes) => Buffer.from(bytes));
const anyCount = fc.maxSafeNat();

const anyFrame: fc.Arbitrary<Frame> = fc
  .oneof(
    fc.record({
      type: fc.constant(FrameType.Data),
      stream: anyStream,
      payload: anyBytes(1, 300),
    }),
    fc.record({
      type: fc.constantFrom(FrameType.Hello, FrameType.Welcome, FrameType.Event),
      stream: fc.constant(0),
      payload: anyBytes(2, 200),
    }),
    fc.record({
      type: fc.constant(FrameType.Open),
      stream: anyStream,
      payload: fc
        .tuple(fc.nat(65_535), fc.ipV6())
        .map(([tunnel, peer]) => encodeOpen(tunnel, peer)),
    }),
    fc.record({
      type: fc.constant(FrameType.End),
      stream: anyStream,
      payload: anyCount.map(encodeEnd),
    }),
    fc.record({
      type: fc.constant(FrameType.Reset),
      stream: anyStream,
      payload: fc.tuple(fc.nat(8), anyCount).map(([code, count]) => encodeReset(code, count)),
    }),
    fc.record({
      type: fc.constant(FrameType.Window),
      stream: anyStream,
      payload: fc.integer({ min: 1, max: 0xffff_ffff }).map(encodeWindow),
    }),
    fc.record({
      type: fc.constantFrom(FrameType.Ping, FrameType.Pong),
      stream: fc.constant(0),
      payload: anyBytes(8, 8),
    }),
    fc.record({
      type: fc.constant(FrameType.GoAway),
      stream: fc.constant(0),
      payload: fc.string({ maxLength: 50 }).map((reason) => encodeGoAway(0, reason)),
    }),
  )
  // Records of fast-check may have no prototype.
  .map((frame) => ({ ...frame }));

/** Reads frames; parts of DATA frames are joined if they belong to the same frame. */
function createCollector(): { reader: FrameReader; frames: Frame[] } {
  const frames: Frame[] = [];
  let openData: { frame: Frame; number: number } | undefined;
  const reader: FrameReader = new FrameReader({
    onData: (stream, bytes, start, end) => {
      const part = Buffer.from(bytes.subarray(start, end));
      if (openData?.number === reader.frames) {
        openData.frame.payload = Buffer.concat([openData.frame.payload, part]);
        return;
      }
      const frame: Frame = { type: FrameType.Data, stream, payload: part };
      frames.push(frame);
      openData = { frame, number: reader.frames };
    },
    onFrame: (type, stream, payload) => {
      frames.push({ type, stream, payload: Buffer.from(payload) });
    },
  });
  return { reader, frames };
}

function encodeAll(frames: readonly Frame[]): Buffer {
  return Buffer.concat(
    frames.map(({ type, stream, payload }) => encodeFrame(type, stream, payload)),
  );
}

test("frames are read as they were written, however the bytes are split", () => {
  fc.assert(
    fc.property(
      fc.array(anyFrame, { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1, maxLength: 20 }),
      (sent, sizes) => {
        const bytes = encodeAll(sent);
        const { reader, frames } = createCollector();
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const end = Math.min(bytes.length, at + sizes[turn % sizes.length]!);
          reader.push(bytes, at, end);
          at = end;
        }
        assert.deepEqual(frames, sent);
        assert.equal(reader.isBetweenFrames, true);
      },
    ),
  );
});

test("frames are read byte by byte", () => {
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 5 }), (sent) => {
      const { reader, frames } = createCollector();
      const bytes = encodeAll(sent);
      for (let at = 0; at < bytes.length; at++) {
        // A new buffer each time: nothing may refer to former ones.
        reader.push(Buffer.from([bytes[at]!]), 0, 1);
      }
      assert.deepEqual(frames, sent);
    }),
    { numRuns: 50 },
  );
});

test("arbitrary bytes are either frames or refused with a WireError", () => {
  fc.assert(
    fc.property(anyBytes(0, 400), (bytes) => {
      const { reader } = createCollector();
      try {
        reader.push(bytes, 0, bytes.length);
      } catch (error) {
        assert.ok(error instanceof WireError, String(error));
      }
    }),
  );
});

test("counts up to 2^53 - 1 survive; larger ones are refused", () => {
  fc.assert(fc.property(anyCount, (count) => readCount(encodeEnd(count), 0) === count));
  assert.throws(() => readCount(Buffer.from("0020000000000000", "hex"), 0), {
    code: "bad_payload",
  });
});

function header(type: number, length: number, stream: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes[0] = type;
  bytes.writeUIntBE(length, 1, 3);
  bytes.writeUInt32BE(stream, 4);
  return bytes;
}

const MALFORMED: readonly (readonly [string, Buffer, string])[] = [
  ["type 0", header(0, 0, 0), "unknown_frame_type"],
  ["type 12", header(12, 8, 0), "unknown_frame_type"],
  ["type 255", header(255, 8, 1), "unknown_frame_type"],
  ["an empty DATA", header(FrameType.Data, 0, 1), "bad_length"],
  ["a DATA of more than 64 KiB", header(FrameType.Data, PAYLOAD_BYTES_MAX + 1, 1), "bad_length"],
  ["a DATA of 16 MiB", header(FrameType.Data, 0xff_ffff, 1), "bad_length"],
  ["DATA of stream 0", header(FrameType.Data, 1, 0), "bad_stream"],
  ["DATA of a stream above 2^31 - 1", header(FrameType.Data, 1, 0x8000_0000), "bad_stream"],
  ["an END of 7 bytes", header(FrameType.End, 7, 1), "bad_length"],
  ["an END of stream 0", header(FrameType.End, 8, 0), "bad_stream"],
  ["a RESET of 4 bytes", header(FrameType.Reset, 4, 1), "bad_length"],
  ["a WINDOW of 8 bytes", header(FrameType.Window, 8, 1), "bad_length"],
  ["a WINDOW of stream 0", header(FrameType.Window, 4, 0), "bad_stream"],
  ["a PING of a stream", header(FrameType.Ping, 8, 1), "bad_stream"],
  ["a PING of 125 bytes", header(FrameType.Ping, 125, 0), "bad_length"],
  ["an OPEN of 1 byte", header(FrameType.Open, 1, 1), "bad_length"],
  ["an OPEN of 257 bytes", header(FrameType.Open, 257, 1), "bad_length"],
  ["a GOAWAY of 2 kB", header(FrameType.GoAway, 2_000, 0), "bad_length"],
  ["an empty HELLO", header(FrameType.Hello, 0, 0), "bad_length"],
  ["a HELLO of a stream", header(FrameType.Hello, 2, 7), "bad_stream"],
];

for (const [name, bytes, code] of MALFORMED) {
  test(`${name} is refused at its header`, () => {
    const { reader } = createCollector();
    assert.throws(() => reader.push(bytes, 0, bytes.length), { name: "WireError", code });
    const slow = createCollector().reader;
    for (let at = 0; at < 7; at++) slow.push(bytes, at, at + 1);
    assert.throws(() => slow.push(bytes, 7, 8), { name: "WireError", code });
  });
}
