// The planner: cells are shared by equal upstreams, given back when unused, and never given out twice.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { RouteConfig } from "../../src/config/route.ts";
import { Confinement } from "../../src/resolve/confinement.ts";
import { resolveRoute } from "../../src/resolve/resolve-route.ts";
import { type RouteSet, diffRoutes } from "../../src/control/differ.ts";
import { indexRoutes } from "../../src/control/overlay.ts";
import { RoutePlanner } from "../../src/control/planner.ts";
import { makeRouteKey } from "../../src/shared-state/index.ts";

const defaults = {
  bodyBytesMax: 1000,
  timeouts: { connectMs: 1, responseHeadMs: 1, idleMs: 1, totalMs: 0 },
  jwksUrl: undefined,
  cutFields: [],
  streamMsMax: 600_000,
  issuer: undefined,
  audience: undefined,
  isBindingStrict: false,
  place: { cluster: "default", region: "us-east" },
  confinement: new Confinement({ roots: [], variables: [], networks: [] }),
};

function compile(routes: readonly RouteConfig[]): RouteSet {
  return new Map(
    [...indexRoutes(routes)].map(([key, config]) => [key, resolveRoute(config, defaults)]),
  );
}

function makePlanner(options: { routesMax?: number; targetsMax?: number; reused?: number[] } = {}) {
  const clock = { nowMs: 0 };
  const planner = new RoutePlanner({
    routesMax: options.routesMax ?? 100,
    targetsMax: options.targetsMax ?? 100,
    linksMax: 1_000,
    reuseDelayMs: 1000,
    readNowMs: () => clock.nowMs,
    onRouteReuse: () => undefined,
    onLinkReuse: () => undefined,
    onTargetReuse: (slot) => options.reused?.push(slot),
  });
  let running: RouteSet = new Map();
  return {
    planner,
    clock,
    become: (routes: readonly RouteConfig[]) => {
      const wanted = compile(routes);
      const planned = planner.plan(diffRoutes(running, wanted));
      planned.commit();
      running = wanted;
      return planned;
    },
    plan: (routes: readonly RouteConfig[]) => planner.plan(diffRoutes(running, compile(routes))),
  };
}

test("equal upstreams of two routes share a slot, whatever their paths", () => {
  const { become } = makePlanner();
  const { upsert } = become([
    { prefix: "/a", target: "http://t:80/x" },
    { prefix: "/b", targets: ["http://t/y", "http://u"] },
  ]);
  assert.equal(upsert[0]?.targets[0]?.slot, upsert[1]?.targets[0]?.slot);
  assert.notEqual(upsert[1]?.targets[0]?.slot, upsert[1]?.targets[1]?.slot);
});

test("a changed route and a used upstream keep their slots", () => {
  const { become } = makePlanner();
  const before = become([{ prefix: "/a", target: "http://t" }]).upsert[0];
  const after = become([{ prefix: "/a", targets: ["http://t", "http://u"] }]).upsert[0];
  assert.equal(after?.slot, before?.slot);
  assert.equal(after?.targets[0]?.slot, before?.targets[0]?.slot);
  assert.equal(after?.metricsId, before?.metricsId);
});

test("a released slot is reused after a delay, and cleared", () => {
  const reused: number[] = [];
  const { become, clock, planner } = makePlanner({ targetsMax: 1, reused });
  become([{ prefix: "/a", target: "http://t" }]);
  become([]);
  assert.throws(
    () => become([{ prefix: "/a", target: "http://u" }]),
    /maximum number of upstreams/,
  );
  clock.nowMs = 1000;
  become([{ prefix: "/a", target: "http://u" }]);
  assert.deepEqual(reused, [0]);
  assert.deepEqual(planner.listTargets(), [{ slot: 0, url: "http://u" }]);
});

test("a change that does not fit acquires no slots", () => {
  const { become, plan, planner } = makePlanner({ routesMax: 2 });
  become([{ prefix: "/a", target: "http://t" }]);
  const routes = ["/a", "/b", "/c"].map((prefix) => ({ prefix, target: "http://t" }));
  assert.throws(() => plan(routes), /maximum number of routes/);
  assert.equal(planner.findSpec(makeRouteKey(undefined, "/b")), undefined);
});

test("slots of rolled-back changes and of removed upstreams become free", () => {
  const { become, plan, clock } = makePlanner({ routesMax: 2, targetsMax: 3 });
  for (let round = 0; round < 10; round++) {
    clock.nowMs += 2000;
    plan([{ prefix: "/b", targets: ["http://x", "http://y"] }]).rollBack();
    clock.nowMs += 2000;
    become([{ prefix: "/a", target: `http://t${round}` }]);
    clock.nowMs += 2000;
    become([{ prefix: "/a", target: `http://u${round}` }]);
  }
  become([]);
  clock.nowMs += 2000;
  const both = ["/x", "/y"].map((prefix) => ({ prefix, target: `http://t${prefix}` }));
  assert.equal(become(both).upsert.length, 2);
});

test("no slot has two owners after any sequence of changes and rollbacks", () => {
  const route = fc.record({
    prefix: fc.constantFrom("/a", "/b", "/c", "/d"),
    targets: fc.uniqueArray(fc.constantFrom("http://t", "http://u", "http://v", "http://w"), {
      minLength: 1,
    }),
  });
  const steps = fc.array(
    fc.record({ routes: fc.array(route, { maxLength: 4 }), back: fc.boolean(), ms: fc.nat(1500) }),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(steps, (list) => {
      const { become, plan, planner, clock } = makePlanner({ targetsMax: 200, routesMax: 200 });
      for (const step of list) {
        clock.nowMs += step.ms;
        if (step.back) plan(step.routes).rollBack();
        else become(step.routes);
        if (step.back) continue;
        const owners = new Map<number, string>();
        const routeSlots = new Set<number>();
        for (const key of compile(step.routes).keys()) {
          const spec = planner.findSpec(key) ?? assert.fail("a route has no cells");
          assert.ok(!routeSlots.has(spec.slot));
          routeSlots.add(spec.slot);
          for (const target of spec.targets) {
            assert.equal(owners.get(target.slot) ?? target.url, target.url);
            owners.set(target.slot, target.url);
          }
        }
        assert.equal(planner.listTargets().length, owners.size);
      }
    }),
    { numRuns: 200 },
  );
});
