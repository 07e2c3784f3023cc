// Streams of a model at a fixed rate, run as a child: `first-events.ts URL RATE SECONDS HEADERS JSON`. Prints how long their
// first text and their end take, from the time at which each stream was due.
import { Agent, request } from "node:http";
import { takePercentile } from "../harness/statistics.ts";

/** Text that the first event with content has, and no event before it. */
const FIRST_TEXT = Buffer.from('"content":" ');
const WAITED_MS = 1_000;

/** The JSON line that is printed. */
export interface FirstEventsSummary {
  streams: number;
  /** Streams that have not ended with `[DONE]`. */
  failed: number;
  firstP50Us: number;
  firstP99Us: number;
  endP50Us: number;
}

if (import.meta.main) {
  const [url = "", rate = "50", seconds = "5", headers = "{}", json = "{}"] = process.argv.slice(2);
  const summary = await runStreams(
    new URL(url),
    { "Content-Type": "application/json", ...(JSON.parse(headers) as Record<string, string>) },
    json,
    Number(rate),
    Number(seconds),
  );
  console.log(JSON.stringify(summary));
  process.exit(0);
}

async function runStreams(
  url: URL,
  headers: Record<string, string>,
  json: string,
  ratePerS: number,
  seconds: number,
): Promise<FirstEventsSummary> {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  const firstUs: number[] = [];
  const endUs: number[] = [];
  const open = (dueMs: number): void => {
    let first = Number.NaN;
    let last = Buffer.alloc(0);
    const sent = request(url, { method: "POST", headers, agent }, (response) => {
      response.on("data", (chunk: Buffer) => {
        const seen = Buffer.concat([last, chunk]);
        if (Number.isNaN(first) && seen.includes(FIRST_TEXT))
          first = (performance.now() - dueMs) * 1_000;
        last = seen.subarray(-FIRST_TEXT.length);
      });
      // A stream that breaks off is one that does not end.
      response.on("error", () => {});
      response.on("end", () => {
        if (Number.isNaN(first) || !last.includes("[DONE]")) return;
        firstUs.push(first);
        endUs.push((performance.now() - dueMs) * 1_000);
      });
    });
    sent.on("error", () => {});
    sent.end(json);
  };
  const startMs = performance.now();
  let opened = 0;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    // Behind its time, this process would measure itself.
    while (opened < ((nowMs - startMs) * ratePerS) / 1_000) {
      opened++;
      open(nowMs);
    }
  }, 1);
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  clearInterval(timer);
  await new Promise((resolve) => setTimeout(resolve, WAITED_MS));
  return {
    streams: firstUs.length,
    failed: opened - firstUs.length,
    firstP50Us: takePercentile(firstUs, 0.5),
    firstP99Us: takePercentile(firstUs, 0.99),
    endP50Us: takePercentile(endUs, 0.5),
  };
}
