// Checks the ASVS ledger: every named test exists, and every line is complete.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const ledger = readFileSync(`${root}docs/internals/asvs.md`, "utf8");
const rows = ledger
  .split("\n")
  .filter((line) => /^\| \d/.test(line))
  .map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );

test("every test that the ledger names exists", () => {
  let tests = 0;
  for (const [id, , , , , named = ""] of rows) {
    for (const entry of named === "" ? [] : named.split("<br>")) {
      const [, file = "", group, title = ""] = /^`([\w/.-]+)`: (?:(.+) › )?(.+)$/.exec(entry) ?? [];
      const path = `${root}${file.startsWith("tests/") ? "" : "services/auth/test/"}${file}`;
      assert.ok(existsSync(path), `${id}: ${entry}`);
      const text = readFileSync(path, "utf8");
      assert.ok(
        text.includes(`test("${title}"`) || text.includes(`  "${title}"`),
        `${id}: ${entry}`,
      );
      // A group's name may continue with the database that it runs on.
      assert.ok(
        group === undefined || text.includes(`"${group}"`) || text.includes(`\`${group} on $`),
        `${id}: ${entry}`,
      );
      tests += 1;
    }
  }
  assert.ok(tests > 80, `${tests} tests are named`);
});

test("requirements are unique and sorted, with a status and a place", () => {
  assert.ok(rows.length > 90, `${rows.length} requirements`);
  let before = [0, 0, 0];
  for (const row of rows) {
    const [id = "", level = "", requirement = "", status = "", where = ""] = row;
    assert.equal(row.length, 6, id);
    const place = id.split(".").map(Number);
    const index = place.findIndex((part, at) => part !== before[at]);
    assert.ok(
      place.length === 3 && index >= 0 && place[index]! > before[index]!,
      `${id} is out of order`,
    );
    before = place;
    assert.match(level, /^[123]$/, id);
    assert.ok(requirement !== "", id);
    assert.match(status, /^(?:met|in part|not met)$/, id);
    assert.ok(where !== "", `${id} does not say where`);
  }
});
