// (f) Cost of a request with a second worker.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import {
  CONTEST_COLUMNS,
  runContest,
  startEntrants,
  type Contender,
  SMALL_LOAD,
} from "../contest.ts";
import { nginx } from "../proxies/nginx.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { startUpstream } from "../upstream.ts";

export const twoWorkers: BenchCase = {
  name: "two-workers",
  title: "Two workers compared with one",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const proxies = [...context.builds.map((build) => makePlatformGate(build)), nginx];
    // Both may use all cores, so that only the number of workers differs.
    const contenders = proxies.flatMap((proxy): Contender[] =>
      [2, 1].map((workers) => ({
        proxy,
        name: nameRow(proxy.name, workers),
        isOurs: workers === 2,
        setup: { workers, cores: context.cores.all },
      })),
    );
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, SMALL_LOAD);
    return {
      work: "As small-get, but the proxy shares all cores with the load and the upstream; with two workers and with one.",
      columns: CONTEST_COLUMNS.slice(0, 4),
      rows: await runContest(context, workspace, entrants, SMALL_LOAD),
      ratioColumns: ["cpuUs"],
      goals: proxies.map((proxy) => ({
        column: "cpuUs",
        ours: [nameRow(proxy.name, 2)],
        against: nameRow(proxy.name, 1),
        ...(proxy.isOurs ? { atMost: 1.1 } : {}),
      })),
    };
  },
};

function nameRow(proxy: string, workers: number): string {
  return `${proxy}, ${workers === 1 ? "1 worker" : `${workers} workers`}`;
}
