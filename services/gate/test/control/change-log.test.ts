// The list of the last changes of routes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangeLog } from "../../src/control/change-log.ts";

test("the oldest changes are dropped, and long lists of routes are cut but counted", () => {
  const log = new ChangeLog();
  const routes = Array.from({ length: 150 }, (_, at) => `/${at}`);
  for (let count = 0; count < 250; count++) {
    log.add({
      at: "2026-01-01T00:00:00.000Z",
      what: `change ${count}`,
      actor: "operator",
      added: routes,
      updated: [],
      removed: [],
      etag_before: "a",
      etag_after: "b",
    });
  }
  const all = log.list(1_000);
  assert.deepEqual([all.length, all[0]?.what, all.at(-1)?.what], [200, "change 249", "change 50"]);
  assert.deepEqual([all[0]?.added.length, all[0]?.counts.added], [100, 150]);
  assert.equal(log.list(3).length, 3);
});
