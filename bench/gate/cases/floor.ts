// Cost of the runtimes' sockets alone: the lower bound of every proxy written for them.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { CONTEST_COLUMNS, runContest, startEntrants, SMALL_LOAD } from "../contest.ts";
import { nginx } from "../proxies/nginx.ts";
import { makeEngineAlone } from "../proxies/engine.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { makeSplice } from "../proxies/splice.ts";
import { startUpstream } from "../upstream.ts";

export const floor: BenchCase = {
  name: "floor",
  title: "The floor: sockets joined without reading a byte",
  isOptional: true,
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const contenders = [
      ...context.runtimes.map((runtime) => ({ proxy: makePlatformGate(runtime) })),
      ...context.runtimes.map((runtime) => ({ proxy: makeEngineAlone(runtime) })),
      ...context.runtimes.map((runtime) => ({ proxy: makeSplice(runtime) })),
      { proxy: nginx },
    ];
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, SMALL_LOAD);
    return {
      work:
        "The same load as small-get, for the gateway, for the HTTP/1.1 engine under it without any step of the gateway's, and " +
        "for the runtimes' bare sockets. A splice written as any program would write it on `node:net` parses nothing " +
        "and pools nothing, so it is no proxy; it shows what two sockets cost.",
      columns: CONTEST_COLUMNS.slice(0, 4),
      rows: await runContest(context, workspace, entrants, SMALL_LOAD),
      ratioColumns: ["cpuUs"],
      goals: [],
    };
  },
};
