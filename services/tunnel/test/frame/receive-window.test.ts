// The size of a stream's window on connections with different limits.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ReceiveWindow } from "../../src/frame/receive-window.ts";

const USUAL_BYTES = 262_144;
const MAX_BYTES = 4_194_304;

interface Line {
  roundTripMs: number;
  /** Rate of the line or of the destination, in bytes per ms. */
  bytesPerMs: number;
}

/** Receives for some seconds as fast as the line and the window allow; returns the window's size over time. */
function receive(line: Line, seconds: number, mayGrow = true): number[] {
  const window = new ReceiveWindow();
  const sizes: number[] = [];
  let nowMs = 1_000;
  while (nowMs < 1_000 + seconds * 1_000) {
    const half = window.bytes / 2;
    nowMs += half / Math.min(line.bytesPerMs, window.bytes / line.roundTripMs);
    window.adapt(half, { nowMs, roundTripMs: line.roundTripMs, mayGrow });
    sizes.push(window.bytes);
  }
  return sizes;
}

test("on a long fast line the window grows until it does not limit the rate", () => {
  assert.ok(receive({ roundTripMs: 80, bytesPerMs: 25_000 }, 5).at(-1)! >= 80 * 25_000);
  assert.equal(receive({ roundTripMs: 80, bytesPerMs: 250_000 }, 5).at(-1), MAX_BYTES);
});

test("where something else limits the rate, the window stays small, apart from short trials", () => {
  const sizes = receive({ roundTripMs: 1, bytesPerMs: 300_000 }, 20);
  const larger = sizes.filter((size) => size > USUAL_BYTES).length;
  assert.ok(larger > 0 && larger < sizes.length / 20, `${larger} of ${sizes.length}`);
  assert.equal(Math.max(...sizes), USUAL_BYTES * 2);
});

test("a slow line keeps the usual window, and scarce memory none beyond the first", () => {
  assert.equal(Math.max(...receive({ roundTripMs: 20, bytesPerMs: 1_000 }, 20)), USUAL_BYTES);
  const scarce = receive({ roundTripMs: 80, bytesPerMs: 25_000 }, 2, false);
  assert.deepEqual(new Set(scarce), new Set([65_536]));
});
