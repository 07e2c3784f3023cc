// The gateway's API, as its operator.
import { GATE_TOKEN } from "../services/gate.ts";
import { ApiError, explain, type Method } from "./api-client.ts";
import { requestGateway } from "./gateway-request.ts";
import { findService, requireCredential, type Target } from "./target.ts";

const LABEL = "gateway";
const TIMEOUT_MS = 15_000;
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** Calls the gateway as its operator; resolves to the parsed answer. Throws `ApiError`. */
export async function callGateway(
  target: Target,
  method: Method,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const { url } = findService(target, "gate", LABEL);
  const text = body === undefined ? "" : JSON.stringify(body);
  const answer = await requestGateway(url, {
    method,
    path,
    headers: {
      authorization: `Bearer ${requireCredential(target, GATE_TOKEN)}`,
      ...(text === "" ? {} : { "content-type": "application/json" }),
    },
    body: text,
    timeoutMs: TIMEOUT_MS,
    bytesMax: ANSWER_BYTES_MAX,
  });
  const { status } = answer;
  const received = answer.body.toString();
  if (status >= 300) throw new ApiError(explain(LABEL, status, received), status);
  return received === "" ? {} : JSON.parse(received);
}
