// `platform status`: the state of each service.
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { get as getSecurely } from "node:https";
import { resolve } from "node:path";
import { readRunning, type ServiceState } from "../data-folder/running-file.ts";
import { explainFileError } from "../data-folder/data-folder.ts";
import { explainStopped } from "../client/target.ts";

const PROBE_TIMEOUT_MS = 3_000;

/** Readiness of a service. */
export interface ServiceStatus extends ServiceState {
  /** `up`, `degraded` (running but not ready), or the supervisor's state. */
  status: "up" | "degraded" | "starting" | "restarting";
  /** Reason of a status other than `up`. */
  detail: string;
}

/** Prints a table, or JSON; exit code 1 unless every service is up. */
export async function runStatus(options: { data: string; json: boolean }): Promise<number> {
  const dataDir = resolve(options.data);
  let state: ReturnType<typeof readRunning>;
  try {
    state = readRunning(dataDir);
  } catch (error) {
    throw explainFileError(error, dataDir);
  }
  if (state === undefined) throw explainStopped(dataDir);
  const services = await Promise.all(state.services.map(readStatus));
  const isUp = services.every(({ status }) => status === "up");
  const { pid, version, started_at } = state;
  if (options.json) {
    const document = { status: isUp ? "up" : "degraded", pid, version, started_at, services };
    process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  } else {
    process.stdout.write(
      `platform ${version} · process ${pid} · running for ${formatAge(started_at)}\n\n${formatTable(services)}`,
    );
  }
  return isUp ? 0 : 1;
}

/** Asks a service for its readiness. */
export async function readStatus(service: ServiceState): Promise<ServiceStatus> {
  if (service.state !== "running")
    return { ...service, status: service.state, detail: service.last_failure ?? "" };
  if (service.probe_url === undefined) return { ...service, status: "up", detail: "" };
  try {
    const { status, body } = await probe(`${service.probe_url}/readyz`);
    if (status === 200) return { ...service, status: "up", detail: "" };
    const { checks } = JSON.parse(body) as { checks?: Record<string, { detail?: string }> };
    const detail = Object.entries(checks ?? {})
      .map(([name, check]) => `${name}: ${check.detail ?? "down"}`)
      .join("; ");
    return { ...service, status: "degraded", detail: detail || `status ${status}` };
  } catch (error) {
    const isLate = error instanceof Error && error.name === "TimeoutError";
    const detail = isLate ? `no answer within ${PROBE_TIMEOUT_MS / 1000} s` : "no answer";
    return { ...service, status: "degraded", detail };
  }
}

// The certificate of a public name is not valid for localhost; nothing secret is sent.
async function probe(url: string): Promise<{ status: number; body: string }> {
  const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
  const request = url.startsWith("https:")
    ? getSecurely(url, { rejectUnauthorized: false, signal })
    : get(url, { signal });
  const [answer] = (await once(request, "response", { signal })) as [IncomingMessage];
  let body = "";
  for await (const chunk of answer.setEncoding("utf8")) body += String(chunk);
  return { status: answer.statusCode ?? 0, body };
}

/** The time since a moment: `45 s`, `12 min`, `3 h`, `5 d`. */
function formatAge(since: string | undefined): string {
  if (since === undefined) return "";
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(since)) / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

function formatTable(services: readonly ServiceStatus[]): string {
  const rows = services.toReversed().map((service) => {
    const { label, status, url, pid, started_at, restarts, detail } = service;
    const notes = [
      restarts === 0 ? "" : `${restarts} ${restarts === 1 ? "restart" : "restarts"}`,
      detail,
    ];
    return [
      label,
      status,
      url,
      pid === undefined ? "" : String(pid),
      status === "up" ? formatAge(started_at) : "",
      notes.filter((note) => note !== "").join(" · "),
    ];
  });
  const table = [["service", "state", "address", "process", "for", ""], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  return table
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at]!))
        .join("  ")
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join("");
}
