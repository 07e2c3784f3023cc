// The corpus of bounces, complaints and other reports: each has the consequence that stands beside it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseReports } from "../../src/bounce/report.ts";
import { judgeReports, type ReportVerdict } from "../../src/bounce/verdict.ts";
import { readCorpus, type Expected } from "../corpus-reader.ts";

const KINDS: readonly Expected[] = [
  "hard",
  "soft",
  "delayed",
  "complaint",
  "alarm",
  "optout",
  "feedback",
  "none",
];

function summarize(verdict: ReportVerdict | undefined): Expected {
  if (verdict === undefined) return "none";
  switch (verdict.event) {
    case "bounced": {
      const isHard = verdict.bounceType === "hard";
      assert.equal(verdict.suppression, isHard ? "hard_bounce" : undefined);
      return isHard ? "hard" : "soft";
    }
    case "complained":
      assert.equal(verdict.suppression, "complaint");
      return verdict.isAlarm === true ? "alarm" : "complaint";
    case "unsubscribed":
      return "optout";
    default:
      assert.equal(verdict.suppression, undefined);
      return verdict.event;
  }
}

test("reports of many servers have their consequence, and no living address is suppressed", async (context) => {
  const corpus = readCorpus();
  assert.ok(corpus.length >= 300, `${corpus.length} reports`);
  const counts = new Map<string, number>();
  const wrong: string[] = [];
  for (const { name, expected, sender, content } of corpus) {
    const reports = await parseReports(content, { sender });
    const found = summarize(judgeReports(reports, "ada@example.org"));
    const cell = `${expected} ${found}`;
    counts.set(cell, (counts.get(cell) ?? 0) + 1);
    if (found !== expected) wrong.push(`${found} in place of ${expected}: ${name}`);
  }
  context.diagnostic(`${corpus.length} reports: expected (rows) and found (columns)`);
  context.diagnostic(["", ...KINDS].map((kind) => kind.padStart(10)).join(""));
  for (const row of KINDS) {
    const cells = KINDS.map((column) => String(counts.get(`${row} ${column}`) ?? 0).padStart(10));
    context.diagnostic(row.padStart(10) + cells.join(""));
  }
  assert.deepEqual(wrong, []);
});

test("every failure has a detail for its event", async () => {
  for (const { name, expected, sender, content } of readCorpus()) {
    if (expected !== "hard" && expected !== "soft") continue;
    const verdict = judgeReports(await parseReports(content, { sender }), "ada@example.org");
    if (/empty|without a header|without Status and answer|4\.0\.0 and no answer/.test(name))
      continue;
    assert.ok((verdict?.detail ?? "").length > 3, name);
  }
});
