// Restarts of a process that keeps exiting, starts after a stop, messages.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { createLogger } from "@platform/kernel/log";
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
