// The builds of the console's page and of the programs beside a running platform.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import { createLogger, type Logger } from "@platform/kernel/log";
import { buildConsole } from "../../src/command/background-build.ts";

const folder = mkdtempSync(join(tmpdir(), "background-build-"));
after(() => rmSync(folder, { recursive: true }));

interface Stage {
  readonly lines: Record<string, unknown>[];
  /** Resolves with the first line that is logged. */
  readonly logged: Promise<void>;
  /** Resolves when the build has ended. */
  readonly drain: () => Promise<void>;
}

function begin(program: string): Stage {
  const file = join(folder, "program.mjs");
  writeFileSync(file, program);
  const lines: Record<string, unknown>[] = [];
  const logged = Promise.withResolvers<void>();
  const logger: Logger = createLogger({
    service: "test",
    level: "info",
    write: (line) => {
      lines.push(JSON.parse(line) as Record<string, unknown>);
      logged.resolve();
    },
  });
  const stopping = new AbortController();
  const hooks: (() => unknown)[] = [];
  const lifecycle = {
    stopping: stopping.signal,
    onDrain: (_name: string, hook: () => unknown) => hooks.push(hook),
  } as unknown as Lifecycle;
  void buildConsole({ lifecycle, logger, program: file });
  return {
    lines,
    logged: logged.promise,
    drain: async () => {
      stopping.abort();
      for (const hook of hooks) await hook();
    },
  };
}

test("a failed build is logged with its reason and the command to run", async () => {
  const { lines, logged } = begin("throw new Error('no such package: vite')");
  await logged;
  assert.equal(lines.length, 1);
  assert.match(String(lines[0]!["error"]), /no such package: vite/);
  assert.equal(lines[0]!["remedy"], "npm run build:console");
});

test("a build that is running when the platform stops is ended without a complaint", async () => {
  const { lines, drain } = begin("setInterval(() => {}, 1_000)");
  await drain();
  assert.deepEqual(lines, []);
});
