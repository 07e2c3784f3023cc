// The answers that the engine gives by itself, as problem documents (RFC 9457).
import { STATUS_CODES } from "node:http";

import { prepareAnswer } from "../write/index.ts";
import type { PreparedAnswer } from "../write/index.ts";

/** Makes the answer for a status, a stable code and one sentence. */
export function prepareProblem(status: number, code: string, detail: string): PreparedAnswer {
  const title = STATUS_CODES[status] ?? "Error";
  const problem = {
    type: `urn:platform:error:${code}`,
    title,
    status,
    detail,
    instance: "",
    code,
    error: detail,
    trace_id: "",
  };
  const headers: [string, string][] = [["Content-Type", "application/problem+json"]];
  if (status === 503) headers.push(["Retry-After", "1"]);
  return prepareAnswer({ status, headers, body: JSON.stringify(problem) });
}
