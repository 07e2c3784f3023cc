// The closed-loop load: runs wrk and reads its summary.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runPinned } from "./process.ts";

// wrk passes the summary to `done`, which prints it as JSON: the usual text output is rounded.
const REPORT_SCRIPT = `
done = function(summary, latency, requests)
  local e = summary.errors
  print(string.format(
    '{"requests":%d,"durationUs":%d,"bytes":%d,"failed":%d,"p50Us":%d,"p99Us":%d}',
    summary.requests, summary.duration, summary.bytes,
    e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
`;

// The requests in turn; the connections of wrk's one thread share the list.
const CYCLE_SCRIPT = `
local targets = {}
for line in io.lines(os.getenv("WRK_TARGETS")) do targets[#targets + 1] = line end
local at = 0
local size = tonumber(os.getenv("WRK_BODY_BYTES"))
local body = size > 0 and string.rep("x", size) or nil
request = function()
  at = at % #targets + 1
  return wrk.format(os.getenv("WRK_METHOD"), targets[at], nil, body)
end
`;

const POST_SCRIPT = `
wrk.method = "POST"
wrk.body = os.getenv("WRK_BODY")
wrk.headers["Content-Type"] = os.getenv("WRK_TYPE")
`;

const FORM_TYPE = "application/x-www-form-urlencoded";
const JSON_TYPE = "application/json";

/** Different requests in turn instead of one GET. */
interface WrkCycle {
  method: string;
  /** A file with one request target per line. */
  targetsPath: string;
  /** Length of each request's body; 0 for requests without a body. */
  bodyBytes: number;
}

/** A load on one URL: a number of connections that each wait for their response, for some seconds. */
export interface WrkLoad {
  url: string;
  connections: number;
  seconds: number;
  headers?: Record<string, string>;
  cycle?: WrkCycle;
  /** Form to POST; if absent, requests are GETs. */
  form?: string;
  /** JSON to POST. */
  json?: string;
  cores: string;
  /** Folder for the Lua script. */
  scratch: string;
}

/** The summary of wrk. Latencies are those of a closed loop at saturation, so they include queueing. */
export interface WrkSummary {
  requests: number;
  durationUs: number;
  bytes: number;
  /** Socket errors, timeouts and responses with status 400 or above. */
  failed: number;
  p50Us: number;
  p99Us: number;
}

/** The figures that most cases report of a round: requests, CPU time and latencies. */
export interface WrkFigures extends Record<string, number> {
  perS: number;
  cpuUs: number;
  p50Us: number;
  p99Us: number;
}

/** The figures of a run in which the server used `cpuMs`, or a message why the run is invalid. */
export function toFigures(summary: WrkSummary, cpuMs: number): WrkFigures | string {
  const { requests, durationUs, failed, p50Us, p99Us } = summary;
  if (failed > 0) return `${failed} of ${requests} requests failed`;
  if (requests === 0) return "no request was completed";
  return { perS: (requests * 1e6) / durationUs, cpuUs: (cpuMs * 1_000) / requests, p50Us, p99Us };
}

/** Runs wrk with one thread until it exits. */
export async function runWrk(load: WrkLoad): Promise<WrkSummary> {
  const script = join(load.scratch, "report.lua");
  const { cycle, form, json } = load;
  const body = form ?? json;
  const requestScript = cycle !== undefined ? CYCLE_SCRIPT : body !== undefined ? POST_SCRIPT : "";
  writeFileSync(script, requestScript + REPORT_SCRIPT);
  const headers = Object.entries(load.headers ?? {}).flatMap(([name, value]) => [
    "-H",
    `${name}: ${value}`,
  ]);
  const output = await runPinned({
    name: "wrk",
    command: "wrk",
    cores: load.cores,
    env:
      cycle === undefined
        ? body === undefined
          ? {}
          : { WRK_BODY: body, WRK_TYPE: form === undefined ? JSON_TYPE : FORM_TYPE }
        : {
            WRK_TARGETS: cycle.targetsPath,
            WRK_METHOD: cycle.method,
            WRK_BODY_BYTES: String(cycle.bodyBytes),
          },
    args: [
      "-t1",
      `-c${load.connections}`,
      `-d${load.seconds}s`,
      "--timeout",
      "5s",
      "-s",
      script,
      ...headers,
      load.url,
    ],
  });
  const line = output.split("\n").find((text) => text.startsWith("{"));
  if (line === undefined) throw new Error(`wrk printed no summary: ${output}`);
  return JSON.parse(line) as WrkSummary;
}
