// The overlay and the differ: any sequence of changes ends where a fresh start with the result would begin.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { RouteConfig } from "../../src/config/route.ts";
import { Confinement } from "../../src/resolve/confinement.ts";
import { resolveRoute } from "../../src/resolve/resolve-route.ts";
import { type RouteSet, diffRoutes, isEmptyDiff } from "../../src/control/differ.ts";
import {
  EMPTY_OVERLAY,
  type Overlay,
  type RouteConfigs,
  applyOverlay,
  decodeOverlay,
  encodeOverlay,
  indexRoutes,
  isEmptyOverlay,
  removeRoute,
  replaceRoutes,
  upsertRoute,
} from "../../src/control/overlay.ts";
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

const route: fc.Arbitrary<RouteConfig> = fc.record(
  {
    prefix: fc.constantFrom("/", "/a", "/a/", "/b", "/c/d"),
    host: fc.constantFrom("x.org", "y.org"),
    target: fc.constantFrom("http://t1", "http://t2", "https://t1/base"),
    strip_prefix: fc.constant(true),
  },
  { requiredKeys: ["prefix", "target"], noNullPrototype: true },
);

type Step =
  | { do: "set"; route: RouteConfig }
  | { do: "remove"; route: RouteConfig }
  | { do: "replace"; routes: RouteConfig[] }
  | { do: "reload"; routes: RouteConfig[] };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("set" as const), route }),
  fc.record({ do: fc.constant("remove" as const), route }),
  fc.record({ do: fc.constant("replace" as const), routes: fc.array(route, { maxLength: 6 }) }),
  fc.record({ do: fc.constant("reload" as const), routes: fc.array(route, { maxLength: 6 }) }),
);

function compile(routes: RouteConfigs): RouteSet {
  return new Map([...routes].map(([key, config]) => [key, resolveRoute(config, defaults)]));
}

function take(base: RouteConfigs, overlay: Overlay, next: Step): [RouteConfigs, Overlay] {
  switch (next.do) {
    case "set":
      return [base, upsertRoute(overlay, base, next.route)];
    case "remove":
      return [base, removeRoute(overlay, base, next.route)];
    case "replace":
      return [base, replaceRoutes(base, indexRoutes(next.routes))];
    case "reload":
      return [indexRoutes(next.routes), overlay];
    default:
      return next satisfies never;
  }
}

test("a start with the stored overlay restores the result of any sequence of changes", () => {
  fc.assert(
    fc.property(
      fc.array(route, { maxLength: 6 }),
      fc.array(step, { maxLength: 12 }),
      (file, steps) => {
        let base = indexRoutes(file);
        let overlay = EMPTY_OVERLAY;
        let running = compile(applyOverlay(base, overlay));
        for (const next of steps) {
          [base, overlay] = take(base, overlay, next);
          const wanted = compile(applyOverlay(base, overlay));
          const diff = diffRoutes(running, wanted);
          const result = new Map(running);
          for (const key of diff.removed) assert.ok(result.delete(key));
          for (const added of diff.added) {
            assert.ok(!result.has(added.key));
            result.set(added.key, added);
          }
          for (const updated of diff.updated) {
            assert.notEqual(result.get(updated.key)?.fingerprint, updated.fingerprint);
            result.set(updated.key, updated);
          }
          running = result;
        }
        const fresh = compile(applyOverlay(base, decodeOverlay(encodeOverlay(overlay))));
        assert.ok(isEmptyDiff(diffRoutes(running, fresh)));
        assert.ok(isEmptyDiff(diffRoutes(fresh, running)));
        assert.deepEqual([...running.keys()].sort(), [...fresh.keys()].sort());
      },
    ),
    { numRuns: 300 },
  );
});

test("a route that was set is active, and a removed one is not", () => {
  fc.assert(
    fc.property(fc.array(route, { maxLength: 6 }), route, (file, one) => {
      const base = indexRoutes(file);
      const key = makeRouteKey(one.host, one.prefix);
      const set = upsertRoute(EMPTY_OVERLAY, base, one);
      assert.deepEqual(applyOverlay(base, set).get(key), one);
      const removed = removeRoute(set, base, one);
      assert.equal(applyOverlay(base, removed).has(key), false);
      assert.deepEqual(applyOverlay(base, upsertRoute(removed, base, one)).get(key), one);
    }),
  );
});

test("a route equal to the configuration is not stored", () => {
  const base = indexRoutes([{ prefix: "/a", target: "http://t", host: "x.org" }]);
  const set = upsertRoute(EMPTY_OVERLAY, base, { host: "x.org", target: "http://t", prefix: "/a" });
  assert.ok(isEmptyOverlay(set));
});

test("a route written differently that behaves the same is unchanged", () => {
  const before = compile(indexRoutes([{ prefix: "/a", target: "http://t" }]));
  const after = compile(
    indexRoutes([{ prefix: "/a", targets: ["http://t"], load_balancer: "round_robin" }]),
  );
  assert.ok(isEmptyDiff(diffRoutes(before, after)));
});

const damages: [what: string, change: (text: string) => string, message: RegExp][] = [
  ["no JSON", (text) => text.slice(0, -5), /not JSON/],
  [
    "another version",
    (text) => text.replace('"version": 1', '"version": 2'),
    /format version is 2/,
  ],
  ["a changed route", (text) => text.replace("http://t", "http://u"), /checksum does not match/],
  ["another form", () => "[]", /is not an overlay/],
];

for (const [what, change, message] of damages) {
  test(`an overlay with ${what} is refused`, () => {
    const overlay = upsertRoute(EMPTY_OVERLAY, new Map(), { prefix: "/a", target: "http://t" });
    assert.throws(() => decodeOverlay(change(encodeOverlay(overlay))), message);
  });
}
