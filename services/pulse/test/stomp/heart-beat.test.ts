// The negotiation of heart-beats, and when one is due or missing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isBeatDue, isBeatMissing, negotiateHeartBeat } from "../../src/stomp/heart-beat.ts";

test("each direction beats at the longer of both intervals, or not at all", () => {
  assert.deepEqual(negotiateHeartBeat(undefined), { sendMs: 0, receiveMs: 0 });
  assert.deepEqual(negotiateHeartBeat("0,0"), { sendMs: 0, receiveMs: 0 });
  assert.deepEqual(negotiateHeartBeat("20000,5000"), { sendMs: 5_000, receiveMs: 20_000 });
  assert.deepEqual(negotiateHeartBeat("10,10"), { sendMs: 1_000, receiveMs: 10_000 });
  assert.deepEqual(negotiateHeartBeat("0,60000"), { sendMs: 60_000, receiveMs: 0 });
  for (const text of ["", "1", "a,b", "1,-1", "1,2,3", "1, 2", "1e3,0"]) {
    assert.throws(() => negotiateHeartBeat(text), /two numbers/, text);
  }
});

test("a beat is sent before the time is over, and missed only after twice the time", () => {
  const beat = { sendMs: 1_000, receiveMs: 10_000 };
  assert.equal(isBeatDue(beat, 499, 500), false);
  assert.equal(isBeatDue(beat, 500, 500), true);
  assert.equal(isBeatDue({ ...beat, sendMs: 0 }, 99_999, 500), false);
  assert.equal(isBeatMissing(beat, 20_000), false);
  assert.equal(isBeatMissing(beat, 20_001), true);
  assert.equal(isBeatMissing({ ...beat, receiveMs: 0 }, 99_999), false);
});
