// The first steps of the console's start page that need a program: a request through the gateway, and a tunnel.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import { requestGateway } from "../client/gateway-request.ts";
import type { SampleTunnel } from "../client/sample-tunnel.ts";
import { findService, type Target } from "../client/target.ts";
import { describeActor, requireManage } from "./access.ts";

const TIMEOUT_MS = 10_000;
const SHOWN_BYTES = 1_024;

/** Options of {@link createFirstStepRoutes}. */
export interface FirstStepOptions {
  getTarget: () => Target;
  tunnel: Pick<SampleTunnel, "open">;
  onChange: (title: string, actor: string) => void;
}

export function createFirstStepRoutes({
  getTarget,
  tunnel,
  onChange,
}: FirstStepOptions): ApiRoute[] {
  const operation = {
    method: "POST",
    tag: "First steps",
    access: requireManage,
    problems: { 503: "The gateway, the tunnel or the sample does not run" },
  } as const;
  return [
    defineRoute({
      ...operation,
      path: "/api/v1/first-steps/request",
      summary: "Send a request to the sample through the gateway, without credentials",
      answer: z.object({
        status: z.int(),
        body: z.string().meta({ description: "at most 1 KiB" }),
        duration_ms: z.number(),
      }),
      handle: () => explain(async () => sendRequest(getTarget())),
    }),
    defineRoute({
      ...operation,
      path: "/api/v1/first-steps/tunnel",
      summary: "Open a tunnel to the sample for ten minutes",
      description: "One that is open is returned again.",
      status: 201,
      answer: z.object({ url: z.string(), ends_at: z.string().meta({ description: "RFC 3339" }) }),
      handle: ({ caller }) =>
        explain(async () => {
          const { url, endsAtMs } = await tunnel.open();
          onChange("tunnel to the sample opened", describeActor(caller));
          return { url, ends_at: new Date(endsAtMs).toISOString() };
        }),
    }),
  ];
}

async function sendRequest(target: Target) {
  const { url } = findService(target, "gate", "gateway");
  const startedMs = performance.now();
  const { status, body } = await requestGateway(url, {
    method: "GET",
    path: "/hello",
    headers: { host: new URL(url).host },
    body: "",
    timeoutMs: TIMEOUT_MS,
    bytesMax: SHOWN_BYTES,
  });
  return { status, body: body.toString(), duration_ms: performance.now() - startedMs };
}

async function explain<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new PlatformError("unavailable", `${reason}.`, { cause: error });
  }
}
