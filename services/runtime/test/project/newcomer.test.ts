// The first minute of a new user, with a clock: init, run --watch, an answer, an edit, the new answer.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runPlatform, startRun, stopRun } from "../fixture/run-process.ts";

const root = mkdtempSync(join(tmpdir(), "newcomer-"));
after(() => rmSync(root, { recursive: true }));
const MINUTE_MS = 60_000;

test("from an empty folder to an edited service within a minute", async (t) => {
  const beganMs = performance.now();
  let lastMs = beganMs;
  const report = (step: string): void => {
    const nowMs = performance.now();
    t.diagnostic(`${step}: ${Math.round(nowMs - lastMs)} ms`);
    lastMs = nowMs;
  };
  assert.equal(runPlatform(root, "init", "notes").status, 0);
  report("platform init notes");
  const project = join(root, "notes");
  const running = await startRun(t, project, "main.service.ts", "--watch");
  const headers = { Connection: "close" };
  const body = '{"text":"hello"}';
  const made = await fetch(`${running.url}/notes`, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body,
  });
  assert.equal(((await made.json()) as { text: string }).text, "hello");
  report("platform run main.service.ts --watch, to the first answer");
  const file = join(project, "main.service.ts");
  writeFileSync(file, `${readFileSync(file, "utf8")}\nroute("GET", "/edited", () => "new");\n`);
  for (let text = ""; text !== "new";) {
    assert.ok(performance.now() - lastMs < MINUTE_MS, text);
    text = await (await fetch(`${running.url}/edited`, { headers })).text();
  }
  report("an edit, to the new answer");
  t.diagnostic(`in all: ${Math.round(performance.now() - beganMs)} ms`);
  await stopRun(running);
});
