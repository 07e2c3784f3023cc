// Handlers that fail, in a process of its own on each runtime: the answer, the log, and the next request.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";

const FIXTURE = fileURLToPath(new URL("../fixture/failing-service.ts", import.meta.url));
const BUN = fileURLToPath(
  new URL("../../../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url),
);
const WAIT_MS = 60_000;

for (const [runtime, program] of [
  ["Node", process.execPath],
  ["Bun", BUN],
] as const) {
  const skip = existsSync(program) ? false : `${runtime} is not installed`;
  test(
    `${runtime}: failing handlers answer 500, the log names their line, the service continues`,
    {
      skip,
    },
    async (t) => {
      const service = startService(t, program);
      const url = `http://127.0.0.1:${(await service.waitFor("ready")).listeners![0]!.port}`;
      const routes = listRoutes();
      assert.ok(routes.length > 8);
      await Promise.all(routes.map((route) => checkFailure(service, url, route)));
      assert.equal(await (await fetch(url)).text(), "fine");
    },
  );
}

interface FailingRoute {
  readonly path: string;
  readonly line: number;
}

/** The routes of the fixture and their lines. */
function listRoutes(): FailingRoute[] {
  const lines = readFileSync(FIXTURE, "utf8").split("\n");
  return lines.flatMap((text, index) => {
    const [, path = "/"] = /^route\("GET", "([^"]*)"/.exec(text) ?? [];
    return path === "/" ? [] : [{ path, line: index + 1 }];
  });
}

async function checkFailure(
  service: StartedService,
  url: string,
  { path, line }: FailingRoute,
): Promise<void> {
  // The first answer of this route is valid, the second sends the same Response again.
  if (path === "/twice") await (await fetch(url + path)).text();
  const answer = await fetch(url + path);
  const problem = (await answer.json()) as { trace_id: string };
  assert.deepEqual([path, answer.status], [path, 500]);
  const logged = await service.waitFor("request failed", problem.trace_id);
  assert.equal(logged.level, "error");
  assert.match(logged.declared_at!, new RegExp(`failing-service\\.ts:${line}:\\d+$`));
  assert.match(logged.error!.stack, new RegExp(`\n +at [^]*${path === "/throws" ? FIXTURE : ""}`));
}

interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly trace_id: string;
  readonly declared_at?: string;
  readonly listeners?: readonly { readonly port: number }[];
  readonly error?: { readonly stack: string };
}

interface StartedService {
  /** The line with a message, of a trace if it is given. */
  waitFor(msg: string, traceId?: string): Promise<LogLine>;
}

function startService(t: TestContext, program: string): StartedService {
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const env = { ...inherited, PORT: "0", HOST: "127.0.0.1", PLATFORM_LOG_FORMAT: "json" };
  const child = spawn(program, [FIXTURE], { env, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const lines: LogLine[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(JSON.parse(line) as LogLine);
    for (const check of waiting) check();
  });
  return {
    waitFor: (msg, traceId = "") =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`no "${msg}" in ${JSON.stringify(lines)}`)),
          WAIT_MS,
        );
        const check = (): void => {
          const found = lines.find((line) => line.msg === msg && line.trace_id === traceId);
          if (found === undefined) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve(found);
        };
        waiting.add(check);
        check();
      }),
  };
}
