// The Grafana dashboard matches its table.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { createDashboard } from "./write-dashboard.ts";

test("deploy/grafana-dashboard.json is up to date", () => {
  const text = readFileSync(new URL("../deploy/grafana-dashboard.json", import.meta.url), "utf8");
  assert.deepEqual(JSON.parse(text), createDashboard());
});
