// The open-loop load of the `stream` case, run as a child: `stream-load.ts URL RATE SECONDS`. Messages are published over
// HTTP at even intervals and received over SSE; the latency of each is measured from the time it was due to be sent.
import { Agent, get, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { takePercentile } from "../harness/statistics.ts";
import { topicName } from "./broker-load.ts";

const CONNECTIONS = 32;
const TICK_MS = 1;
const WARM_UP_SECONDS = 2;
const LAST_ONES_MS = 5_000;

/** The JSON line that the load prints. */
export interface StreamSummary {
  sent: number;
  missing: number;
  p50Ms: number;
  p99Ms: number;
}

if (import.meta.main) {
  const [url = "", rate = "1000", seconds = "5"] = process.argv.slice(2);
  console.log(JSON.stringify(await runStream(url, Number(rate), Number(seconds))));
  process.exit(0);
}

async function runStream(url: string, ratePerS: number, seconds: number): Promise<StreamSummary> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const latenciesMs: number[] = [];
  await subscribe(url, (dueMs) => latenciesMs.push(performance.now() - dueMs));
  await publishAtRate(url, agent, ratePerS, WARM_UP_SECONDS);
  await sleep(500);
  latenciesMs.length = 0;
  const sent = await publishAtRate(url, agent, ratePerS, seconds);
  const deadline = performance.now() + LAST_ONES_MS;
  while (latenciesMs.length < sent && performance.now() < deadline) await sleep(10);
  return {
    sent,
    missing: sent - latenciesMs.length,
    p50Ms: takePercentile(latenciesMs, 0.5),
    p99Ms: takePercentile(latenciesMs, 0.99),
  };
}

function subscribe(url: string, onMessage: (dueMs: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    get(`${url}/api/v1/subscribe/${topicName}`, (response) => {
      if (response.statusCode !== 200) {
        reject(new Error(`subscribing was answered with ${response.statusCode}`));
        return;
      }
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        const lines = (text + chunk).split("\n");
        text = lines.pop() ?? "";
        for (const line of lines) {
          if (!line.startsWith("data: {")) continue;
          onMessage(Number((JSON.parse(line.slice(6)) as { payload: string }).payload));
        }
      });
      resolve();
    }).on("error", reject);
  });
}

async function publishAtRate(
  url: string,
  agent: Agent,
  ratePerS: number,
  seconds: number,
): Promise<number> {
  const started = performance.now();
  const total = ratePerS * seconds;
  const answers: Promise<void>[] = [];
  for (let sent = 0; sent < total; await sleep(TICK_MS)) {
    const due = Math.min(total, Math.floor(((performance.now() - started) * ratePerS) / 1_000));
    for (; sent < due; sent += 1) {
      answers.push(publish(url, agent, started + (sent * 1_000) / ratePerS));
    }
  }
  await Promise.all(answers);
  return total;
}

function publish(url: string, agent: Agent, dueMs: number): Promise<void> {
  const body = JSON.stringify({ topic: topicName, payload: String(dueMs) });
  return new Promise((resolve, reject) => {
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    request(`${url}/api/v1/publish`, { method: "POST", agent, headers }, (response) => {
      response.resume().on("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`publishing was answered with ${response.statusCode}`));
      });
    })
      .on("error", reject)
      .end(body);
  });
}
