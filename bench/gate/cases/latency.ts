// (d) Latency added by a proxy at half load, at the median and the 99th percentile.
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { runPinned } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import type { PaceSummary } from "../../harness/pace-generator.ts";
import { takeMedian } from "../../harness/statistics.ts";
import { runContest, startEntrants, type ContestLoad, type Entrant } from "../contest.ts";
import { haproxy } from "../proxies/haproxy.ts";
import { nginx } from "../proxies/nginx.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { SMALL_BODY_BYTES, startUpstream } from "../upstream.ts";

const GENERATOR = new URL("../../harness/pace-generator.ts", import.meta.url).pathname;
const CONNECTIONS = 64;
// The generator shares a core with the upstream and must not itself become the queue.
const RATE_MAX = 12_000;

const LOAD: ContestLoad = {
  path: "/hello",
  connections: CONNECTIONS,
  expected: { status: 200, bodyBytes: SMALL_BODY_BYTES },
};

export const latency: BenchCase = {
  name: "latency",
  title: "Added latency at half load",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const proxies = [...context.builds.map((build) => makePlatformGate(build)), nginx, haproxy];
    const contenders = proxies.map((proxy) => ({ proxy }));
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, LOAD);
    const rate = await findHalfLoad(context, workspace, entrants);
    context.say(`  half load: ${rate} requests/s`);
    const direct = await addPacedRounds(context, entrants, upstream.port, rate);
    return {
      work:
        `Open loop, ${rate} requests/s (half of what the slowest row can do, at most ${RATE_MAX}) over ${CONNECTIONS} connections, each timed from the ` +
        `moment it was due. "Added" is the difference to the same load sent directly to the upstream ` +
        `(p50 ${direct.p50Us.toFixed(0)} µs, p99 ${direct.p99Us.toFixed(0)} µs).`,
      columns: [
        { key: "addedP50Us", title: "added p50 µs", digits: 0 },
        { key: "addedP99Us", title: "added p99 µs", digits: 0 },
        { key: "p50Us", title: "p50 µs", digits: 0 },
        { key: "p99Us", title: "p99 µs", digits: 0 },
      ],
      rows: entrants.map((entrant) => entrant.row),
      ratioColumns: ["addedP99Us", "addedP50Us"],
      goals: [{ column: "addedP99Us", against: "nginx", atMost: 1.3 }],
    };
  },
};

// One short closed-loop round per contender; half of the slowest one's throughput becomes the rate for all.
async function findHalfLoad(
  context: BenchContext,
  workspace: Workspace,
  entrants: readonly Entrant[],
): Promise<number> {
  const probe = { ...context, rounds: 1, seconds: 2 };
  const rows = await runContest(probe, workspace, entrants, LOAD);
  const fastest = rows.flatMap((row: Row) =>
    row.rounds.map((round) => round?.["perS"] ?? Infinity),
  );
  for (const row of rows) row.rounds = [];
  return Math.round(Math.min(RATE_MAX * 2, ...fastest) / 2 / 100) * 100;
}

async function addPacedRounds(
  context: BenchContext,
  entrants: readonly Entrant[],
  upstreamPort: number,
  rate: number,
): Promise<{ p50Us: number; p99Us: number }> {
  const direct: PaceSummary[] = [];
  for (let round = 1; round <= context.rounds; round += 1) {
    const base = await runPace(context, `http://127.0.0.1:${upstreamPort}${LOAD.path}`, rate);
    direct.push(base);
    for (const { row, url, process: started } of entrants) {
      if (started === undefined) continue;
      const paced = await runPace(context, url, rate);
      context.say(
        `  ${round}/${context.rounds} ${row.name}: p99 ${paced.p99Us.toFixed(0)} µs, direct ${base.p99Us.toFixed(0)} µs`,
      );
      const fault =
        paced.failed + paced.unanswered > 0
          ? `${paced.failed} connections lost, ${paced.unanswered} requests unanswered`
          : undefined;
      if (fault !== undefined) row.note = fault;
      row.rounds.push(
        fault === undefined
          ? {
              addedP50Us: paced.p50Us - base.p50Us,
              addedP99Us: paced.p99Us - base.p99Us,
              p50Us: paced.p50Us,
              p99Us: paced.p99Us,
            }
          : undefined,
      );
    }
  }
  return {
    p50Us: takeMedian(direct.map((one) => one.p50Us)),
    p99Us: takeMedian(direct.map((one) => one.p99Us)),
  };
}

async function runPace(context: BenchContext, url: string, rate: number): Promise<PaceSummary> {
  const output = await runPinned({
    name: "pace generator",
    command: process.execPath,
    args: [GENERATOR, url, String(CONNECTIONS), String(rate), String(context.seconds)],
    cores: context.cores.load,
  });
  return JSON.parse(output) as PaceSummary;
}
