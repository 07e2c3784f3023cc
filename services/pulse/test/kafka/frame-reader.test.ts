// Frames come out as they went in, however the bytes are cut and whenever room is made for one.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FrameReader } from "../../src/kafka/server/frame-reader.ts";

test("frames are complete and in order for any split of the bytes, expected or not", () => {
  const frames = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 });
  const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(frames, cuts, fc.array(fc.boolean(), { minLength: 1 }), (sent, sizes, expects) => {
      const bytes = Buffer.concat(
        sent.flatMap((frame) => {
          const length = Buffer.alloc(4);
          length.writeInt32BE(frame.length);
          return [length, frame];
        }),
      );
      const reader = new FrameReader(1_000);
      const shared = Buffer.alloc(256);
      const found: Buffer[] = [];
      let pushed = 0;
      let turn = 0;
      for (let at = 0; at < bytes.length;) {
        const end = Math.min(bytes.length, at + sizes[turn % sizes.length]!);
        if (expects[turn % expects.length] === true) {
          reader.push(bytes.subarray(at, end));
        } else {
          // Shared buffers are overwritten by the next read.
          shared.fill(0xee);
          reader.push(shared, bytes.copy(shared, 0, at, end), true);
        }
        pushed += end - at;
        at = end;
        for (;;) {
          if (expects[turn++ % expects.length] === true) reader.expect();
          const frame = reader.next();
          if (frame === undefined) break;
          found.push(frame);
        }
        const taken = found.reduce((sum, frame) => sum + 4 + frame.length, 0);
        assert.equal(reader.bytes, pushed - taken);
      }
      assert.deepEqual(
        found.map((frame) => [...frame]),
        sent.map((frame) => [...frame]),
      );
    }),
  );
});
