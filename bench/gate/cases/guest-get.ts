// (k) A request whose field the user's own code sets: WebAssembly middleware, or a hook in JavaScript.
import { assemble, writeGuest } from "@platform/testing/guests";
import { Workspace, type BenchCase } from "../../harness/case.ts";
import {
  CONTEST_COLUMNS,
  type Contender,
  runContest,
  SMALL_LOAD,
  startEntrants,
} from "../contest.ts";
import { fastify } from "../proxies/fastify.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { startUpstream } from "../upstream.ts";

/** Sets `X-Guest: set`, as the hook does. */
const MODULE = writeGuest({
  data: { 0: "X-Guest", 16: "set" },
  request: `(call $set_header_value (i32.const 0) (i32.const 0) (i32.const 7) (i32.const 16) (i32.const 3))
    (i64.const 1)`,
});
const PLAIN = "gate, no middleware";

export const guestGet: BenchCase = {
  name: "guest-get",
  title: "Proxied GET whose field the user's code sets",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const middleware = Buffer.from(assemble(MODULE));
    const contenders: Contender[] = [
      ...context.builds.map((build) => ({
        proxy: makePlatformGate(build),
        setup: { middleware },
      })),
      ...context.builds.slice(0, 1).map((build) => ({
        proxy: makePlatformGate(build),
        name: PLAIN,
        isOurs: false,
      })),
      { proxy: fastify, setup: { middleware } },
    ];
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, SMALL_LOAD);
    return {
      work:
        "As small-get, with a field that each request gets: ours by a module of 1 KB (`middleware`), " +
        "@fastify/http-proxy by a `preHandler` hook; and our route without middleware.",
      columns: CONTEST_COLUMNS.slice(0, 4),
      rows: await runContest(context, workspace, entrants, SMALL_LOAD),
      ratioColumns: ["cpuUs", "perS"],
      goals: [
        { column: "cpuUs", against: PLAIN, atMost: 1.08 },
        { column: "cpuUs", against: "@fastify/http-proxy", atMost: 0.6 },
      ],
    };
  },
};
