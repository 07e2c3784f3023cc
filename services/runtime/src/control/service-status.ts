// Readiness of the services of a platform.
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { get as getSecurely } from "node:https";
import type { ServiceState } from "../data-folder/running-file.ts";

const PROBE_TIMEOUT_MS = 3_000;

/** Readiness of a service. */
export interface ServiceStatus extends ServiceState {
  /** `up`, `degraded` (running but not ready), or the supervisor's state. */
  status: "up" | "degraded" | Exclude<ServiceState["state"], "running">;
  /** Reason of a status other than `up`, or warnings of a service that is up. */
  detail: string;
}

/** Asks a service for its readiness. */
export async function readStatus(service: ServiceState): Promise<ServiceStatus> {
  if (service.state !== "running")
    return { ...service, status: service.state, detail: service.last_failure ?? "" };
  if (service.probe_url === undefined) return { ...service, status: "up", detail: "" };
  try {
    const { status, body } = await probe(`${service.probe_url}/readyz`);
    const { checks, warnings } = JSON.parse(body) as {
      checks?: Record<string, { detail?: string }>;
      warnings?: Record<string, string>;
    };
    if (status === 200)
      return { ...service, status: "up", detail: Object.values(warnings ?? {}).join("; ") };
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
