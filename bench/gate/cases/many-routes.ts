// (c) Cost of a request with a large route table.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import {
  CONTEST_COLUMNS,
  runContest,
  startEntrants,
  type Contender,
  type ContestLoad,
} from "../contest.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { SMALL_BODY_BYTES, startUpstream } from "../upstream.ts";

const TEAMS = 100;
const SERVICES_PER_TEAM = 100;

// The last route of the file; its prefix shares the longest beginnings with others.
const LOAD: ContestLoad = {
  path: "/team-99/service-99/item",
  connections: 64,
  expected: { status: 200, bodyBytes: SMALL_BODY_BYTES },
};

export const manyRoutes: BenchCase = {
  name: "many-routes",
  title: "10 000 routes compared with one",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const contenders = context.builds.flatMap((build): Contender[] => {
      const proxy = makePlatformGate(build);
      const prefixes = listPrefixes();
      return [
        { proxy, name: `${proxy.name}, 10 000 routes`, setup: { prefixes } },
        {
          proxy,
          name: `${proxy.name}, 1 route`,
          isOurs: false,
          setup: { prefixes: prefixes.slice(-1) },
        },
      ];
    });
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, LOAD);
    return {
      work:
        "As small-get; the same request, once with a single route, once with its route as the last of " +
        "10 000 in the file (`/team-N/service-N`, 100 × 100).",
      columns: CONTEST_COLUMNS.slice(0, 4),
      rows: await runContest(context, workspace, entrants, LOAD),
      ratioColumns: ["cpuUs"],
      goals: context.builds.map((build) => ({
        column: "cpuUs",
        ours: [`gate (${build.label}), 10 000 routes`],
        against: `gate (${build.label}), 1 route`,
        atMost: 1.1,
      })),
    };
  },
};

function listPrefixes(): string[] {
  return Array.from({ length: TEAMS * SERVICES_PER_TEAM }, (_, index) => {
    const team = Math.floor(index / SERVICES_PER_TEAM);
    return `/team-${team}/service-${index % SERVICES_PER_TEAM}`;
  });
}
