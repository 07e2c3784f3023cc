// (c) The start of all services, built and from the TypeScript files, and their memory when they are idle.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { findBin, OURS_ON_NODE, REPOSITORY } from "../../harness/build.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds, type RoundResult } from "../../harness/rounds.ts";
import { readTreeCpu, readTreeUsage } from "../../harness/usage.ts";

type Form = "built" | "source";

const LISTENERS = ["gate", "console", "hello", "auth", "notify", "vault", "vault-admin", "pulse"];
const MORE = ["pulse-kafka", "pulse-mqtt", "pulse-stomp", "tunnel", "runtime"];
const ADDRESSES = [...LISTENERS, ...MORE].flatMap((name) => [`--${name}-addr`, "127.0.0.1:0"]);
/** Longer than a service waits before it returns memory after the start. */
const IDLE_MS = 10_000;
const MIB = 1_048_576;

/** Both forms alternate; each round has a new data folder. */
export const up: BenchCase = {
  name: "up",
  title: "Start of all services, and their memory",
  run: async (context) => {
    await using workspace = new Workspace();
    const built = spawnSync("npm", ["run", "-s", "build:services"], { cwd: REPOSITORY });
    if (built.status !== 0) throw new Error(String(built.stderr));
    const entrants = (["built", "source"] as const).map((form) => {
      const row: Row = { name: `up (${form})`, isOurs: true, version: "", rounds: [] };
      return { form, row };
    });
    // Compiled modules are kept by the first start.
    for (const { form } of entrants) await measure(form, workspace.folder);
    await runRounds(
      context,
      entrants,
      ({ form }) => measure(form, workspace.folder),
      ({ wallMs, cpuMs, pssMib }) =>
        `${wallMs!.toFixed(0)} ms, ${cpuMs!.toFixed(0)} ms of CPU, ${pssMib!.toFixed(0)} MiB`,
    );
    const goal = { against: "up (source)", ours: ["up (built)"], atMost: 0.4 };
    return {
      work: `\`platform up\` in a new folder until the banner, with compiled modules of an earlier start; memory (PSS) of all processes ${IDLE_MS / 1000} s later.`,
      columns: [
        { key: "wallMs", title: "wall ms", digits: 0 },
        { key: "cpuMs", title: "CPU ms", digits: 0 },
        { key: "pssMib", title: "PSS MiB", digits: 0 },
      ],
      rows: entrants.map(({ row }) => row),
      ratioColumns: ["wallMs", "cpuMs", "pssMib"],
      goals: [
        { ...goal, column: "wallMs" },
        { ...goal, column: "cpuMs" },
      ],
    };
  },
};

async function measure(form: Form, scratch: string): Promise<RoundResult> {
  const data = join(scratch, "data");
  const args = [findBin(OURS_ON_NODE, "platform"), "up", "--json", "--data", data, ...ADDRESSES];
  const startedMs = performance.now();
  const child = spawn(process.execPath, args, {
    cwd: scratch,
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, PLATFORM_FORM: form },
  });
  const exited = once(child, "exit");
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      if (!line.startsWith('{"type":"started"')) continue;
      const wallMs = performance.now() - startedMs;
      const { cpuMs } = readTreeCpu(child.pid!);
      child.stdout.resume();
      await sleep(IDLE_MS);
      return { wallMs, cpuMs, pssMib: readTreeUsage(child.pid!).pssBytes / MIB };
    }
    return "it did not start";
  } finally {
    child.kill("SIGTERM");
    await exited;
    rmSync(data, { recursive: true, force: true });
  }
}
