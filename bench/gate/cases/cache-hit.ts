// (h) A response from the cache, without the upstream.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { CONTEST_COLUMNS, runContest, SMALL_LOAD, startEntrants } from "../contest.ts";
import { nginx } from "../proxies/nginx.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { startUpstream } from "../upstream.ts";

export const cacheHit: BenchCase = {
  name: "cache-hit",
  title: "GET of a cached 100-byte response",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const proxies = [...context.builds.map((build) => makePlatformGate(build)), nginx];
    const contenders = proxies.map((proxy) => ({ proxy, setup: { cache: true } }));
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, SMALL_LOAD);
    return {
      work:
        "As small-get, with a response that is stored for an hour: ours in memory shared by its workers " +
        "(`cache_ttl_seconds`), nginx in files in the page cache (`proxy_cache`).",
      columns: CONTEST_COLUMNS.slice(0, 4),
      rows: await runContest(context, workspace, entrants, SMALL_LOAD),
      ratioColumns: ["cpuUs", "perS"],
      goals: [{ column: "cpuUs", against: "nginx", atMost: 1 }],
    };
  },
};
