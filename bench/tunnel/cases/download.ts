// (b) Rate and cost of a large download.
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { runPinned } from "../../harness/process.ts";
import { runRounds, type RoundResult } from "../../harness/rounds.ts";
import { openTunnels, readCpuMs, type OpenEntrant } from "../contest.ts";
import type { DownloadSummary } from "../download-client.ts";

const CLIENT = new URL("../download-client.ts", import.meta.url).pathname;
const WARM_UP_SECONDS = 2;
const GIB = 2 ** 30;
const MIB = 2 ** 20;

export const download: BenchCase = {
  name: "download",
  title: "Download through a tunnel, 64 MiB response",
  run: async (context) => {
    await using workspace = new Workspace();
    const { rows, entrants } = await openTunnels(context, workspace);
    for (const entrant of entrants) await loadOnce(context, entrant, WARM_UP_SECONDS);
    await runRounds(
      context,
      entrants,
      (entrant) => loadOnce(context, entrant, context.seconds),
      ({ mibPerS, cpuSPerGib }) =>
        `${mibPerS!.toFixed(0)} MiB/s, ${cpuSPerGib!.toFixed(2)} s CPU/GiB`,
    );
    return {
      work:
        "One connection that downloads one response after another, nginx as the local service; load, tunnel and service share " +
        "all cores. CPU time is that of both sides of the tunnel. `ssh -R` encrypts; the others do not on one machine.",
      columns: [
        { key: "mibPerS", title: "MiB/s", digits: 0 },
        { key: "cpuSPerGib", title: "CPU s/GiB", digits: 2 },
      ],
      rows,
      ratioColumns: ["mibPerS", "cpuSPerGib"],
      goals: [
        { column: "mibPerS", against: "ssh -R", atLeast: 1 },
        { column: "mibPerS", against: "localtunnel", atLeast: 1.5 },
      ],
    };
  },
};

/** Downloads for some seconds; resolves to what has arrived. */
export async function runDownload(
  context: BenchContext,
  { open }: OpenEntrant,
  seconds: number,
): Promise<DownloadSummary> {
  const output = await runPinned({
    name: "download client",
    command: process.execPath,
    args: [CLIENT, String(open.port), open.host, String(seconds)],
    cores: context.cores.all,
  });
  return JSON.parse(output) as DownloadSummary;
}

async function loadOnce(
  context: BenchContext,
  entrant: OpenEntrant,
  seconds: number,
): Promise<RoundResult> {
  const beforeMs = readCpuMs(entrant.open);
  const summary = await runDownload(context, entrant, seconds).catch((error: Error) => error);
  if (summary instanceof Error) return summary.message;
  const cpuS = (readCpuMs(entrant.open) - beforeMs) / 1_000;
  return {
    mibPerS: summary.bytes / MIB / summary.seconds,
    cpuSPerGib: cpuS / (summary.bytes / GIB),
  };
}
