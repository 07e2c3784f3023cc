import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { formatReport, rewriteSection, type CaseReport } from "../harness/report.ts";

const REPORT: CaseReport = {
  work: "Some work.",
  columns: [{ key: "cpuUs", title: "CPU µs/request", digits: 1 }],
  rows: [
    { name: "ours", isOurs: true, version: "1", rounds: [{ cpuUs: 12 }, undefined, { cpuUs: 30 }] },
    {
      name: "peer",
      isOurs: false,
      version: "2",
      rounds: [{ cpuUs: 10 }, { cpuUs: 1 }, { cpuUs: 20 }],
    },
    { name: "absent", isOurs: false, version: "", rounds: [], note: "not installed" },
  ],
  ratioColumns: ["cpuUs"],
  goals: [
    { column: "cpuUs", against: "peer", atMost: 1.4 },
    { column: "cpuUs", against: "peer", atMost: 1.3 },
    { column: "cpuUs", against: "absent", atMost: 1 },
  ],
};

test("a report shows medians, ratios with their spread, verdicts, and says who was absent", () => {
  const text = formatReport(REPORT);
  assert.match(text, /\| ours 1 +\| +21\.0 \|/);
  assert.match(text, /\| ours +\| +1\.35 \(1\.20–1\.50\) \|/);
  assert.match(text, /ours ÷ peer, CPU µs\/request: 1\.35, goal ≤ 1\.4: met/);
  assert.match(text, /goal ≤ 1\.3: \*\*missed\*\*/);
  assert.match(text, /\| absent +\| +— \|/);
  assert.match(text, /- absent: not installed/);
  assert.doesNotMatch(text, /÷ absent/);
});

test("a section replaces its former self and stands at its place, the others stay", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "platform-report-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "RESULTS.md");
  const order = ["gate/a", "gate/b", "gate/c"];
  for (const [name, markdown] of [
    ["gate/c", "third"],
    ["gate/a", "first, old"],
    ["gate/b", "second"],
    ["gate/a", "first, new"],
  ] as const) {
    rewriteSection(path, "# Results\n", { name, markdown }, order);
  }
  const text = readFileSync(path, "utf8");
  assert.deepEqual(
    [...text.matchAll(/^(?:first|second|third).*$/gm)].map((match) => match[0]),
    ["first, new", "second", "third"],
  );
  assert.equal(text.split("# Results").length, 2);
});
