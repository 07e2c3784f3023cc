// (a) What a proxied request costs when nothing but proxying is asked for.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { CONTEST_COLUMNS, runRounds, startEntrants, type ContestLoad } from "../contest.ts";
import { caddy } from "../proxies/caddy.ts";
import { fastify } from "../proxies/fastify.ts";
import { haproxy } from "../proxies/haproxy.ts";
import { nginx } from "../proxies/nginx.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { SMALL_BODY_BYTES, startUpstream } from "../upstream.ts";

const LOAD: ContestLoad = {
  path: "/hello",
  connections: 64,
  expected: { status: 200, bodyBytes: SMALL_BODY_BYTES },
};

export const smallGet: BenchCase = {
  name: "small-get",
  title: "Proxied GET, 100-byte answer",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const proxies = [
      ...context.runtimes.map((runtime) => makePlatformGate(runtime)),
      nginx,
      haproxy,
      caddy,
      fastify,
    ];
    const contenders = proxies.map((proxy) => ({ proxy }));
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, LOAD);
    return {
      work: "One worker, metrics on, 64 keep-alive connections, nginx as the upstream.",
      columns: CONTEST_COLUMNS.slice(0, 4),
      rows: await runRounds(context, workspace, entrants, LOAD),
      ratioColumns: ["cpuUs", "perS", "p99Us"],
      goals: [
        { column: "cpuUs", against: "nginx", atMost: 1 },
        { column: "cpuUs", against: "Caddy", atMost: 0.33 },
        { column: "cpuUs", against: "@fastify/http-proxy", atMost: 0.33 },
      ],
    };
  },
};
