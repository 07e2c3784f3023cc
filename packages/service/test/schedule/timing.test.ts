// Durations and cron expressions.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseCron } from "../../src/schedule/cron.ts";
import { parseDuration } from "../../src/schedule/duration.ts";

test("durations have a unit and a range", () => {
  assert.equal(parseDuration("5m"), 300_000);
  assert.equal(parseDuration("1.5s"), 1_500);
  assert.equal(parseDuration("* * * * *"), undefined);
  assert.throws(() => parseDuration("10ms"), /from 100ms to 366d/);
  assert.throws(() => parseDuration("400d"), /from 100ms to 366d/);
});

test("cron expressions find the next minute in UTC", () => {
  const cases: [expression: string, after: string, next: string][] = [
    ["* * * * *", "2026-11-22T10:00:30Z", "2026-11-22T10:01:00Z"],
    ["*/15 * * * *", "2026-11-22T10:45:00Z", "2026-11-22T11:00:00Z"],
    ["5/20 * * * *", "2026-11-22T10:26:00Z", "2026-11-22T10:45:00Z"],
    ["0 3 * * *", "2026-11-22T03:00:00Z", "2026-11-23T03:00:00Z"],
    ["30 9 * * mon-fri", "2026-11-20T09:30:00Z", "2026-11-23T09:30:00Z"],
    ["0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"],
    ["0 0 1 jan,jul *", "2026-02-01T00:00:00Z", "2026-07-01T00:00:00Z"],
    ["0 0 * * 7", "2026-11-20T00:00:00Z", "2026-11-22T00:00:00Z"],
    // crontab(5): either day if both are restricted.
    ["0 0 13 * fri", "2026-11-14T00:00:00Z", "2026-11-20T00:00:00Z"],
    ["0 0 31 * *", "2026-11-01T00:00:00Z", "2026-12-31T00:00:00Z"],
  ];
  for (const [expression, after, next] of cases) {
    const found = parseCron(expression).next(Date.parse(after));
    assert.equal(new Date(found).toISOString(), next.replace("Z", ".000Z"), expression);
  }
});

test("invalid expressions name the field", () => {
  const cases: [expression: string, message: RegExp][] = [
    ["soon", /expected a duration like 5m, or five cron fields/],
    ["60 * * * *", /"60" is not a valid minute; expected 0-59/],
    ["* 5-1 * * *", /"5-1" is not a valid hour/],
    ["* * 0 * *", /"0" is not a valid day of month/],
    ["* * * foo *", /"foo" is not a valid month/],
    ["*/0 * * * *", /"\*\/0" is not a valid minute/],
    ["1-2-3 * * * *", /"1-2-3" is not a valid minute/],
    ["0 0 31 2 *", /no date matches/],
  ];
  for (const [expression, message] of cases) assert.throws(() => parseCron(expression), message);
});
