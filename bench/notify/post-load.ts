// Posts the same body for a time, run as a child: `post-load.ts URL CONNECTIONS SECONDS BODY-FILE EXPECTED`.
// Each connection sends its next request after the response, which must have status 200 and contain EXPECTED. Prints a
// JSON summary.
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { takePercentile } from "../harness/statistics.ts";

/** The JSON line that this program prints. */
export interface PostSummary {
  succeeded: number;
  failed: number;
  seconds: number;
  p50Ms: number;
  p99Ms: number;
}

if (import.meta.main) {
  const [url = "", connections = "20", seconds = "3", file = "", expected = ""] =
    process.argv.slice(2);
  const body = readFileSync(file);
  const load = { url: new URL(url), connections: Number(connections), seconds: Number(seconds) };
  console.log(JSON.stringify(await run({ ...load, body, expected })));
}

interface Load {
  url: URL;
  connections: number;
  seconds: number;
  body: Buffer;
  expected: string;
}

async function run(load: Load): Promise<PostSummary> {
  const agent = new Agent({ keepAlive: true, maxSockets: load.connections });
  const latenciesMs: number[] = [];
  let failed = 0;
  const startedAt = performance.now();
  const endsAt = startedAt + load.seconds * 1_000;
  const work = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      const sentAt = performance.now();
      if (await post(agent, load)) latenciesMs.push(performance.now() - sentAt);
      else failed += 1;
    }
  };
  await Promise.all(Array.from({ length: load.connections }, work));
  agent.destroy();
  return {
    succeeded: latenciesMs.length,
    failed,
    seconds: (performance.now() - startedAt) / 1_000,
    p50Ms: takePercentile(latenciesMs, 0.5),
    p99Ms: takePercentile(latenciesMs, 0.99),
  };
}

function post(agent: Agent, { url, body, expected }: Load): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": body.length };
    const sent = request(url, { agent, method: "POST", headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve(response.statusCode === 200 && text.includes(expected)));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
