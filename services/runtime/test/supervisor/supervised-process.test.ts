// Restarts of a process that keeps exiting, starts after a stop, messages.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { createLogger } from "@platform/kernel/log";
import { MemoryKills } from "../../src/supervisor/memory.ts";
import { createSupervisedProcess } from "../../src/supervisor/supervised-process.ts";

test("each consecutive failure doubles the restart delay; a stable run resets it", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "platform-supervised-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const main = join(folder, "main.mjs");
  writeFileSync(main, `process.send({ type: "ready", listeners: [], pid: process.pid });`);
  const waitsMs: number[] = [];
  const reached = Promise.withResolvers<void>();
  let nowMs = 0;
  let runMs = 0;
  const supervised = createSupervisedProcess({
    name: "short-lived",
    logCommand: "",
    main: pathToFileURL(main).href,
    configure: () => ({ args: [], env: {} }),
    onLine: () => undefined,
    onReady: () => void (nowMs += runMs),
    logger: createLogger({
      service: "test",
      level: "info",
      format: "json",
      write: (line) => {
        const { restart_in_ms: waitMs } = JSON.parse(line) as { restart_in_ms?: number };
        if (waitMs === undefined) return;
        waitsMs.push(waitMs);
        // The fourth run is stable.
        if (waitsMs.length === 3) runMs = 60_000;
        if (waitsMs.length === 4) reached.resolve();
      },
    }),
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
  });
  await supervised.start();
  await reached.promise;
  await supervised.stop(1000);
  assert.deepEqual(waitsMs, [500, 1000, 2000, 500]);
});

test("a stopped process can be started again, and receives messages", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "platform-supervised-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const main = join(folder, "main.mjs");
  writeFileSync(
    main,
    `process.on("message", (message) => process.send({ type: "echo", message }));
    process.send({ type: "ready", listeners: [], pid: process.pid });`,
  );
  const pids: number[] = [];
  const echoed = Promise.withResolvers<unknown>();
  const supervised = createSupervisedProcess({
    name: "echo",
    logCommand: "",
    main: pathToFileURL(main).href,
    configure: () => ({ args: [], env: {} }),
    onLine: () => undefined,
    onReady: (_, pid) => void pids.push(pid),
    onMessage: (message) => echoed.resolve(message),
    logger: createLogger({ service: "test", write: () => undefined }),
    clock: { now: () => 0, monotonicMs: () => 0 },
  });
  await supervised.start();
  // Both wait for the same exit.
  await Promise.all([supervised.stop(60_000), supervised.stop(60_000)]);
  assert.throws(() => process.kill(pids[0]!, 0));
  supervised.send({ lost: true });
  await supervised.start();
  assert.notEqual(pids[1], pids[0]);
  supervised.send({ hello: 1 });
  assert.deepEqual(await echoed.promise, { type: "echo", message: { hello: 1 } });
  await supervised.stop(60_000);
});

test("a process that is killed for lack of memory is given up after the third time in a minute", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "platform-supervised-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const main = join(folder, "main.mjs");
  writeFileSync(
    main,
    `process.send({ type: "ready", listeners: [], pid: process.pid });
    setTimeout(() => undefined, 60_000);`,
  );
  let kills = 5;
  let nowMs = 0;
  const failures: string[] = [];
  const givenUp = Promise.withResolvers<string>();
  const supervised = createSupervisedProcess({
    name: "large",
    logCommand: "",
    main: pathToFileURL(main).href,
    configure: () => ({ args: [], env: {} }),
    onLine: () => undefined,
    onReady: (_listeners, pid) => {
      // The first kill is one of somebody else, the second one a minute before the others.
      if (failures.length > 0) kills += 1;
      if (failures.length === 2) nowMs += 60_000;
      process.kill(pid, "SIGKILL");
    },
    onFailure: ({ reason }) => void failures.push(reason),
    onRefused: givenUp.resolve,
    memoryKills: new MemoryKills(() => kills),
    logger: createLogger({ service: "test", level: "off" }),
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
  });
  await supervised.start();
  const reason = await givenUp.promise;
  const memory = "killed for lack of memory";
  assert.deepEqual(failures, ["SIGKILL", memory, memory, memory]);
  assert.match(reason, /^killed for lack of memory 3 times in a minute: .*MemoryMax=/);
  await supervised.stop(1_000);
});
