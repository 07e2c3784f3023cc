// Cost of the sockets of Node and Bun alone: the lower bound of every proxy written for them.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { CONTEST_COLUMNS, runContest, startEntrants, SMALL_LOAD } from "../contest.ts";
import { nginx } from "../proxies/nginx.ts";
import { makeEngineAlone } from "../proxies/engine.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { makeSplice } from "../proxies/splice.ts";
import { startUpstream } from "../upstream.ts";

export const floor: BenchCase = {
  name: "floor",
  title: "Lower bound: joined sockets, without parsing",
  isOptional: true,
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const contenders = [
      ...context.builds.map((build) => ({ proxy: makePlatformGate(build) })),
      ...context.runtimes.map((runtime) => ({ proxy: makeEngineAlone(runtime) })),
      ...context.runtimes.flatMap((runtime) => [
        { proxy: makeSplice(runtime, "short") },
        { proxy: makeSplice(runtime, "streams") },
      ]),
      { proxy: nginx },
    ];
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, SMALL_LOAD);
    return {
      work:
        "The same load as small-get, for the gateway, for its HTTP/1.1 engine without the gateway, and for two joined sockets of " +
        "each runtime, by the ways in which the engine reads and writes and by plain `node:net` code. The joined sockets " +
        "neither parse nor pool: not a proxy, but the cost of the sockets alone.",
      columns: CONTEST_COLUMNS.slice(0, 4),
      rows: await runContest(context, workspace, entrants, SMALL_LOAD),
      ratioColumns: ["cpuUs"],
      goals: [],
    };
  },
};
