// (d) Memory of a relay with idle tunnels.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Build } from "../../harness/build.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { startPinned } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import { readTreeUsage } from "../../harness/usage.ts";
import { makePlatformTunnel, startRelay } from "../tunnels/platform-tunnel.ts";

const CLIENTS = new URL("../idle-clients.ts", import.meta.url).pathname;
const TUNNELS = 1_000;
const OPEN_TIMEOUT_MS = 60_000;
const SETTLE_MS = 10_000;
const MIB = 2 ** 20;
const FULL_MIB_MAX = 150;

export const idleMemory: BenchCase = {
  name: "idle-memory",
  title: "Memory of a relay with 1 000 idle tunnels",
  run: async (context) => {
    await using workspace = new Workspace();
    const rows: Row[] = [];
    for (const build of context.builds) rows.push(await measureBuild(context, workspace, build));
    return {
      work:
        "Proportional set size of the relay before and 10 s after 1 000 clients with a connection and a name of their own have " +
        "connected. Kernel memory is not included. One round.",
      columns: [
        { key: "kibEach", title: "KiB/tunnel", digits: 1 },
        { key: "baseMib", title: "MiB before", digits: 0 },
        { key: "fullMib", title: "MiB with them", digits: 0 },
      ],
      rows,
      ratioColumns: [],
      goals: [],
      remarks: rows
        .filter((row) => row.rounds.length > 0)
        .map(({ name, rounds }) => {
          const fullMib = rounds[0]?.["fullMib"] ?? Infinity;
          const verdict = fullMib < FULL_MIB_MAX ? "met" : "**missed**";
          return `- ${name}: ${fullMib.toFixed(0)} MiB, goal < ${FULL_MIB_MAX}: ${verdict}`;
        }),
    };
  },
};

async function measureBuild(
  context: BenchContext,
  workspace: Workspace,
  build: Build,
): Promise<Row> {
  const tunnel = makePlatformTunnel(build);
  const row: Row = { name: tunnel.name, isOurs: true, version: "", rounds: [] };
  const absence = tunnel.explainAbsence();
  if (absence !== undefined) return { ...row, note: absence };
  try {
    row.version = tunnel.readVersion();
    row.rounds.push(await measureIdle(context, workspace, build));
    context.say(`  ${row.name}: ${row.rounds[0]?.["fullMib"]?.toFixed(0)} MiB`);
  } catch (error) {
    row.note = String(error);
  }
  return row;
}

async function measureIdle(
  context: BenchContext,
  workspace: Workspace,
  build: Build,
): Promise<Record<string, number>> {
  const folder = join(workspace.folder, `relay-${build.label}`);
  const relay = await startRelay(build, { cores: context.cores.all, folder, workspace });
  await sleep(SETTLE_MS);
  const before = readTreeUsage(relay.process.pid);
  const clients = workspace.keep(
    startPinned({
      name: "idle clients",
      command: process.execPath,
      args: [CLIENTS, String(relay.port), String(TUNNELS)],
      cores: context.cores.all,
    }),
  );
  const deadline = Date.now() + OPEN_TIMEOUT_MS;
  while (!clients.readOutput().includes(`open ${TUNNELS}`)) {
    if (clients.hasExited() || Date.now() > deadline) {
      throw new Error(`clients are not all connected: ${clients.readOutput().slice(0, 200)}`);
    }
    await sleep(100);
  }
  await sleep(SETTLE_MS);
  const after = readTreeUsage(relay.process.pid);
  const held = after.openFiles - before.openFiles;
  if (held < TUNNELS || clients.readOutput().includes("lost")) {
    throw new Error(`only ${held} of ${TUNNELS} connections were kept: ${clients.readOutput()}`);
  }
  await clients.stop();
  await relay.process.stop();
  return {
    kibEach: (after.pssBytes - before.pssBytes) / TUNNELS / 1_024,
    baseMib: before.pssBytes / MIB,
    fullMib: after.pssBytes / MIB,
  };
}
