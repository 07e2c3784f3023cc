// Compiles the rewrite rules of a target to bytes and tables that the per-request code only copies.
import { type FieldCuts, HeadWriter, compileForwardCuts } from "../write/index.ts";
import { Known } from "../parse/index.ts";
import type { ForwardPlan, ForwardPlanOptions } from "../contract/forward.ts";

/** Never copied from the client, but written from the parsed values, so that upstreams cannot interpret them differently. */
const FRAMING = ["content-length", "transfer-encoding"];

/** A compiled plan. */
export interface CompiledPlan extends ForwardPlan {
  /** For a plain request. */
  readonly requestCuts: FieldCuts;
  /** For an upgrade request. */
  readonly upgradeCuts: FieldCuts;
  /** For a request with a collected body, which has no trailers and no Expect. */
  readonly collectedCuts: FieldCuts;
  readonly responseCuts: FieldCuts;
  /** For responses without a length: 204 and informational ones (RFC 9110 §8.6). */
  readonly noContentCuts: FieldCuts;
  /** For responses whose chunked coding is removed (HTTP/1.0 clients): they have no trailers. */
  readonly unchunkedCuts: FieldCuts;
  /** For 101 and 426, which carry Upgrade. */
  readonly switchCuts: FieldCuts;
  /** Whole Host line, null if the client's is kept. */
  readonly hostLine: Buffer | null;
  readonly hostFallbackLine: Buffer;
  readonly requestAdditions: Buffer;
  readonly responseAdditions: Buffer;
  readonly stripPathBytes: number;
  readonly prependPath: Buffer;
  readonly upgrade: boolean;
  readonly responseHeadMs: number;
  readonly bodyIdleMs: number;
  readonly totalMs: number;
  readonly tunnelIdleMs: number;
}

/** Compiles a plan. Throws `HeadWriteError` on a field or path that cannot be sent, `RangeError` on a bad number. */
export function compilePlan(options: ForwardPlanOptions = {}): ForwardPlan {
  const host = options.host ?? "keep";
  const removed = [...(options.removeRequestFields ?? []), ...FRAMING];
  if (host !== "keep") removed.push("host");
  const removedFromResponse = [...(options.removeResponseFields ?? []), "transfer-encoding"];
  const stripPathBytes = options.stripPathBytes ?? 0;
  if (!Number.isInteger(stripPathBytes) || stripPathBytes < 0) {
    throw new RangeError(`stripPathBytes must be a non-negative integer, not ${stripPathBytes}`);
  }
  const prependPath = options.prependPath ?? "";
  if (prependPath !== "" && !/^\/[\w\-.~!$&'()*+,;=:@%/]*$/.test(prependPath)) {
    throw new RangeError("prependPath must begin with / and hold path characters only");
  }
  if (prependPath.endsWith("/")) throw new RangeError("prependPath must not end with /");
  const timeouts = options.timeouts ?? {};
  const plan: CompiledPlan = {
    options,
    requestCuts: compileForwardCuts(removed),
    upgradeCuts: keeping(compileForwardCuts(removed), Known.Upgrade),
    collectedCuts: compileForwardCuts([...removed, "trailer", "expect"]),
    responseCuts: compileForwardCuts(removedFromResponse),
    noContentCuts: compileForwardCuts([...removedFromResponse, "content-length"]),
    unchunkedCuts: compileForwardCuts([...removedFromResponse, "trailer"]),
    switchCuts: keeping(compileForwardCuts(removedFromResponse), Known.Upgrade),
    hostLine: host === "keep" ? null : fieldLines([["Host", host.value]]),
    hostFallbackLine: fieldLines([["Host", options.hostFallback ?? "localhost"]]),
    requestAdditions: fieldLines(options.addRequestFields ?? []),
    responseAdditions: fieldLines(options.addResponseFields ?? []),
    stripPathBytes,
    prependPath: Buffer.from(prependPath, "latin1"),
    upgrade: options.upgrade ?? true,
    responseHeadMs: timeouts.responseHeadMs ?? 60_000,
    bodyIdleMs: timeouts.bodyIdleMs ?? 300_000,
    totalMs: timeouts.totalMs ?? 0,
    tunnelIdleMs: timeouts.tunnelIdleMs ?? 0,
  };
  return plan;
}

function keeping(cuts: FieldCuts, known: number): FieldCuts {
  cuts.known[known] = 0;
  return cuts;
}

function fieldLines(fields: readonly (readonly [string, string])[]): Buffer {
  const writer = new HeadWriter(1_024);
  for (const [name, value] of fields) writer.field(name, value);
  return Buffer.from(writer.view());
}
