// (e) Memory of an idle connection.
import { setTimeout as sleep } from "node:timers/promises";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { startPinned } from "../../harness/process.ts";
import { readTreeUsage } from "../../harness/usage.ts";
import { runWrk } from "../../harness/wrk.ts";
import { startEntrants, type Entrant, SMALL_LOAD } from "../contest.ts";
import { listProxies } from "../proxies/all.ts";
import { startUpstream } from "../upstream.ts";

const CLIENT = new URL("../../harness/idle-client.ts", import.meta.url).pathname;
const CONNECTIONS = 10_000;
const OPEN_TIMEOUT_MS = 40_000;
const SETTLE_MS = 3_000;
const KIB = 1024;

export const idleMemory: BenchCase = {
  name: "idle-memory",
  title: "Memory of 10 000 idle keep-alive connections",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstream = await startUpstream(workspace.folder, context.cores.load);
    workspace.keep(upstream.process);
    const contenders = listProxies(context).map((proxy) => ({ proxy }));
    const entrants = await startEntrants(context, workspace, upstream.port, contenders, SMALL_LOAD);
    for (const entrant of entrants) {
      if (entrant.process === undefined) continue;
      try {
        entrant.row.rounds.push(
          await measureIdle(context, workspace, entrant, entrant.process.pid),
        );
      } catch (error) {
        entrant.row.note = String(error);
      }
      context.say(
        `  ${entrant.row.name}: ${entrant.row.rounds[0]?.["kibEach"]?.toFixed(1) ?? entrant.row.note} KiB each`,
      );
    }
    return {
      work:
        "One worker, warmed up by two seconds of load; growth of the proportional set size of the process tree once " +
        "10 000 connections have each received a response and are idle. Kernel memory is not included. One round.",
      columns: [
        { key: "kibEach", title: "KiB/connection", digits: 1 },
        { key: "baseMib", title: "MiB before", digits: 0 },
        { key: "fullMib", title: "MiB with them", digits: 0 },
      ],
      rows: entrants.map((entrant) => entrant.row),
      ratioColumns: [],
      goals: [],
      remarks: entrants
        .filter((entrant) => entrant.row.isOurs && entrant.row.rounds.length > 0)
        .map(({ row }) => {
          const each = row.rounds[0]?.["kibEach"] ?? Infinity;
          return `- ${row.name}: ${each.toFixed(1)} KiB each, goal ≤ 20: ${each <= 20 ? "met" : "**missed**"}`;
        }),
    };
  },
};

async function measureIdle(
  context: BenchContext,
  workspace: Workspace,
  entrant: Entrant,
  pid: number,
): Promise<Record<string, number>> {
  await runWrk({
    url: entrant.url,
    connections: SMALL_LOAD.connections,
    seconds: 2,
    cores: context.cores.load,
    scratch: workspace.folder,
  });
  await sleep(SETTLE_MS);
  const before = readTreeUsage(pid);
  const client = workspace.keep(
    startPinned({
      name: "idle client",
      command: process.execPath,
      args: [CLIENT, entrant.url, String(CONNECTIONS)],
      cores: context.cores.load,
    }),
  );
  const deadline = Date.now() + OPEN_TIMEOUT_MS;
  while (!client.readOutput().includes(`open ${CONNECTIONS}`)) {
    if (client.hasExited() || Date.now() > deadline) {
      throw new Error(`connections were not all opened: ${client.readOutput().slice(0, 200)}`);
    }
    await sleep(100);
  }
  await sleep(SETTLE_MS);
  const after = readTreeUsage(pid);
  const held = after.openFiles - before.openFiles;
  await client.stop();
  if (held < CONNECTIONS * 0.99) throw new Error(`only ${held} of the connections were kept open`);
  return {
    kibEach: (after.pssBytes - before.pssBytes) / CONNECTIONS / KIB,
    baseMib: before.pssBytes / KIB / KIB,
    fullMib: after.pssBytes / KIB / KIB,
  };
}
