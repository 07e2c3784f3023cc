// The chunked decoder: ranges without copies, skimming, bounds, and every split.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Chunk, ChunkedDecoder } from "../../src/parse/index.ts";

test("data is returned as ranges of the caller's buffer, and next is the next message", () => {
  const decoder = new ChunkedDecoder();
  const bytes = Buffer.from("3\r\nabc\r\n2;x\r\nde\r\n0\r\nX-T: 1\r\n\r\nNEXT");
  const seen: string[] = [];
  let at = 0;
  let status = decoder.execute(bytes, at, bytes.length);
  for (; status === Chunk.Data; status = decoder.execute(bytes, at, bytes.length)) {
    seen.push(bytes.toString("latin1", decoder.dataStart, decoder.dataEnd));
    at = decoder.next;
  }
  assert.equal(status, Chunk.Complete);
  assert.deepEqual(seen, ["abc", "de"]);
  assert.equal(decoder.dataBytes, 5);
  assert.equal(bytes.toString("latin1", decoder.next), "NEXT");
  assert.deepEqual([...decoder.trailers.entries()], [["X-T", "1"]]);
});

test("a reset decoder has no trailers and no previous count", () => {
  const decoder = new ChunkedDecoder();
  const first = Buffer.from("1;a=b\r\nx\r\n0\r\nX-T: 1\r\n\r\n");
  const second = Buffer.from("2\r\nxy\r\n0\r\n\r\n");
  decoder.skim(first, 0, first.length);
  decoder.reset();
  assert.equal(decoder.skim(second, 0, second.length), Chunk.Complete);
  assert.deepEqual([decoder.dataBytes, decoder.trailers.count], [2, 0]);
});

test("digits and extensions are counted per chunk and per content", () => {
  const decoder = new ChunkedDecoder();
  const many = Buffer.from(`${"1\r\nx\r\n".repeat(40)}1;${"a".repeat(3000)}\r\nx\r\n0\r\n\r\n`);
  for (let content = 0; content < 3; content++) {
    assert.equal(decoder.skim(many, 0, many.length), Chunk.Complete);
    assert.equal(decoder.dataBytes, 41);
    decoder.reset();
  }
});

test("the largest size is 2^53 - 1, even without data", () => {
  const decoder = new ChunkedDecoder();
  const bytes = Buffer.from("1fffffffffffff\r\nabc");
  assert.equal(decoder.skim(bytes, 0, bytes.length), Chunk.NeedsMore);
  assert.equal(decoder.dataBytes, 3);
});

test("extensions are bounded over the whole content", () => {
  const decoder = new ChunkedDecoder();
  const chunk = Buffer.from(`1;${"a".repeat(1000)}\r\nx\r\n`);
  const results = [1, 2, 3, 4, 5].map(() => decoder.skim(chunk, 0, chunk.length));
  assert.deepEqual(results.slice(0, 4), [1, 1, 1, 1]);
  assert.equal(results[4], Chunk.Refused);
  assert.equal(decoder.refusal?.code, "chunk_extensions_too_large");
});

test("trailers are bounded in bytes exactly", () => {
  for (const [size, expected] of [
    [8192, Chunk.Complete],
    [8193, Chunk.Refused],
  ] as const) {
    const decoder = new ChunkedDecoder();
    const bytes = Buffer.from(`0\r\nX: ${"a".repeat(size - 7)}\r\n\r\n`);
    assert.equal(decoder.skim(bytes, 0, bytes.length), expected, `${size}`);
  }
});

test("a refused decoder stays refused and consumes nothing", () => {
  const decoder = new ChunkedDecoder();
  const bad = Buffer.from("5\r\nhellX5\r\n");
  const good = Buffer.from("0\r\n\r\n");
  assert.equal(decoder.skim(bad, 0, bad.length), Chunk.Refused);
  assert.equal(decoder.execute(good, 0, good.length), Chunk.Refused);
  assert.equal(decoder.next, 0);
});

test("skimming and decoding agree on any split, damaged or not", () => {
  const chunks = fc.array(fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 30 }), {
    maxLength: 5,
  });
  const damage = fc.option(fc.tuple(fc.nat(), fc.constantFrom(...'\0\n\r \t:;="fg0'.split(""))), {
    nil: undefined,
  });
  fc.assert(
    fc.property(
      chunks,
      fc.boolean(),
      damage,
      fc.array(fc.nat(), { maxLength: 8 }),
      (parts, hasTrailer, hit, cuts) => {
        let text = parts
          .map((part) => `${part.length.toString(16)};a="\\"";b\r\n${part}\r\n`)
          .join("");
        text += `0\r\n${hasTrailer ? "X-T: 1\r\n" : ""}\r\n`;
        if (hit !== undefined)
          text = text.slice(0, hit[0] % text.length) + hit[1] + text.slice(hit[0] % text.length);
        const bytes = Buffer.from(`${text}GET /`, "latin1");
        const whole = new ChunkedDecoder();
        const status = whole.skim(bytes, 0, bytes.length);
        const borders = [
          0,
          ...cuts.map((cut) => cut % bytes.length).sort((one, other) => one - other),
          bytes.length,
        ];
        for (const mode of ["execute", "skim"] as const) {
          const decoder = new ChunkedDecoder();
          let data = "";
          let last: number = Chunk.NeedsMore;
          let consumed = 0;
          for (let index = 1; index < borders.length && last === Chunk.NeedsMore; index++) {
            const piece = Buffer.from(bytes.subarray(borders[index - 1], borders[index]));
            let at = 0;
            do {
              last = decoder[mode](piece, at, piece.length);
              if (last === Chunk.Data)
                data += piece.toString("latin1", decoder.dataStart, decoder.dataEnd);
              at = decoder.next;
            } while (last === Chunk.Data);
            consumed = borders[index - 1]! + decoder.next;
          }
          assert.equal(last, status);
          assert.deepEqual(decoder.refusal, whole.refusal);
          if (status === Chunk.Complete) {
            assert.equal(consumed, whole.next);
            assert.deepEqual([...decoder.trailers.entries()], [...whole.trailers.entries()]);
          }
          if (hit === undefined && mode === "execute") assert.equal(data, parts.join(""));
        }
      },
    ),
    { numRuns: 500 },
  );
});
