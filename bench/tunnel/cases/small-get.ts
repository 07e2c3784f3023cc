// (a) Rate and cost of small requests.
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { runRounds, type RoundResult } from "../../harness/rounds.ts";
import { runWrk, toFigures } from "../../harness/wrk.ts";
import { openTunnels, readCpuMs, type OpenEntrant } from "../contest.ts";

const CONNECTIONS = 10;
const WARM_UP_SECONDS = 2;

export const smallGet: BenchCase = {
  name: "small-get",
  title: "GET through a tunnel, 1 KiB response",
  run: async (context) => {
    await using workspace = new Workspace();
    const { rows, entrants } = await openTunnels(context, workspace);
    const load = (entrant: OpenEntrant, seconds: number): Promise<RoundResult> =>
      loadOnce(context, workspace, entrant, seconds);
    for (const entrant of entrants) await load(entrant, WARM_UP_SECONDS);
    await runRounds(
      context,
      entrants,
      (entrant) => load(entrant, context.seconds),
      ({ cpuUs, perS }) => `${perS!.toFixed(0)} requests/s, ${cpuUs!.toFixed(0)} µs CPU/request`,
    );
    return {
      work:
        `${CONNECTIONS} keep-alive connections, nginx as the local service; load, tunnel and service share all cores. CPU time ` +
        "is that of both sides of the tunnel. `ssh -R` encrypts; the others do not on one machine. Ours captures every request.",
      columns: [
        { key: "perS", title: "requests/s", digits: 0 },
        { key: "cpuUs", title: "CPU µs/request", digits: 0 },
        { key: "p50Us", title: "p50 µs", digits: 0 },
        { key: "p99Us", title: "p99 µs", digits: 0 },
      ],
      rows,
      ratioColumns: ["perS", "cpuUs"],
      goals: [
        { column: "perS", against: "ssh -R", atLeast: 3 },
        { column: "perS", against: "localtunnel", atLeast: 9 },
      ],
    };
  },
};

async function loadOnce(
  context: BenchContext,
  workspace: Workspace,
  { open }: OpenEntrant,
  seconds: number,
): Promise<RoundResult> {
  const beforeMs = readCpuMs(open);
  const summary = await runWrk({
    url: `http://127.0.0.1:${open.port}/small`,
    headers: { Host: open.host },
    connections: CONNECTIONS,
    seconds,
    cores: context.cores.all,
    scratch: workspace.folder,
  });
  return toFigures(summary, readCpuMs(open) - beforeMs);
}
