// Lateness of delayed messages when a million of them are due within a minute, in a different order than published.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { takePercentile } from "../../harness/statistics.ts";
import { publishAll } from "../batch-load.ts";
import { OURS_ON_NODE } from "../../harness/build.ts";
import { makePlatformPulse } from "../brokers/platform-pulse.ts";
import { topicName } from "../broker-load.ts";

const MESSAGES = 1_000_000;
const SPAN_MS = 60_000;
/** Long enough that all messages are published before the first is due. */
const AHEAD_MS = 40_000;
const LAST_ONES_MS = 60_000;

/** Lateness of a million due messages. */
export const delays: BenchCase = {
  name: "delays",
  title: "A million delayed messages",
  isOptional: true,
  run: async (context) => {
    await using workspace = new Workspace();
    const folder = join(workspace.folder, "broker");
    mkdirSync(folder);
    const broker = makePlatformPulse(OURS_ON_NODE);
    const running = await broker.start({ cores: context.cores.test, folder, workspace });
    const url = `http://127.0.0.1:${running.ports.http}`;
    const dueMs = new Float64Array(MESSAGES);
    const lateMs: number[] = [];
    const stop = new AbortController();
    await follow(url, stop.signal, (at) => lateMs.push(Date.now() - dueMs[at]!));
    const started = performance.now();
    await publishAll(
      url,
      MESSAGES,
      (at) => ({
        topic: topicName,
        payload: String(at).padEnd(64, "x"),
        delay_ms: AHEAD_MS + ((at * 7_919) % SPAN_MS),
      }),
      (at, { scheduled_for }) => (dueMs[at] = scheduled_for!),
    );
    const publishedS = (performance.now() - started) / 1_000;
    context.say(`  published in ${publishedS.toFixed(0)} s, ${lateMs.length} received meanwhile`);
    const until = performance.now() + AHEAD_MS + SPAN_MS + LAST_ONES_MS;
    while (lateMs.length < MESSAGES && performance.now() < until) await sleep(100);
    stop.abort();
    const round = {
      p50Ms: takePercentile(lateMs, 0.5),
      p99Ms: takePercentile(lateMs, 0.99),
      maxMs: takePercentile(lateMs, 1),
    };
    const missing = MESSAGES - lateMs.length;
    return {
      work: `${MESSAGES} messages of 64 bytes, published over HTTP in batches, due at random within ${SPAN_MS / 1_000} s; time from the due time of each message to its arrival at one SSE subscriber, including its fdatasync.`,
      columns: [
        { key: "p50Ms", title: "p50 ms late", digits: 0 },
        { key: "p99Ms", title: "p99 ms late", digits: 0 },
        { key: "maxMs", title: "max ms late", digits: 0 },
      ],
      rows: [
        {
          name: broker.name,
          isOurs: true,
          version: broker.readVersion(),
          rounds: [missing === 0 ? round : undefined],
          ...(missing === 0 ? {} : { note: `${missing} messages did not come` }),
        },
      ],
      ratioColumns: [],
      goals: [],
    };
  },
};

/** Subscribes to all partitions of the topic; resolves when the subscription is active. */
async function follow(
  url: string,
  signal: AbortSignal,
  onMessage: (at: number) => void,
): Promise<void> {
  const response = await fetch(`${url}/api/v1/subscribe/${topicName}`, { signal });
  if (response.body === null || !response.ok) throw new Error(await response.text());
  const chunks = response.body.pipeThrough(new TextDecoderStream());
  const read = async () => {
    let text = "";
    for await (const chunk of chunks) {
      const lines = (text + chunk).split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) {
        if (!line.startsWith("data: {")) continue;
        const { payload } = JSON.parse(line.slice(6)) as { payload: string };
        onMessage(Number.parseInt(payload, 10));
      }
    }
  };
  read().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
