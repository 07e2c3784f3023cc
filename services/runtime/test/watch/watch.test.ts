// Changes of a running service under load.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startRun, stopRun } from "../fixture/run-process.ts";

const root = mkdtempSync(join(tmpdir(), "watch-"));
after(() => rmSync(root, { recursive: true }));

test("a change is taken over without a failed request; errors keep the running version", async (t) => {
  const file = join(root, "watched.service.ts");
  const write = (version: number | string): void => {
    const text =
      typeof version === "number"
        ? `import { events } from "@platform/service";
export route GET / { return { version: ${version}, pid: process.pid } }
export route GET /events {
  return events(async function* (signal) {
    yield { data: "${version}" };
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  });
}
`
        : version;
    writeFileSync(file, text);
  };
  write(0);
  const running = await startRun(t, root, "watched.service.ts", "--watch");
  await running.waitFor("running on");
  let expected = 0;
  let oldest = 0;
  let answers = 0;
  const over = new AbortController();
  const failures: string[] = [];
  const load = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) {
      const floor = oldest;
      try {
        // A connection per request: each one is accepted by either process.
        const answer = await fetch(running.url, { headers: { Connection: "close" } });
        const { version } = (await answer.json()) as { version: number };
        if (version < floor || version > expected)
          failures.push(`${version} not in ${floor}..${expected}`);
        answers++;
      } catch (error) {
        failures.push(String((error as Error).cause ?? error));
      }
      await sleep(2);
    }
  });
  for (let version = 1; version <= 3; version++) {
    const { pid } = (await (await fetch(running.url)).json()) as { pid: number };
    const stream = await openStream(`${running.url}/events`, `data: ${version - 1}`);
    if (version % 3 === 0) {
      write("export route FETCH / { }\n");
      await running.waitFor("the running version stays");
    }
    expected = version;
    write(version);
    await running.waitFor("reloaded on");
    await stream.end;
    await awaitExit(pid);
    oldest = version;
  }
  over.abort();
  await Promise.all(load);
  assert.deepEqual(failures.slice(0, 5), []);
  assert.ok(answers > 100, `${answers} answers`);
  write("const no = 1;\n");
  await running.waitFor("declares no route");
  await stopRun(running);
});

/** Opens an event stream and reads until `first`; `end` resolves when the server has ended it, and rejects if it broke off. */
async function openStream(url: string, first: string): Promise<{ end: Promise<void> }> {
  const { body } = await fetch(url);
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes(first)) {
    const { value, done } = await reader.read();
    assert.ok(!done, `ended after ${text}`);
    text += value;
  }
  const readOn = async (): Promise<void> => {
    for (let result = await reader.read(); !result.done;) result = await reader.read();
  };
  return { end: readOn() };
}

/** Waits for the exit of a process that drains. */
async function awaitExit(pid: number): Promise<void> {
  const endsMs = performance.now() + 60_000;
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    assert.ok(performance.now() < endsMs, "the old process has not exited");
    await sleep(20);
  }
}
