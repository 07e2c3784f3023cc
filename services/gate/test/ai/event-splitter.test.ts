// Events of a stream: split at any byte they are the same, and their bytes are not changed.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EVENT_BYTES_MAX, EventSplitter } from "../../src/ai/shape/event-splitter.ts";

function split(pieces: readonly Buffer[]): { raw: string; data: string[] } {
  const splitter = new EventSplitter();
  const data: string[] = [];
  let raw = "";
  const take = (event: { raw: Buffer; data: Buffer }): boolean => {
    raw += event.raw.toString();
    if (event.data.length > 0) data.push(event.data.toString());
    return true;
  };
  for (const piece of pieces) splitter.push(piece, take);
  const rest = splitter.end();
  if (rest !== undefined) take(rest);
  return { raw, data };
}

test("a stream in any pieces has the same events and bytes", () => {
  const streams: [text: string, data: string[]][] = [
    ["data: a\n\ndata: b\n\n", ["a", "b"]],
    ["event: x\r\ndata: a\r\n\r\ndata:b\r\n\r\n", ["a", "b"]],
    ["data: a\r\rdata: b\r\r", ["a", "b"]],
    [": comment\n\ndata: a\ndata: b\nid: 1\n\n", ["a\nb"]],
    ["data: a\n\ndata: no empty line", ["a", "no empty line"]],
    ["database: no\n\ndata\n\ndata: ü€😀\n\n", ["ü€😀"]],
    ["\n\n\ndata: a\n\n", ["a"]],
  ];
  for (const [text, data] of streams) {
    const bytes = Buffer.from(text);
    assert.deepEqual(split([bytes]), { raw: text, data });
    const single = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
    assert.deepEqual(split(single).data, data);
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 6 }), (cuts) => {
        const places = [0, ...cuts.sort((one, other) => one - other), bytes.length];
        const pieces = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
        assert.deepEqual(split(pieces), { raw: text, data });
      }),
    );
  }
});

test("an event above the limit stops the stream, and holds no more than the limit", () => {
  const splitter = new EventSplitter();
  const piece = Buffer.alloc(65_536, "x");
  let pushed = 0;
  while (!splitter.isTooLong && pushed < 10 * EVENT_BYTES_MAX) {
    splitter.push(piece, () => true);
    pushed += piece.length;
    assert.ok(splitter.heldBytes <= EVENT_BYTES_MAX);
  }
  assert.ok(splitter.isTooLong);
  assert.ok(pushed <= EVENT_BYTES_MAX + piece.length);
  // Its end may be in the piece that makes it too long.
  const other = new EventSplitter();
  let events = 0;
  const note = (): boolean => ++events > 0;
  other.push(Buffer.from(`data: a\n\ndata: ${"x".repeat(EVENT_BYTES_MAX - 20)}`), note);
  other.push(Buffer.from(`${"x".repeat(100)}\n\ndata: b\n\n`), note);
  assert.equal(events, 1);
  assert.ok(other.isTooLong);
});
