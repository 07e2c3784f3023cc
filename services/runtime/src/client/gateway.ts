// The gateway's API, at its listener on this machine: with TLS, its certificate is for public names.
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { request as requestSecurely } from "node:https";
import { GATE_TOKEN } from "../services/gate.ts";
import { ApiError, explain, type Method } from "./api-client.ts";
import { findService, requireCredential, type Target } from "./target.ts";

const LABEL = "gateway";
const TIMEOUT_MS = 15_000;

/** Calls the gateway as its operator; resolves to the parsed answer. Throws `ApiError`. */
export async function callGateway(
  target: Target,
  method: Method,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const { url } = findService(target, "gate", LABEL);
  const text = body === undefined ? "" : JSON.stringify(body);
  const options = {
    method,
    agent: false as const,
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: {
      authorization: `Bearer ${requireCredential(target, GATE_TOKEN)}`,
      ...(text === "" ? {} : { "content-type": "application/json" }),
    },
  };
  const place = new URL(path, url);
  // The port is that of the gateway which this platform runs.
  const sent = url.startsWith("https:")
    ? requestSecurely(place, { ...options, rejectUnauthorized: false })
    : request(place, options);
  sent.end(text);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let received = "";
  for await (const chunk of answer.setEncoding("utf8")) received += String(chunk);
  const status = answer.statusCode ?? 0;
  if (status >= 300) throw new ApiError(explain(LABEL, status, received), status);
  return received === "" ? {} : JSON.parse(received);
}
