// The canary engine against the state table of the specification, under a clock that the test moves.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CanaryEngine,
  type CanaryRoute,
  type CanaryStates,
} from "../../src/resilience/canary-engine.ts";
import { makeRouteKey, type CanarySpec } from "../../src/shared-state/index.ts";

const KEY = makeRouteKey(undefined, "/shop");
const EPOCH_MS = 1_700_000_000_000;
const SPEC: CanarySpec = { stepPoints: 30, stepMs: 60_000, errorRateMax: 0.1 };

class Stage {
  nowMs = 5_000;
  counts = { requests: 0, failures: 0 };
  weights: number[] = [];
  restarts = 0;
  stored: CanaryStates = {};
  readonly logs: string[] = [];
  engine = this.start();

  start(): CanaryEngine {
    this.engine = new CanaryEngine({
      readNowMs: () => this.nowMs,
      readTimeMs: () => EPOCH_MS + this.nowMs,
      stored: this.stored,
      store: (states) => (this.stored = structuredClone(states)),
      log: (_level, msg) => this.logs.push(msg),
    });
    return this.engine;
  }

  makeRoute(changes: Partial<CanaryRoute> = {}): CanaryRoute {
    return {
      key: KEY,
      label: "/shop",
      spec: SPEC,
      weights: [90, 10],
      readCounts: () => this.counts,
      restartWindow: () => {
        this.restarts++;
        this.counts = { requests: 0, failures: 0 };
      },
      setWeight: (percent) => this.weights.push(percent),
      ...changes,
    };
  }

  follow(changes: Partial<CanaryRoute> = {}): void {
    this.engine.follow([this.makeRoute(changes)]);
  }

  /** Moves the clock in ticks of one second, as the gateway does. */
  pass(seconds: number): void {
    for (let second = 0; second < seconds; second++) {
      this.nowMs += 1_000;
      this.engine.tick();
    }
  }

  /** Phase and share. */
  get view() {
    const view = this.engine.view(KEY);
    return view === undefined ? undefined : { phase: view.phase, weight: view.weight };
  }
}

test("promoting: every interval the weight rises by one step until it reaches 100, then promotion ends", () => {
  const stage = new Stage();
  stage.follow();
  assert.deepEqual(stage.view, { phase: "promoting", weight: 10 });
  stage.pass(59);
  assert.deepEqual(stage.weights, [10], "nothing happens before the interval has passed");
  stage.pass(1);
  assert.deepEqual(stage.weights, [10, 40]);
  stage.pass(60);
  assert.deepEqual(stage.view, { phase: "promoting", weight: 70 });
  stage.pass(60);
  assert.deepEqual(stage.view, { phase: "promoted", weight: 100 });
  stage.counts = { requests: 100, failures: 100 };
  stage.pass(600);
  assert.deepEqual(stage.weights, [10, 40, 70, 100], "automatic promotion is disabled at 100");
  assert.equal(stage.logs.at(-1), "canary fully promoted");
});

test("rollback: an error rate above the maximum sends all traffic to the stable target", () => {
  const stage = new Stage();
  stage.follow();
  stage.counts = { requests: 10, failures: 1 };
  stage.pass(5);
  assert.equal(stage.view?.phase, "promoting", "an error rate equal to the maximum is allowed");
  stage.counts = { requests: 10, failures: 2 };
  stage.pass(1);
  assert.deepEqual(stage.view, { phase: "rolled_back", weight: 0 });
  stage.counts = { requests: 0, failures: 0 };
  stage.pass(600);
  assert.deepEqual(stage.weights, [10, 0], "a canary that was rolled back is not promoted again");
  assert.deepEqual(stage.logs, ["canary rolled back"]);
});

test("an error rate is computed only after at least 3 requests have hit the canary", () => {
  const stage = new Stage();
  stage.follow();
  stage.counts = { requests: 2, failures: 2 };
  stage.pass(30);
  assert.equal(stage.view?.phase, "promoting");
  stage.counts = { requests: 3, failures: 1 };
  stage.pass(1);
  assert.equal(stage.view?.phase, "rolled_back");
});

test("a window restarts at a step only once it holds 3 requests", () => {
  const stage = new Stage();
  stage.follow();
  const begun = stage.restarts;
  stage.counts = { requests: 2, failures: 1 };
  stage.pass(60);
  assert.equal(stage.restarts, begun);
  stage.counts = { requests: 300, failures: 0 };
  stage.pass(60);
  assert.equal(stage.restarts, begun + 1);
});

test("a step and a failing canary at the same moment: the canary is rolled back, not promoted", () => {
  const stage = new Stage();
  stage.follow();
  stage.pass(59);
  stage.counts = { requests: 3, failures: 3 };
  stage.pass(1);
  assert.deepEqual(stage.weights, [10, 0]);
});

test("state survives a restart and a reload while the weights are unchanged", () => {
  const stage = new Stage();
  stage.follow();
  stage.pass(60);
  stage.start();
  stage.follow();
  assert.deepEqual(stage.view, { phase: "promoting", weight: 40 });
  stage.follow();
  stage.pass(60);
  assert.deepEqual(stage.view, { phase: "promoting", weight: 70 });
  stage.follow({ weights: [80, 20] });
  assert.deepEqual(stage.view, { phase: "promoting", weight: 20 }, "other weights start again");
  stage.engine.follow([]);
  assert.equal(stage.view, undefined);
});

test("relative weights are percentages of their sum", () => {
  const stage = new Stage();
  stage.follow({ weights: [3, 1] });
  assert.deepEqual(stage.view, { phase: "promoting", weight: 25 });
});

test("an operator holds a canary, which is still judged, and resumes it", () => {
  const stage = new Stage();
  stage.follow();
  stage.pass(60);
  assert.deepEqual(stage.engine.steer(KEY, "hold", "operator"), { phase: "held", weight: 40 });
  stage.pass(600);
  assert.deepEqual(stage.view, { phase: "held", weight: 40 });
  stage.start();
  stage.follow();
  assert.deepEqual(stage.view, { phase: "held", weight: 40 }, "a restart does not end it");
  stage.engine.steer(KEY, "resume", "operator");
  stage.pass(59);
  assert.deepEqual(stage.view, { phase: "promoting", weight: 40 });
  stage.pass(1);
  assert.deepEqual(stage.view, { phase: "promoting", weight: 70 });
  stage.engine.steer(KEY, "hold", "operator");
  stage.counts = { requests: 10, failures: 5 };
  stage.pass(1);
  assert.deepEqual(stage.view, { phase: "rolled_back", weight: 0 });
});

test("an operator promotes or rolls back a canary at any time", () => {
  const stage = new Stage();
  stage.follow();
  assert.deepEqual(stage.engine.steer(KEY, "rollback", "ada"), { phase: "rolled_back", weight: 0 });
  stage.pass(600);
  assert.deepEqual(stage.view, { phase: "rolled_back", weight: 0 });
  assert.deepEqual(stage.engine.steer(KEY, "promote", "ada"), { phase: "promoted", weight: 100 });
  assert.deepEqual(stage.weights.slice(-2), [0, 100]);
  assert.deepEqual(stage.stored[KEY]?.phase, "promoted");
  assert.equal(stage.engine.steer(makeRouteKey(undefined, "/other"), "hold", "ada"), undefined);
});

test("the steps of a canary are kept with their times and counts, over a restart", () => {
  const stage = new Stage();
  stage.follow();
  const at = (seconds: number): number => EPOCH_MS + 5_000 + seconds * 1_000;
  stage.counts = { requests: 50, failures: 1 };
  assert.deepEqual(stage.engine.view(KEY)?.next, { at: at(60), weight: 40 });
  stage.pass(60);
  // A window with too few requests goes on: each step has its own.
  stage.counts = { requests: 2, failures: 0 };
  stage.pass(60);
  stage.counts = { requests: 9, failures: 0 };
  const steps = [
    { at: at(0), phase: "promoting", weight: 10, requests: 50, failures: 1 },
    { at: at(60), phase: "promoting", weight: 40, requests: 2, failures: 0 },
    { at: at(120), phase: "promoting", weight: 70, requests: 7, failures: 0 },
  ];
  assert.deepEqual(stage.engine.view(KEY)?.steps, steps);
  assert.ok(stage.engine.steer(KEY, "hold", "operator"));
  const held = { ...steps[2]!, phase: "held" };
  assert.deepEqual(stage.engine.view(KEY)?.steps.at(-1), held, "a share that is held is one step");
  assert.equal(stage.engine.view(KEY)?.next, undefined);
  stage.start();
  stage.follow();
  assert.deepEqual(stage.engine.view(KEY)?.steps, [steps[0], steps[1], held]);
  stage.counts = { requests: 10, failures: 5 };
  stage.pass(1);
  assert.deepEqual(stage.engine.view(KEY)?.steps.slice(-2), [
    { ...held, requests: 17, failures: 5 },
    { at: at(121), phase: "rolled_back", weight: 0, requests: 0, failures: 0 },
  ]);
  stage.follow({ weights: [50, 50] });
  assert.equal(stage.engine.view(KEY)?.steps.length, 1, "other settings begin again");
});

test("a bounded number of steps is kept", () => {
  const stage = new Stage();
  stage.follow({ spec: { ...SPEC, stepPoints: 1, stepMs: 1_000 } });
  stage.pass(50);
  assert.equal(stage.engine.view(KEY)?.steps.length, 20);
  assert.equal(stage.engine.view(KEY)?.steps.at(-1)?.weight, 60);
});
