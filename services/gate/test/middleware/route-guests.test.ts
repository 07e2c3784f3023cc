// The choice between the modules of a split: weights within one per cent, and clients that stay where they are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Known } from "@platform/http1";
import type { GateExchange } from "../../src/exchange/exchange.ts";
import { GuestRegistry } from "../../src/middleware/guest-registry.ts";
import { RouteGuests } from "../../src/middleware/route-guests.ts";
import type { GuestsSpec, RouteSpec, SplitSticky } from "../../src/shared-state/index.ts";

const REQUESTS = 100_000;
const TARGETS = [
  { name: "a", weight: 70 },
  { name: "b", weight: 25 },
  { name: "c", weight: 5 },
  { name: "d", weight: 0 },
];

function createSplit(sticky: SplitSticky, targets = TARGETS) {
  const registry = new GuestRegistry({
    readNowMs: () => 0,
    log: () => undefined,
    report: () => undefined,
  });
  const spec = { prefix: "/shop/", cutFields: [] } as unknown as RouteSpec;
  const guests = { config: "", split: { targets, sticky } } as GuestsSpec;
  return new RouteGuests(guests, spec, registry);
}

/** A request with what a choice looks at. */
function request({
  ip = "192.0.2.1",
  user,
  cookie,
}: {
  ip?: string;
  user?: string;
  cookie?: string;
}) {
  const fields = {
    find: (name: string) => (name.toLowerCase() === "x-user" ? user : undefined),
    first: (known: number) => (known === Known.Cookie && cookie !== undefined ? 0 : -1),
    next: () => -1,
    value: () => cookie,
  };
  return {
    head: { fields },
    userData: { forwarding: { clientAddress: ip } },
  } as unknown as GateExchange;
}

function checkShares(counts: ReadonlyMap<string, number>): void {
  for (const { name, weight } of TARGETS) {
    const share = (counts.get(name) ?? 0) / REQUESTS;
    assert.ok(Math.abs(share - weight / 100) < 0.01, `${name}: ${share}`);
  }
  assert.equal(counts.get("d"), undefined);
}

const choosers: [name: string, sticky: SplitSticky, make: (index: number) => GateExchange][] = [
  ["at random", { by: "none" }, () => request({})],
  [
    "by address",
    { by: "ip" },
    (index) => request({ ip: `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}` }),
  ],
  ["by a field", { by: "header", name: "X-User" }, (index) => request({ user: `user-${index}` })],
  ["by a field that is not there", { by: "header", name: "X-User" }, () => request({})],
  ["of clients without a cookie", { by: "cookie" }, () => request({})],
];
for (const [name, sticky, make] of choosers) {
  test(`choices ${name} have the weights of the modules`, () => {
    const split = createSplit(sticky);
    const counts = new Map<string, number>();
    for (let index = 0; index < REQUESTS; index++) {
      const { reference } = split.choose(make(index)).request!;
      counts.set(reference, (counts.get(reference) ?? 0) + 1);
    }
    checkShares(counts);
  });
}

test("a client that is known never moves, on any worker", () => {
  const workers = [createSplit({ by: "ip" }), createSplit({ by: "ip" })];
  const users = createSplit({ by: "header", name: "X-User" });
  for (let index = 0; index < 1_000; index++) {
    const ip = `2001:db8::${index.toString(16)}`;
    const chosen = workers.map((split) => split.choose(request({ ip })).request!.reference);
    assert.equal(chosen[0], chosen[1]);
    const user = `user-${index}`;
    const first = users.choose(request({ user, ip })).request!.reference;
    assert.equal(users.choose(request({ user, ip: "192.0.2.9" })).request!.reference, first);
  }
});

test("a cookie keeps a client at its module while that has a weight", () => {
  const split = createSplit({ by: "cookie" });
  for (let index = 0; index < 1_000; index++) {
    const { request: first, cookie = "" } = split.choose(request({}));
    const sent = `other=1; ${cookie.slice(0, cookie.indexOf(";"))}`;
    const again = split.choose(request({ cookie: sent }));
    assert.equal(again.request!.reference, first!.reference);
    assert.equal(again.cookie, undefined);
  }
  const moved = split.choose(request({ cookie: "_platform_split=d" }));
  assert.notEqual(moved.request!.reference, "d");
  assert.match(moved.cookie ?? "", /^_platform_split=[abc]; Path=\/shop; Max-Age=86400;/);
});
