// The operator's bounds for gateway rules of projects.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { applyBounds, readBounds } from "../../src/projects/operator-rules.ts";

const folder = mkdtempSync(join(tmpdir(), "bounds-"));
after(() => rmSync(folder, { recursive: true }));
const path = join(folder, "projects.json");

test("bounds of a project come before those of all, also for names of built-in members", () => {
  writeFileSync(
    path,
    '{ "all": { "cap": { "rate_limit_rpm": 9 } },\n  "projects": { "notes": { "cap": { "rate_limit_rpm": 5 } } } }',
  );
  assert.deepEqual(readBounds(path, "notes").cap, { rate_limit_rpm: 5 });
  for (const name of ["constructor", "__proto__", "toString", "shop"]) {
    assert.deepEqual(readBounds(path, name), { fix: {}, cap: { rate_limit_rpm: 9 }, forbid: [] });
  }
  assert.deepEqual(readBounds(join(folder, "missing.json"), "notes").cap, {});
});

test("an invalid file is refused at its line and column", () => {
  const invalid: [text: string, message: RegExp][] = [
    ['{\n "all": { "cap": { "policy": 5 } } }', /projects\.json:2:\d+: .*policy/],
    ['{ "all": { "fix": { "host": "a" } } }', /projects\.json:1:\d+: .*host/],
    ['{ "all": { "forbid": ["nothing"] } }', /projects\.json:1:\d+: /],
    ['{ "al": {} }', /projects\.json:1:3: al/],
    ['{ "__proto__": {} }', /projects\.json:1:3: /],
  ];
  for (const [text, message] of invalid) {
    writeFileSync(path, text);
    assert.throws(() => readBounds(path, "notes"), message, text);
  }
});

test("values are fixed, cut and dropped, and each change is said", () => {
  const bounds = {
    fix: { max_body_size: 5 },
    cap: { rate_limit_rpm: 60, response_timeout_ms: 100 },
    forbid: ["cache_ttl_seconds", "ip_blocklist"],
  };
  const given = {
    rate_limit_rpm: 0,
    response_timeout_ms: 99,
    cache_ttl_seconds: 5,
    cache_methods: ["GET" as const],
  };
  const { rules, cuts } = applyBounds(given, bounds);
  assert.deepEqual(rules, { rate_limit_rpm: 60, response_timeout_ms: 99, max_body_size: 5 });
  assert.deepEqual(
    cuts.map(({ text }) => text),
    [
      "rate_limit_rpm is 60, not 0: the highest value",
      "cache_ttl_seconds has no effect: it is forbidden",
      "cache_methods has no effect: the field that it requires has none",
    ],
  );
  assert.deepEqual(applyBounds({ max_body_size: 5 }, bounds).cuts, []);
  const forbidden = { ip_blocklist: ["10.0.0.1"] };
  assert.throws(() => applyBounds(forbidden, bounds), /forbids ip_blocklist/);
});
