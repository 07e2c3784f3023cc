// Memory use of a million delayed messages, a hundred thousand topics and ten thousand subscribers.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { startPinned } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import { readTreeUsage } from "../../harness/usage.ts";
import { OURS_ON_NODE } from "../../harness/build.ts";
import { makePlatformPulse } from "../brokers/platform-pulse.ts";
import { publishAll } from "../batch-load.ts";
import { topicName } from "../broker-load.ts";

const IDLE_CLIENT = new URL("../../harness/idle-client.ts", import.meta.url).pathname;
const MIB = 1024 * 1024;
const DELAYED = 1_000_000;
/** Together with the topic of the load, the maximum of a tenant. */
const TOPICS = 99_999;
const SUBSCRIBERS = 10_000;
/** After all messages are published, but soon enough that they are held in memory (within two minutes). */
const DELAY_MS = 90_000;

interface Fill {
  name: string;
  fill: (url: string, workspace: Workspace) => Promise<void>;
}

/** Memory compared with an empty broker. */
export const memory: BenchCase = {
  name: "memory",
  title: "Memory",
  isOptional: true,
  run: async (context) => {
    const fills: Fill[] = [
      {
        name: "a million delayed messages of 64 bytes, due in 90 s to 150 s",
        fill: (url) =>
          publishAll(url, DELAYED, (at) => ({
            topic: topicName,
            payload: "x".repeat(64),
            delay_ms: DELAY_MS + ((at * 7_919) % 60_000),
          })),
      },
      {
        name: "100 000 topics with a message each",
        fill: (url) => publishAll(url, TOPICS, (at) => ({ topic: `t${at}`, payload: "x" })),
      },
      {
        name: "10 000 SSE subscribers",
        fill: (url, workspace) => subscribeAll(context, url, workspace),
      },
    ];
    const rows: Row[] = [];
    for (const { name, fill } of fills) {
      const row: Row = { name, isOurs: true, version: "", rounds: [await measure(context, fill)] };
      context.say(`  ${name}: ${JSON.stringify(row.rounds[0])}`);
      rows.push(row);
    }
    return {
      work: "A new broker for each row; proportional set size of its process before the fill, and after it once the broker is idle.",
      columns: [
        { key: "beforeMib", title: "MiB before", digits: 0 },
        { key: "afterMib", title: "MiB after", digits: 0 },
        { key: "seconds", title: "filled in s", digits: 0 },
      ],
      rows,
      ratioColumns: [],
      goals: [],
    };
  },
};

async function measure(context: BenchContext, fill: Fill["fill"]) {
  await using workspace = new Workspace();
  const folder = join(workspace.folder, "broker");
  mkdirSync(folder);
  const broker = makePlatformPulse(OURS_ON_NODE);
  const running = await broker.start({ cores: context.cores.test, folder, workspace });
  const readMib = () => readTreeUsage(running.pid).pssBytes / MIB;
  const beforeMib = readMib();
  const started = performance.now();
  await fill(`http://127.0.0.1:${running.ports.http}`, workspace);
  const seconds = (performance.now() - started) / 1_000;
  await sleep(3_000);
  return { beforeMib, afterMib: readMib(), seconds };
}

async function subscribeAll(
  context: BenchContext,
  url: string,
  workspace: Workspace,
): Promise<void> {
  const client = workspace.keep(
    startPinned({
      name: "subscribers",
      command: process.execPath,
      args: [IDLE_CLIENT, `${url}/api/v1/subscribe/${topicName}`, String(SUBSCRIBERS)],
      cores: context.cores.load,
    }),
  );
  while (!client.readOutput().includes(`open ${SUBSCRIBERS}`)) {
    if (client.hasExited()) throw new Error(client.readOutput());
    await sleep(100);
  }
}
