// (a) Cost of a proxied request without other steps.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { CONTEST_COLUMNS, runContest, startEntrants, SMALL_LOAD } from "../contest.ts";
import { listProxies } from "../proxies/all.ts";
import { startUpstream } from "../upstream.ts";

export const smallGet: BenchCase = {
  name: "small-get",
  title: "Proxied GET, 100-byte response",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const contenders = listProxies(context).map((proxy) => ({ proxy }));
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, SMALL_LOAD);
    return {
      work: "One worker, metrics on, 64 keep-alive connections, nginx as the upstream.",
      columns: CONTEST_COLUMNS.slice(0, 4),
      rows: await runContest(context, workspace, entrants, SMALL_LOAD),
      ratioColumns: ["cpuUs", "perS", "p99Us"],
      goals: [
        { column: "cpuUs", against: "nginx", atMost: 1 },
        { column: "p99Us", against: "nginx", atMost: 1.2 },
        { column: "cpuUs", against: "Caddy", atMost: 0.33 },
        { column: "cpuUs", against: "@fastify/http-proxy", atMost: 0.33 },
      ],
    };
  },
};
