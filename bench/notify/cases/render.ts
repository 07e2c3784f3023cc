// (c) Rendered templates per CPU second, compared with LiquidJS alone.
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { runPinned } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds, type RoundResult } from "../../harness/rounds.ts";
import { takeMedian } from "../../harness/statistics.ts";
import { measure, runPosts } from "../contest.ts";
import { TEMPLATE, VARIABLES, type LoopSummary } from "../render-loop.ts";
import { request, startPlatformNotify } from "../servers/platform-notify.ts";

const CONNECTIONS = 8;
const RENDERED_PER_CPU_S_MIN = 4_000;
const RENDERER = "notify renderer";
const LOOP = new URL("../render-loop.ts", import.meta.url).pathname;

interface Entrant {
  row: Row;
  measure: () => Promise<RoundResult>;
}

export const render: BenchCase = {
  name: "render",
  title: "Template with a loop of 20 rows",
  run: async (context) => {
    await using workspace = new Workspace();
    const entrants: Entrant[] = [];
    for (const build of context.builds) {
      const started = await startPlatformNotify(workspace, { build, cores: context.cores.test });
      const { origin, pid, version } = started;
      await request(`${origin}/api/v1/templates`, "POST", { name: "order", ...TEMPLATE });
      const load = (seconds: number) =>
        runPosts(context, workspace, {
          url: `${origin}/api/v1/templates/order/preview`,
          connections: CONNECTIONS,
          seconds,
          body: { variables: VARIABLES },
          expected: "<td>20</td>",
        });
      await load(1);
      entrants.push({
        row: { name: `notify API (${build.label})`, isOurs: true, version, rounds: [] },
        measure: () => measure(pid, () => load(context.seconds)),
      });
    }
    entrants.push(
      {
        row: { name: RENDERER, isOurs: true, version: "", rounds: [] },
        measure: () => runLoop(context, "ours"),
      },
      {
        row: { name: "LiquidJS alone", isOurs: false, version: "", rounds: [] },
        measure: () => runLoop(context, "liquid"),
      },
    );
    const describe = ({ perCpuS }: Record<string, number>) => `${perCpuS!.toFixed(0)} per CPU s`;
    await runRounds(context, entrants, (entrant) => entrant.measure(), describe);
    const rows = entrants.map(({ row }) => row);
    return {
      work:
        "Subject, text, and HTML with a loop of 20 rows of three values. The renderer of the service, with its limits of time and memory, and LiquidJS alone, " +
        `each in a loop in a process; and POST /api/v1/templates/order/preview on ${CONNECTIONS} connections, with the HTTP request.`,
      columns: [
        { key: "perS", title: "rendered/s", digits: 0 },
        { key: "cpuUs", title: "CPU µs each", digits: 0 },
        { key: "perCpuS", title: "per CPU second", digits: 0 },
      ],
      rows,
      ratioColumns: ["perCpuS"],
      goals: [],
      remarks: rows.filter(({ name }) => name === RENDERER).map(judge),
    };
  },
};

async function runLoop(context: BenchContext, program: "ours" | "liquid"): Promise<RoundResult> {
  const output = await runPinned({
    name: program,
    command: process.execPath,
    args: [LOOP, program, String(context.seconds)],
    cores: context.cores.test,
  });
  const { count, seconds, cpuMs } = JSON.parse(output) as LoopSummary;
  const perCpuS = (count * 1_000) / cpuMs;
  return { perS: count / seconds, cpuUs: (cpuMs * 1_000) / count, perCpuS };
}

function judge({ name, rounds }: Row): string {
  const figure = takeMedian(rounds.flatMap((round) => round?.["perCpuS"] ?? []));
  const verdict = figure >= RENDERED_PER_CPU_S_MIN ? "met" : "**missed**";
  return `- ${name}: ${figure.toFixed(0)} per CPU second, goal ≥ ${RENDERED_PER_CPU_S_MIN}: ${verdict}`;
}
