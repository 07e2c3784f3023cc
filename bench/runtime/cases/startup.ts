// (b) Times of a developer: start and reload of `platform run --watch`, and of an executable, beside an empty Node program.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { OURS_ON_NODE, findBin } from "../../harness/build.ts";
import { judgeFigure, type Row } from "../../harness/report.ts";
import { takeMedian } from "../../harness/statistics.ts";

const PROGRAM = findBin(OURS_ON_NODE, "platform");
const WAIT_MS = 60_000;
const EXECUTABLE_MS_MAX = 200;
const EXECUTABLE_MB_MAX = 160;
const RELOAD_MS_MAX = 300;

export const startup: BenchCase = {
  name: "startup",
  title: "Start, reload and executable",
  run: async (context) => {
    await using workspace = new Workspace();
    const project = join(workspace.folder, "notes");
    runPlatform(workspace.folder, "init", "notes");
    const built = join(project, "dist/notes");
    runPlatform(project, "build");
    const node = createRow("empty Node program", false);
    const executable = createRow("executable", true);
    const run = createRow("platform run", true);
    const reload = createRow("reload after a save", true);
    const answer = createRow("new answer after a save", true);
    for (let round = 1; round <= context.rounds; round += 1) {
      const empty = 'console.log("ready"); setInterval(() => {}, 1000)';
      node.rounds.push({ ms: await measureStart(project, process.execPath, ["-e", empty]) });
      executable.rounds.push({ ms: await measureStart(project, built, []) });
      run.rounds.push({ ms: await measureStart(project, process.execPath, [PROGRAM, "run"]) });
      const { reloadMs, answerMs } = await measureReload(project, round);
      reload.rounds.push({ ms: reloadMs });
      answer.rounds.push({ ms: answerMs });
      context.say(`  ${round}/${context.rounds} reload ${reloadMs} ms`);
    }
    const megabytes = statSync(built).size / 1_000_000;
    return {
      work: `The project of \`platform init\`, with a database. Times from the start of the process to the line that says ready; from the write of the file to the line that says reloaded, and to the first answer of the new version.`,
      columns: [{ key: "ms", title: "ms", digits: 0 }],
      rows: [node, executable, run, reload, answer],
      ratioColumns: [],
      goals: [],
      remarks: [
        judgeFigure("executable, ms", findMedian(executable), EXECUTABLE_MS_MAX),
        judgeFigure("executable, MB", megabytes, EXECUTABLE_MB_MAX),
        judgeFigure("reload after a save, ms", findMedian(reload), RELOAD_MS_MAX),
        judgeFigure("new answer after a save, ms", findMedian(answer), RELOAD_MS_MAX),
      ],
    };
  },
};

function findMedian({ rounds }: Row): number {
  return takeMedian(rounds.map((round) => round?.["ms"] ?? Number.NaN));
}

function createRow(name: string, isOurs: boolean): Row {
  return { name, isOurs, version: "", rounds: [] };
}

function runPlatform(folder: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`platform ${args.join(" ")} failed: ${stderr}`);
}

interface Started {
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  stop(): Promise<void>;
}

function start(folder: string, program: string, args: readonly string[]): Started {
  const env = { ...process.env, PORT: "0", PLATFORM_LOG_FORMAT: "json" };
  const child = spawn(program, args, { cwd: folder, env });
  const lines: string[] = [];
  let wake = (): void => {};
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on("line", (line) => {
      lines.push(line);
      wake();
    });
  }
  return {
    waitFor: async (pattern) => {
      const endsMs = performance.now() + WAIT_MS;
      for (;;) {
        const at = lines.findIndex((line) => pattern.test(line));
        const found = at === -1 ? null : pattern.exec(lines[at]!);
        if (found !== null) {
          lines.splice(0, at + 1);
          return found;
        }
        if (performance.now() > endsMs) throw new Error(`${program} did not print ${pattern}`);
        const timer = setTimeout(() => wake(), 1_000);
        await new Promise<void>((resolve) => (wake = resolve));
        clearTimeout(timer);
      }
    },
    stop: async () => {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
    },
  };
}

async function measureStart(
  folder: string,
  program: string,
  args: readonly string[],
): Promise<number> {
  const beganMs = performance.now();
  const started = start(folder, program, args);
  await started.waitFor(/ready/);
  const ms = performance.now() - beganMs;
  await started.stop();
  return ms;
}

async function measureReload(
  folder: string,
  round: number,
): Promise<{ reloadMs: number; answerMs: number }> {
  const file = join(folder, "watched.service.ts");
  const write = (version: number): void =>
    writeFileSync(file, `database watched { }\nexport route GET / { return ${version} }\n`);
  write(0);
  const running = start(folder, process.execPath, [
    PROGRAM,
    "run",
    "watched.service.ts",
    "--watch",
  ]);
  const [, port] = await running.waitFor(/running on http:\/\/localhost:(\d+)/);
  // The next process is prepared while the author reads and types.
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  const version = 100 + round;
  const beganMs = performance.now();
  write(version);
  const reloaded = running.waitFor(/reloaded on/).then(() => performance.now() - beganMs);
  let text = "";
  while (text !== String(version)) {
    text = await (
      await fetch(`http://127.0.0.1:${port}/`, { headers: { Connection: "close" } })
    ).text();
  }
  const answerMs = performance.now() - beganMs;
  const reloadMs = Math.round(await reloaded);
  await running.stop();
  return { reloadMs, answerMs };
}
