// (b) Cost of forwarding large responses.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import {
  CONTEST_COLUMNS,
  runContest,
  startEntrants,
  type Contender,
  type ContestLoad,
} from "../contest.ts";
import { listProxies } from "../proxies/all.ts";
import { nginx } from "../proxies/nginx.ts";
import { LARGE_BODY_BYTES, startUpstream } from "../upstream.ts";

const LOAD: ContestLoad = {
  path: "/large",
  connections: 16,
  expected: { status: 200, bodyBytes: LARGE_BODY_BYTES },
};

export const largeBody: BenchCase = {
  name: "large-body",
  title: "Proxied GET, 1 MiB response",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const contenders: Contender[] = listProxies(context).map((proxy) => ({
      proxy,
      setup: { unbuffered: true },
    }));
    contenders.push({
      proxy: nginx,
      name: "nginx, 64 KiB buffer",
      setup: { unbuffered: true, bufferKib: 64 },
    });
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, LOAD);
    return {
      work:
        "One worker, 16 connections, nginx with `proxy_buffering off`, once with its default read size (4 KiB) and once with " +
        "`proxy_buffer_size 64k`. More MiB per CPU second is better.",
      columns: CONTEST_COLUMNS.filter((column) => column.key !== "cpuUs").toReversed(),
      rows: await runContest(context, workspace, entrants, LOAD),
      ratioColumns: ["mibPerCpuS"],
      goals: ["nginx", "nginx, 64 KiB buffer"].map((against) => ({
        column: "mibPerCpuS",
        against,
        atLeast: 0.8,
      })),
    };
  },
};
