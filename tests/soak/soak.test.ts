// Short soak tests. PLATFORM_SOAK_SECONDS=600 selects the long form; `npm run soak` runs one of them on either runtime.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLevel, soakGuests } from "./guests.ts";
import { assertReleased, soakMixedLoad } from "./mixed-load.ts";
import { soakReload } from "./reload.ts";
import { soakUpstreamLoss } from "./upstream-loss.ts";

const longSeconds = Number(process.env["PLATFORM_SOAK_SECONDS"] ?? 0);
const timeout = (longSeconds + 180) * 1000;

test(
  "reloads under load fail no request and drop no WebSocket or event stream",
  { timeout },
  async () => {
    const figures = await soakReload(longSeconds || 3);
    assert.ok(figures.fileReloads >= 2 && figures.apiChanges >= 2, JSON.stringify(figures));
    assert.ok(figures.requests > 100 && figures.messages > 100 && figures.events > 100);
  },
);

test(
  "no idempotent request fails when an upstream is killed and restarted while another one runs",
  { timeout },
  async () => {
    const figures = await soakUpstreamLoss(longSeconds || 4);
    assert.ok(figures.kills >= 2 && figures.requests > 100, JSON.stringify(figures));
  },
);

test(
  "after mixed load with disconnecting clients no descriptor stays open",
  { timeout },
  async () => {
    const figures = await soakMixedLoad(longSeconds || 2);
    assert.ok(figures.aborted > 50);
    assertReleased(figures, longSeconds > 0 ? ["rssMib", "heapMib"] : []);
  },
);

test("guests that trap, run out of fuel and grow harm no other one", { timeout }, async () => {
  const figures = await soakGuests(longSeconds || 3);
  assert.ok(figures.good > 100 && figures.failures > 20, JSON.stringify(figures));
  assertReleased(figures, longSeconds > 0 ? ["heapMib"] : []);
  if (longSeconds > 0) assertLevel(figures);
});
