// Latency of publishing over HTTP at a steady rate, alone and beside other busy programs.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { PaceSummary } from "../../harness/pace-generator.ts";
import { runPinned, startPinned, type PinnedProcess } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds } from "../../harness/rounds.ts";
import { topicName } from "../broker-load.ts";
import { makePlatformPulse } from "../brokers/platform-pulse.ts";

const GENERATOR = new URL("../../harness/pace-generator.ts", import.meta.url).pathname;
const FLOOR_SERVER = new URL("../floor-server.ts", import.meta.url).pathname;
const FLOOR = "node:http and fdatasync";
const START_TIMEOUT_MS = 60_000;
const RATE = 2_000;
const CONNECTIONS = 32;
const BUSY_LOOP = "for (;;) Math.random();";

interface Contender {
  name: string;
  isOurs: boolean;
  version: string;
  url: string;
}

/** Publish at a fixed rate. */
export const pace: BenchCase = {
  name: "pace",
  title: `HTTP publish at ${RATE} messages/s`,
  run: async (context) => {
    await using workspace = new Workspace();
    const contenders = [
      ...(await startOurs(context, workspace)),
      await startFloor(context, workspace),
    ];
    for (const { url } of contenders) await publishPaced(context, url);
    const alone = await measure(context, contenders, "");
    const busy = startBusy(context, workspace);
    const beside = await measure(context, contenders, ", beside busy processes");
    await Promise.all(busy.map((each) => each.stop()));
    return {
      work: `${CONNECTIONS} connections, messages of 1 KB; each request timed from the moment it was due to the answer, which means on disk. "${FLOOR}" answers after writing and syncing the request bodies, and does nothing else: the latency that this machine and its disk allow. The busy processes compute without pause, one on each core, with the same priority.`,
      columns: [
        { key: "p50Ms", title: "p50 ms", digits: 1 },
        { key: "p99Ms", title: "p99 ms", digits: 1 },
      ],
      rows: [...alone, ...beside],
      ratioColumns: [],
      goals: [{ column: "p99Ms", against: FLOOR }],
      remarks: ["- goal: p99 < 15 ms, alone on the machine"],
    };
  },
};

async function startOurs(context: BenchContext, workspace: Workspace): Promise<Contender[]> {
  const started: Contender[] = [];
  for (const build of context.builds) {
    const broker = makePlatformPulse(build);
    const folder = join(workspace.folder, build.label);
    mkdirSync(folder);
    const running = await broker.start({ cores: context.cores.test, folder, workspace });
    started.push({
      name: broker.name,
      isOurs: true,
      version: broker.readVersion(),
      url: `http://127.0.0.1:${running.ports.http}/api/v1/publish`,
    });
  }
  return started;
}

async function startFloor(context: BenchContext, workspace: Workspace): Promise<Contender> {
  const port = await findFreePort();
  const server = workspace.keep(
    startPinned({
      name: FLOOR,
      command: process.execPath,
      args: [FLOOR_SERVER, String(port), join(workspace.folder, "floor")],
      cores: context.cores.test,
    }),
  );
  await awaitPort(server, port, START_TIMEOUT_MS);
  return { name: FLOOR, isOurs: false, version: process.version, url: `http://127.0.0.1:${port}/` };
}

async function measure(
  context: BenchContext,
  contenders: readonly Contender[],
  circumstance: string,
): Promise<Row[]> {
  const entrants = contenders.map(({ name, isOurs, version, url }) => {
    const row: Row = { name: `${name}${circumstance}`, isOurs, version, rounds: [] };
    return { row, url };
  });
  await runRounds(
    context,
    entrants,
    async ({ url }) => {
      const { p50Us, p99Us, failed, unanswered } = await publishPaced(context, url);
      if (failed + unanswered === 0) return { p50Ms: p50Us / 1_000, p99Ms: p99Us / 1_000 };
      return `${failed} connections lost, ${unanswered} requests unanswered`;
    },
    ({ p99Ms }) => `p99 ${p99Ms!.toFixed(1)} ms`,
  );
  return entrants.map(({ row }) => row);
}

function startBusy({ cores }: BenchContext, workspace: Workspace): PinnedProcess[] {
  return cores.all.split(",").map((core) =>
    workspace.keep(
      startPinned({
        name: "busy process",
        command: process.execPath,
        args: ["--eval", BUSY_LOOP],
        cores: core,
      }),
    ),
  );
}

async function publishPaced({ cores, seconds }: BenchContext, url: string): Promise<PaceSummary> {
  const body = JSON.stringify({ topic: topicName, payload: "v".repeat(1_024) });
  const output = await runPinned({
    name: "pace generator",
    command: process.execPath,
    args: [GENERATOR, url, ...[CONNECTIONS, RATE, seconds].map(String), new URL(url).host, body],
    cores: cores.load,
  });
  return JSON.parse(output) as PaceSummary;
}
