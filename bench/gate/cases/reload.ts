// (f) Latency while a reload replaces all of 50 000 routes.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import type { Build } from "../../harness/build.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { PaceSummary } from "../../harness/pace-generator.ts";
import { runPinned, type PinnedProcess } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import { takeMedian } from "../../harness/statistics.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { startUpstream } from "../upstream.ts";

const GENERATOR = new URL("../../harness/pace-generator.ts", import.meta.url).pathname;
const ROUTES = 50_000;
const CONNECTIONS = 16;
const RATE = 500;
const RELOAD_TIMEOUT_MS = 60_000;
const P99_MS_MAX = 20;

/** A running gateway with its configuration file. */
interface Gate {
  process: PinnedProcess;
  url: string;
  configPath: string;
}

export const reload: BenchCase = {
  name: "reload",
  title: "Latency during reloads of 50 000 routes",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const rows: Row[] = [];
    for (const build of context.builds) {
      rows.push(await measureBuild(context, workspace, build, upstream.port));
    }
    return {
      work:
        `Open loop, ${RATE} requests/s over ${CONNECTIONS} connections, each timed from the moment it was due: once undisturbed, once ` +
        "while one SIGHUP after another replaces every route of the file. One worker; gateway, load and upstream share all cores.",
      columns: [
        { key: "quietP99Ms", title: "p99 ms undisturbed", digits: 1 },
        { key: "p99Ms", title: "p99 ms during reloads", digits: 1 },
        { key: "p50Ms", title: "p50 ms during reloads", digits: 2 },
        { key: "reloadS", title: "s per reload", digits: 1 },
      ],
      rows,
      ratioColumns: [],
      goals: [],
      remarks: rows
        .filter(({ rounds }) => rounds.length > 0)
        .map(({ name, rounds }) => {
          const p99Ms = takeMedian(rounds.flatMap((round) => round?.["p99Ms"] ?? []));
          const verdict = p99Ms < P99_MS_MAX ? "met" : "**missed**";
          return `- ${name}: p99 ${p99Ms.toFixed(1)} ms during reloads, goal < ${P99_MS_MAX}: ${verdict}`;
        }),
    };
  },
};

async function measureBuild(
  context: BenchContext,
  workspace: Workspace,
  build: Build,
  upstreamPort: number,
): Promise<Row> {
  const proxy = makePlatformGate(build);
  const row: Row = { name: proxy.name, isOurs: true, version: "", rounds: [] };
  const absence = proxy.explainAbsence();
  if (absence !== undefined) return { ...row, note: absence };
  row.version = proxy.readVersion();
  try {
    const folder = join(workspace.folder, `gate-${build.label}`);
    const gate = await startGate(context, workspace, build, { folder, upstreamPort });
    for (let round = 1; round <= context.rounds; round++) {
      const figures = await measureRound(context, gate);
      row.rounds.push(figures);
      context.say(
        `  ${round}/${context.rounds} ${row.name}: p99 ${figures["p99Ms"]!.toFixed(1)} ms, undisturbed ${figures["quietP99Ms"]!.toFixed(1)} ms`,
      );
    }
    await gate.process.stop();
  } catch (error) {
    row.note = String(error);
  }
  return row;
}

async function startGate(
  { cores }: BenchContext,
  workspace: Workspace,
  build: Build,
  { folder, upstreamPort }: { folder: string; upstreamPort: number },
): Promise<Gate> {
  const port = await findFreePort();
  const prefixes = Array.from({ length: ROUTES }, (_, index) => `/r${index}`);
  const started = workspace.keep(
    makePlatformGate(build).start({
      port,
      upstreamPort,
      cores: cores.all,
      workers: 1,
      folder,
      unbuffered: false,
      accessLog: false,
      prefixes,
    }),
  );
  await awaitPort(started, port);
  const url = `http://127.0.0.1:${port}/r${ROUTES - 1}`;
  return { process: started, url, configPath: join(folder, "config.json") };
}

async function measureRound(context: BenchContext, gate: Gate): Promise<Record<string, number>> {
  const quiet = await runPace(context, gate.url);
  const run = { isOver: false };
  const reloading = reloadAgainAndAgain(gate, run);
  const paced = await runPace(context, gate.url);
  run.isOver = true;
  const reloadMs = await reloading;
  return {
    quietP99Ms: quiet.p99Us / 1_000,
    p99Ms: paced.p99Us / 1_000,
    p50Ms: paced.p50Us / 1_000,
    reloadS: takeMedian(reloadMs) / 1_000,
  };
}

/** Changes every route of the file and reloads it, until the run is over. Resolves to the time of each reload in ms. */
async function reloadAgainAndAgain(gate: Gate, run: { isOver: boolean }): Promise<number[]> {
  const times: number[] = [];
  while (!run.isOver) {
    const config = JSON.parse(readFileSync(gate.configPath, "utf8")) as {
      routes: { max_body_size?: number }[];
    };
    for (const route of config.routes) route.max_body_size = (route.max_body_size ?? 1_000_000) + 1;
    writeFileSync(gate.configPath, JSON.stringify(config));
    const before = findReload(gate);
    const startedMs = performance.now();
    gate.process.signal("SIGHUP");
    while (findReload(gate) === before) {
      if (performance.now() - startedMs > RELOAD_TIMEOUT_MS) {
        throw new Error(`no reload was reported: ${gate.process.readOutput().slice(-400)}`);
      }
      await sleep(50);
    }
    times.push(performance.now() - startedMs);
  }
  return times;
}

/** The last line that reports a reload, with its timestamp. */
function findReload({ process: started }: Gate): string {
  const lines = started.readOutput().split("\n");
  // The names of 50 000 changed routes may have pushed the beginning of the line out.
  return lines.findLast((line) => line.includes("configuration reloaded")) ?? "";
}

async function runPace(context: BenchContext, url: string): Promise<PaceSummary> {
  const output = await runPinned({
    name: "pace generator",
    command: process.execPath,
    args: [GENERATOR, url, String(CONNECTIONS), String(RATE), String(context.seconds)],
    cores: context.cores.load,
  });
  const paced = JSON.parse(output) as PaceSummary;
  if (paced.failed + paced.unanswered > 0) {
    throw new Error(
      `${paced.failed} connections lost, ${paced.unanswered} requests without response`,
    );
  }
  return paced;
}
