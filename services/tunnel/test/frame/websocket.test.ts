// WebSocket framing: what `ws` writes is read, what is written `ws` reads, and violations are refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { WireError } from "../../src/frame/format.ts";
import {
  computeAccept,
  encodeClose,
  encodeControl,
  Opcode,
  unmask,
  WebSocketReader,
  writeWebSocketHeader,
} from "../../src/frame/websocket.ts";

const anyBytes = (maxLength: number) =>
  fc.uint8Array({ maxLength }).map((bytes) => Buffer.from(bytes));
const anyKey = fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => Buffer.from(bytes));

function encodeMessage(payload: Buffer, key: Buffer | null, opcode = 2, isFinal = true): Buffer {
  const frame = Buffer.concat([Buffer.alloc(14), payload]);
  if (key !== null) unmask(frame, 14, frame.length, key, 0);
  const start = writeWebSocketHeader(frame, 14, opcode, payload.length, key);
  if (!isFinal) frame[start]! &= 0x7f;
  return frame.subarray(start);
}

function createCollector(isMasked: boolean) {
  const content: Buffer[] = [];
  const controls: [number, string][] = [];
  const closes: [number, string][] = [];
  const reader = new WebSocketReader(
    {
      onMessageBytes: (bytes, start, end) => content.push(Buffer.from(bytes.subarray(start, end))),
      onControl: (opcode, payload) => controls.push([opcode, payload.toString("latin1")]),
      onCloseFrame: (status, reason) => closes.push([status, reason]),
    },
    isMasked,
  );
  return { reader, content, controls, closes };
}

function push(reader: WebSocketReader, bytes: Buffer, size: number): void {
  for (let at = 0; at < bytes.length; at += size) {
    // Unmasking works in place: the caller's bytes must stay for the next assertion.
    const piece = Buffer.from(bytes.subarray(at, at + size));
    reader.push(piece, 0, piece.length);
  }
}

test("messages of any size, fragmentation and split yield the same bytes", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(anyBytes(400), fc.boolean()), { maxLength: 6 }),
      fc.option(anyKey),
      fc.integer({ min: 1, max: 500 }),
      (parts, key, size) => {
        const frames = parts.map(([payload], index) => {
          const isFirst = index === 0 || parts[index - 1]![1];
          const isFinal = parts[index]![1];
          return encodeMessage(payload, key, isFirst ? 2 : 0, isFinal);
        });
        const { reader, content } = createCollector(key !== null);
        push(reader, Buffer.concat(frames), size);
        assert.deepEqual(Buffer.concat(content), Buffer.concat(parts.map(([payload]) => payload)));
      },
    ),
  );
});

test("lengths at the bounds of the three forms are read", () => {
  for (const length of [0, 1, 125, 126, 127, 65_535, 65_536, 70_000]) {
    const payload = Buffer.alloc(length, 7);
    const { reader, content } = createCollector(true);
    push(reader, encodeMessage(payload, Buffer.from([1, 2, 3, 4])), 9_000);
    assert.deepEqual(Buffer.concat(content), payload, String(length));
  }
});

test("masking is its own inverse from any position, also of unaligned memory", () => {
  fc.assert(
    fc.property(anyBytes(100), anyKey, fc.nat(3), fc.nat(7), (bytes, key, keyAt, shift) => {
      const memory = Buffer.alloc(bytes.length + shift);
      bytes.copy(memory, shift);
      const next = unmask(memory, shift, memory.length, key, keyAt);
      const expected = bytes.map((byte, index) => byte ^ key[(keyAt + index) & 3]!);
      assert.deepEqual([...memory.subarray(shift)], [...expected]);
      assert.equal(next, (keyAt + bytes.length) & 3);
      unmask(memory, shift, memory.length, key, keyAt);
      assert.deepEqual(memory.subarray(shift), bytes);
    }),
  );
});

test("control frames are read between fragments, byte by byte", () => {
  const key = Buffer.from([9, 8, 7, 6]);
  const { reader, content, controls, closes } = createCollector(true);
  const bytes = Buffer.concat([
    encodeMessage(Buffer.from("ab"), key, 2, false),
    encodeControl(Opcode.Ping, Buffer.from("are you there"), key),
    encodeMessage(Buffer.from("cd"), key, 0, true),
    encodeClose(1001, "bye", key),
  ]);
  push(reader, bytes, 1);
  assert.equal(Buffer.concat(content).toString(), "abcd");
  assert.deepEqual(controls, [[Opcode.Ping, "are you there"]]);
  assert.deepEqual(closes, [[1001, "bye"]]);
});

const VIOLATIONS: readonly (readonly [string, string])[] = [
  ["an unmasked frame", "820161"],
  ["a text message", "81810000000061"],
  ["a reserved bit", "c2810000000061"],
  ["an unknown opcode", "83810000000061"],
  ["a continuation without a message", "80810000000061"],
  ["a fragmented ping", "098000000000"],
  ["a ping of 126 bytes", "89fe007e00000000"],
  ["a frame of 4 GiB", "82ff000000010000000000000000"],
  ["a frame of 17 MiB", "82ff000000000110000000000000"],
];

for (const [name, hex] of VIOLATIONS) {
  test(`${name} is refused`, () => {
    const bytes = Buffer.from(hex, "hex");
    const { reader } = createCollector(true);
    assert.throws(
      () => push(reader, bytes, 1),
      (error: unknown) => error instanceof WireError && error.code === "websocket",
    );
  });
}

test("the handshake's answer is that of RFC 6455 section 1.3", () => {
  assert.equal(computeAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
});
