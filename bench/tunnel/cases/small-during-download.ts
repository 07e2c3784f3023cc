// (c) Latency of small requests while a download uses the same tunnel.
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { PaceSummary } from "../../harness/pace-generator.ts";
import { runPinned } from "../../harness/process.ts";
import { runRounds, type RoundResult } from "../../harness/rounds.ts";
import { openTunnels, type OpenEntrant } from "../contest.ts";
import { runDownload } from "./download.ts";

const GENERATOR = new URL("../../harness/pace-generator.ts", import.meta.url).pathname;
const CONNECTIONS = 10;
const RATE = 200;
const MIB = 2 ** 20;
const P99_MS_MAX = 15;

export const smallDuringDownload: BenchCase = {
  name: "mixed",
  title: "Small requests during a download through the same tunnel",
  run: async (context) => {
    await using workspace = new Workspace();
    const { rows, entrants } = await openTunnels(context, workspace);
    for (const entrant of entrants) await loadOnce({ ...context, seconds: 2 }, entrant);
    await runRounds(
      context,
      entrants,
      (entrant) => loadOnce(context, entrant),
      ({ p99Ms, mibPerS }) => `p99 ${p99Ms!.toFixed(1)} ms, download ${mibPerS!.toFixed(0)} MiB/s`,
    );
    return {
      work:
        `Open loop, ${RATE} requests/s with 1 KiB responses over ${CONNECTIONS} connections, each timed from the moment it was due, while ` +
        "another connection downloads 64 MiB responses. Load, tunnel and service share all cores, and the download uses what it gets.",
      columns: [
        { key: "p50Ms", title: "p50 ms", digits: 2 },
        { key: "p99Ms", title: "p99 ms", digits: 2 },
        { key: "mibPerS", title: "download MiB/s", digits: 0 },
      ],
      rows,
      ratioColumns: ["p99Ms"],
      goals: [{ column: "p99Ms", against: "ssh -R" }],
      remarks: rows
        .filter((row) => row.isOurs && row.rounds.length > 0)
        .map(({ name, rounds }) => {
          const known = rounds.flatMap((round) => round?.["p99Ms"] ?? []).sort((a, b) => a - b);
          const p99Ms = known[known.length >> 1] ?? Infinity;
          const verdict = p99Ms <= P99_MS_MAX ? "met" : "**missed**";
          return `- ${name}: p99 ${p99Ms.toFixed(1)} ms, goal ≤ ${P99_MS_MAX}: ${verdict}`;
        }),
    };
  },
};

async function loadOnce(context: BenchContext, entrant: OpenEntrant): Promise<RoundResult> {
  const { open } = entrant;
  const url = `http://127.0.0.1:${open.port}/small`;
  const [downloaded, output] = await Promise.all([
    runDownload(context, entrant, context.seconds + 1).catch((error: Error) => error),
    runPinned({
      name: "pace generator",
      command: process.execPath,
      args: [GENERATOR, url, String(CONNECTIONS), String(RATE), String(context.seconds), open.host],
      cores: context.cores.all,
    }),
  ]);
  if (downloaded instanceof Error) return downloaded.message;
  const paced = JSON.parse(output) as PaceSummary;
  if (paced.failed + paced.unanswered > 0) {
    return `${paced.failed} connections lost, ${paced.unanswered} requests unanswered`;
  }
  return {
    p50Ms: paced.p50Us / 1_000,
    p99Ms: paced.p99Us / 1_000,
    mibPerS: downloaded.bytes / MIB / downloaded.seconds,
  };
}
