// Five minutes of a tunnel, second by second.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Activity, countRequests, TRACE_SECONDS } from "../../src/inspect/activity.ts";

function request(tunnel: number, status: number) {
  return { tunnel, status, latency_ms: 5, id: "r", time: "", method: "GET", path: "/" };
}

describe("counts of a tunnel", () => {
  test("stay in their second, the last one first, and end after five minutes", () => {
    const activity = new Activity(1_000);
    activity.count(200, 10);
    activity.count(500, 30);
    activity.advance(1_002);
    activity.count(0, 20);
    const { requests, failures, p50_ms: p50, second } = activity.trace(4);
    assert.deepEqual(
      [requests, failures],
      [
        [1, 0, 2, 0],
        [1, 0, 1, 0],
      ],
    );
    assert.deepEqual([p50, second], [20, 1_002]);
    activity.advance(1_000 + TRACE_SECONDS);
    const after = activity.trace(TRACE_SECONDS);
    assert.equal(after.requests.at(-1), 0);
    assert.equal(after.requests.at(-2), 1);
    assert.equal(
      after.requests.reduce((one, other) => one + other),
      1,
    );
  });

  test("are empty after a pause of any length", () => {
    const activity = new Activity(7);
    activity.count(200, 1);
    activity.advance(7 + 10 * TRACE_SECONDS + 3);
    assert.ok(activity.trace(TRACE_SECONDS).requests.every((count) => count === 0));
    activity.advance(5);
    activity.count(200, 1);
    assert.equal(activity.trace(1).requests[0], 1);
  });

  test("include requests that the relay left out, in the shares of the others", () => {
    const tunnels = [new Activity(0), new Activity(0)];
    const requests = [request(0, 200), request(0, 200), request(1, 502), request(9, 200)];
    countRequests({ requests, dropped: 8 }, (tunnel) => tunnels[tunnel]);
    assert.deepEqual(
      tunnels.map((activity) => activity.trace(1).requests),
      [[6], [3]],
    );
    assert.deepEqual(
      tunnels.map((activity) => activity.trace(1).failures),
      [[0], [1]],
    );
  });
});
