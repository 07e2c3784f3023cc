// (d) A hundred thousand queued messages: memory, and the time until a transactional mail leaves.
import { setTimeout as sleep } from "node:timers/promises";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { judgeFigure, type Row } from "../../harness/report.ts";
import { OURS_ON_NODE } from "../../harness/build.ts";
import { readTreeUsage } from "../../harness/usage.ts";
import { startSink } from "../contest.ts";
import { request, startPlatformNotify, type PlatformNotify } from "../servers/platform-notify.ts";

const MESSAGES = 100_000;
const BATCH = 500;
const BATCHES_AT_ONCE = 4;
const DOMAINS = 50;
const TEXT = "Lorem ipsum dolor sit amet.\r\n".repeat(40);
const MIB = 1024 * 1024;
const MEMORY_MIB_MAX = 300;
const LEAVES_MS_MAX = 2_000;
const SAMPLE_MS = 250;
/** The sink's wait before each reply to a content: 20 connections drain the queue at about 20 messages per second. */
const SINK_DELAY_S = 1;

export const queue: BenchCase = {
  name: "queue",
  title: "A hundred thousand queued messages",
  run: async (context) => {
    await using workspace = new Workspace();
    const sinkPort = await startSink(context, workspace, SINK_DELAY_S);
    const ours = await startPlatformNotify(workspace, {
      build: OURS_ON_NODE,
      cores: context.cores.test,
      env: {
        PLATFORM_NOTIFY_SMTP_HOST: "127.0.0.1",
        PLATFORM_NOTIFY_SMTP_PORT: String(sinkPort),
        PLATFORM_NOTIFY_SMTP_TLS: "off",
        PLATFORM_NOTIFY_SEND_WAIT_MS: "0",
        PLATFORM_NOTIFY_PUBLIC_URL: "https://mail.bench.example",
      },
    });
    const figures = await measure(context, ours);
    const row: Row = {
      name: "notify (node)",
      isOurs: true,
      version: ours.version,
      rounds: [figures],
    };
    return {
      work:
        `${MESSAGES} bulk messages of about 1 KB for ${DOMAINS} domains, sent by POST /api/v1/send/batch, to a sink that replies after ${SINK_DELAY_S} s. ` +
        "Proportional set size, highest sample while they are accepted, and afterwards; then five transactional mails in turn, each until its relay has replied.",
      columns: [
        { key: "perS", title: "accepted/s", digits: 0 },
        { key: "queued", title: "queued", digits: 0 },
        { key: "beforeMib", title: "MiB before", digits: 0 },
        { key: "peakMib", title: "MiB peak", digits: 0 },
        { key: "afterMib", title: "MiB after", digits: 0 },
        { key: "leavesMs", title: "slowest mail left after ms", digits: 0 },
      ],
      rows: [row],
      ratioColumns: [],
      goals: [],
      remarks: [
        judgeFigure("MiB peak", figures.peakMib, MEMORY_MIB_MAX),
        judgeFigure("slowest mail left after ms", figures.leavesMs, LEAVES_MS_MAX),
      ],
    };
  },
};

async function measure(context: BenchContext, { origin, pid }: PlatformNotify) {
  const readMib = (): number => readTreeUsage(pid).pssBytes / MIB;
  const beforeMib = readMib();
  let peakMib = 0;
  const sample = (): void => void (peakMib = Math.max(peakMib, readMib()));
  const timer = setInterval(sample, SAMPLE_MS);
  const startedAt = performance.now();
  let next = 0;
  const fill = async (): Promise<void> => {
    for (let at = next; at < MESSAGES; at = next) {
      next += BATCH;
      const url = `${origin}/api/v1/send/batch`;
      const { results } = await request(url, "POST", { messages: createBatch(at) });
      const failed = (results as { code: number }[]).find(({ code }) => code !== 202);
      if (failed !== undefined) throw new Error(JSON.stringify(failed));
    }
  };
  await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, fill));
  const perS = MESSAGES / ((performance.now() - startedAt) / 1_000);
  const latenciesMs: number[] = [];
  for (let count = 0; count < 5; count += 1) latenciesMs.push(await sendOne(origin));
  clearInterval(timer);
  const leavesMs = Math.max(...latenciesMs);
  const queued = await readQueued(origin);
  sample();
  const afterMib = readMib();
  context.say(`  ${queued} queued, peak ${peakMib.toFixed(0)} MiB, left after ${leavesMs} ms`);
  return { perS, queued, beforeMib, peakMib, afterMib, leavesMs };
}

function createBatch(from: number): object[] {
  return Array.from({ length: BATCH }, (_, at) => ({
    to: `user${from + at}@d${(from + at) % DOMAINS}.example`,
    subject: "News",
    text: TEXT,
    stream: "bulk",
  }));
}

/** Sends a transactional mail; returns the time until the relay accepted it, in ms. */
async function sendOne(origin: string): Promise<number> {
  const mail = { to: "ada@shop.example", subject: "Your code", text: "123456" };
  const startedAt = performance.now();
  const { message_id: id } = await request(`${origin}/api/v1/send`, "POST", mail);
  for (;;) {
    const { status } = await request(`${origin}/api/v1/messages/${String(id)}`, "GET");
    if (status === "sent") return performance.now() - startedAt;
    await sleep(10);
  }
}

async function readQueued(origin: string): Promise<number> {
  const metrics = await (await fetch(`${origin}/metrics`)).text();
  return Number(/^platform_notify_queued (\d+)/m.exec(metrics)?.[1] ?? Number.NaN);
}
