// Identifiers: form, order, and no reuse of random bytes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createIdSource } from "@platform/kernel/ids";
import { createManualClock } from "@platform/kernel/time";

test("trace and span ids are distinct lower-case hex of the right length", () => {
  const ids = createIdSource();
  const seen = new Set<string>();
  for (let i = 0; i < 2000; i += 1) {
    const trace = ids.traceId();
    const span = ids.spanId();
    assert.match(trace, /^[0-9a-f]{32}$/);
    assert.match(span, /^[0-9a-f]{16}$/);
    seen.add(trace).add(span);
  }
  assert.equal(seen.size, 4000);
});

test("ids are never all zero, even if the generator returns zeros", () => {
  const ids = createIdSource({ randomFill: (target) => void target.fill(0) });
  assert.equal(ids.traceId(), "00000000000000000000000000000001");
  assert.equal(ids.spanId(), "0000000000000001");
});

test("UUIDs are version 7 and sort by creation, even within a millisecond", () => {
  const clock = createManualClock(1_700_000_000_000);
  const ids = createIdSource({ clock });
  const made: string[] = [];
  for (let i = 0; i < 10_000; i += 1) {
    if (i % 5000 === 4999) clock.advance(1);
    made.push(ids.uuid());
  }
  assert.match(made[0]!, /^018bcfe5-6800-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(made, made.toSorted());
  assert.equal(new Set(made).size, made.length);
});

test("UUIDs keep their order when the clock steps back", () => {
  const clock = createManualClock(2000);
  const ids = createIdSource({ clock });
  const first = ids.uuid();
  clock.setNow(1000);
  assert.ok(ids.uuid() > first);
});

test("tokens have the requested size, within limits", () => {
  const ids = createIdSource();
  assert.equal(Buffer.from(ids.token(), "base64url").length, 32);
  assert.equal(Buffer.from(ids.token(1024), "base64url").length, 1024);
  for (const bytes of [0, 1025, 1.5]) assert.throws(() => ids.token(bytes), RangeError);
});
