// The soaks in short, so that they cannot rot; `npm run soak` is their long form.
import assert from "node:assert/strict";
import { test } from "node:test";
import { soakMixedLoad } from "./mixed-load.ts";
import { soakReload } from "./reload.ts";
import { soakUpstreamLoss } from "./upstream-loss.ts";

test("reloads under load fail no request and drop no WebSocket or event stream", async () => {
  const figures = await soakReload(3);
  assert.ok(figures.fileReloads >= 2 && figures.apiChanges >= 2, JSON.stringify(figures));
  assert.ok(figures.requests > 100 && figures.messages > 100 && figures.events > 100);
});

test("an upstream that is killed and comes back costs no idempotent request while another lives", async () => {
  const figures = await soakUpstreamLoss(4);
  assert.ok(figures.kills >= 2 && figures.requests > 100, JSON.stringify(figures));
});

test("after mixed load with vanishing clients no descriptor stays open", async () => {
  const { before, after, aborted } = await soakMixedLoad(2);
  assert.ok(aborted > 50);
  assert.ok(
    after.openFiles <= before.openFiles + 8,
    `${before.openFiles} descriptors before, ${after.openFiles} after`,
  );
});
