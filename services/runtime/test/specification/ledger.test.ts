// The ledger SPEC.md: every construct of the specification has a row, and every test that a row names exists.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

/** Commands and constructs, as the specification writes them. */
const CONSTRUCTS = [
  "platform init <name>",
  "platform run <file> --watch",
  "platform build <file> -o <out>",
  "platform deploy --target docker",
  "platform deploy --target k8s --namespace <ns>",
  "platform --version",
  "server",
  "database",
  "migrations",
  "export route <METHOD> <path> (req)",
  "req.body",
  "req.params",
  "every <duration>",
  "cache",
];

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const rows = readFileSync(`${root}services/runtime/SPEC.md`, "utf8")
  .split("\n")
  .filter((line) => /^\| .*`.*\.test\.ts`/.test(line))
  .map((line) => line.slice(1, -1).split(" | "))
  .map(([subject = "", covered = ""]) => ({ subject: subject.trim(), covered: covered.trim() }));

test("every construct of the specification has a row", () => {
  const subjects = new Set(rows.flatMap(({ subject }) => subject.match(/`[^`]+`/g) ?? []));
  for (const construct of CONSTRUCTS) assert.ok(subjects.has(`\`${construct}\``), construct);
});

test("every test that the ledger names exists", () => {
  for (const { subject, covered } of rows) {
    for (const entry of covered.split("<br>")) {
      const [, file = "", title = ""] = /^`([\w/.-]+)`: (.+)$/.exec(entry) ?? [];
      assert.ok(file !== "" && existsSync(root + file), `${subject}: ${entry}`);
      const text = readFileSync(root + file, "utf8");
      const isThere = text.includes(`"${title}"`) || text.includes(`\`${title}\``);
      assert.ok(isThere, `${subject}: ${entry}`);
    }
  }
});
