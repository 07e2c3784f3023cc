// Frames: damage in them is told from what was written.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { encodeFrame, FRAME_HEADER_BYTES, scanFrames } from "../../src/frame/frame.ts";

const salt = Buffer.from("saltsalt");
const header = { salt };

/** A file with frames one after another, each of these bodies. */
function build(...frames: string[][]): { bytes: Buffer; starts: number[] } {
  const starts: number[] = [];
  let bytes = Buffer.alloc(0);
  for (const bodies of frames) {
    starts.push(bytes.length);
    const entries = bodies.map((body) => [Buffer.from(body)]);
    bytes = Buffer.concat([bytes, ...encodeFrame(salt, bytes.length, 0, entries).pieces]);
  }
  return { bytes, starts };
}

async function scan(bytes: Buffer, durableEnd: number) {
  const accepted: string[] = [];
  const result = await scanFrames(bytes, header, 0, durableEnd, {
    accept: (entries) => {
      accepted.push(...entries.map(String));
      return Promise.resolve();
    },
  });
  return { ...result, accepted };
}

describe("a frame whose sectors were lost and read as zeros", () => {
  // As many empty entries fit into the zeros as the frame has entries.
  const { bytes, starts } = build(["first"], ["x".repeat(100), "12345678"], ["third"]);
  const lost = starts[1]!;
  bytes.fill(0, lost + FRAME_HEADER_BYTES + 8, starts[2]);

  test("is damage below the durable end, and reported", async () => {
    const { accepted, damaged } = await scan(bytes, bytes.length);
    assert.deepEqual(accepted, ["first", "third"]);
    assert.deepEqual(damaged, [{ position: lost, length: starts[2]! - lost }]);
  });

  test("ends the log above it: frames behind it are cut", async () => {
    const { accepted, damaged, end } = await scan(bytes, 0);
    assert.deepEqual(accepted, ["first"]);
    assert.deepEqual([damaged, end], [[], lost]);
  });
});

test("any byte of a payload that changes makes its frame damaged", async () => {
  const { bytes, starts } = build(["one", "two"], ["three", "four", "five"]);
  for (let at = starts[1]! + FRAME_HEADER_BYTES; at < bytes.length; at++) {
    for (const value of [0, bytes[at]! ^ 1, bytes[at]! ^ 0x80]) {
      if (bytes[at] === value) continue;
      const changed = Buffer.from(bytes);
      changed[at] = value;
      const { accepted, end } = await scan(changed, 0);
      assert.deepEqual([accepted, end], [["one", "two"], starts[1]], `byte ${at} is ${value}`);
    }
  }
});
