// W3C Trace Context: parsing and formatting of `traceparent` and `tracestate`. https://www.w3.org/TR/trace-context/

/** Trace context, as propagated between hops. */
export interface TraceContext {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string;
  /** 16 lower-case hex digits, not all zero. */
  readonly spanId: string;
  readonly sampled: boolean;
  /** `tracestate` as propagated; "" if absent. */
  readonly traceState: string;
}

/** Header fields that continue a trace at the next hop. */
export type TraceHeaders = Readonly<
  Record<"traceparent", string> & Partial<Record<"tracestate", string>>
>;

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/s;
const ZERO_TRACE = "0".repeat(32);
const ZERO_SPAN = "0".repeat(16);
const TRACEPARENT_CHARACTERS_MAX = 256;
const STATE_KEY = /^[a-z0-9][a-z0-9_\-*/@]{0,255}$/;
const STATE_VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const STATE_INPUT_CHARACTERS_MAX = 16_384;
const STATE_CHARACTERS_MAX = 512;
const STATE_LONG_MEMBER_CHARACTERS = 128;
const STATE_MEMBERS_MAX = 32;

/**
 * Parses both headers; undefined without a valid `traceparent`, in which case `tracestate` is ignored (section 3.3).
 * Versions above 00 are parsed as 00, as section 3.2.2 requires; ff is invalid.
 */
export function parseTraceContext(
  traceparent: string | null | undefined,
  tracestate?: string | null,
): TraceContext | undefined {
  if (!traceparent || traceparent.length > TRACEPARENT_CHARACTERS_MAX) return undefined;
  const found = TRACEPARENT.exec(traceparent);
  if (found === null) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", rest] = found;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (traceId === ZERO_TRACE || spanId === ZERO_SPAN) return undefined;
  const sampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { traceId, spanId, sampled, traceState: normalizeTraceState(tracestate ?? "") };
}

/** Formats the `traceparent` of a context in version 00. */
export function formatTraceparent(context: Omit<TraceContext, "traceState">): string {
  return `00-${context.traceId}-${context.spanId}-${context.sampled ? "01" : "00"}`;
}

/** Returns the header fields that propagate a context to the next hop. */
export function formatTraceHeaders(context: TraceContext): TraceHeaders {
  const traceparent = formatTraceparent(context);
  return context.traceState === ""
    ? { traceparent }
    : { traceparent, tracestate: context.traceState };
}

/**
 * Normalizes `tracestate` for propagation: unchanged members in their order, at most 32 and 512 characters (long
 * members are removed first, then the last ones, section 3.3.1.5); "" if a member is malformed or repeated.
 */
export function normalizeTraceState(header: string): string {
  if (header === "" || header.length > STATE_INPUT_CHARACTERS_MAX) return "";
  const members: string[] = [];
  const keys = new Set<string>();
  for (const part of header.split(",")) {
    const member = part.replace(/^[ \t]+/, "").replace(/[ \t]+$/, "");
    if (member === "") continue;
    const at = member.indexOf("=");
    const key = member.slice(0, Math.max(0, at));
    if (!STATE_KEY.test(key) || !STATE_VALUE.test(member.slice(at + 1)) || keys.has(key)) return "";
    keys.add(key);
    members.push(member);
  }
  if (members.length > STATE_MEMBERS_MAX) return "";
  return shorten(members);
}

function shorten(members: string[]): string {
  let kept = members;
  let text = kept.join(",");
  while (text.length > STATE_CHARACTERS_MAX) {
    const long = kept.findLastIndex((member) => member.length > STATE_LONG_MEMBER_CHARACTERS);
    kept = kept.toSpliced(long === -1 ? kept.length - 1 : long, 1);
    text = kept.join(",");
  }
  return text;
}
