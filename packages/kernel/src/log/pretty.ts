// The readable form of events, for terminals.
import { encodeText, encodeValue } from "./encode.ts";
import type { EncodedEvent, EventLevel } from "./event.ts";

const COLOURS = { debug: "90", info: "36", warn: "33", error: "31" } as const satisfies Record<
  EventLevel,
  string
>;

/** Length of the longest product name. */
const SERVICE_CHARACTERS = "messaging".length;

/**
 * Formats an event as one line: time, level, service, message, further fields. Control characters stay escaped, as in
 * JSON. The frame of an error follows in lines of its own, instead of its stack.
 */
export function formatPretty(event: EncodedEvent, colours: boolean): string {
  const paint = (code: string, text: string): string =>
    colours ? `\u001b[${code}m${text}\u001b[0m` : text;
  const time = event.timestamp.slice(11, 23);
  const parts = [
    paint("90", time),
    paint(COLOURS[event.level], event.level.padEnd(5)),
    unquote(event.service).padEnd(SERVICE_CHARACTERS),
    unquote(event.msg),
  ];
  const details: string[] = [];
  if (event.status !== "null") details.push(`status=${event.status}`);
  if (event.durationMs !== "null") details.push(`duration_ms=${event.durationMs}`);
  if (event.traceId !== '""') details.push(`trace_id=${unquote(event.traceId)}`);
  const frame = readFrame(event);
  for (const [name, json] of event.extra) {
    if (frame !== undefined && IN_FRAME.has(name)) continue;
    details.push(`${name.replaceAll(/[^\w.-]/g, "?")}=${cleanText(json)}`);
  }
  if (details.length > 0) parts.push(paint("90", details.join(" ")));
  return `${parts.join(" ")}\n${frame === undefined ? "" : formatFrame(frame, paint)}`;
}

/** Fields that a frame replaces. */
const IN_FRAME = new Set(["frame", "error", "declared_at"]);
const FRAME_LINES_MAX = 12;

/** An error with the lines of its author's file. */
interface Frame {
  readonly message?: unknown;
  readonly at?: unknown;
  readonly lines?: unknown;
  readonly stack?: unknown;
}

function readFrame({ extra }: EncodedEvent): Frame | undefined {
  const [, json] = extra.find(([name]) => name === "frame") ?? [];
  const frame: unknown = json === undefined ? undefined : JSON.parse(json);
  return typeof frame === "object" && frame !== null ? frame : undefined;
}

// Indented, so that no line of a message looks like one of the log.
function formatFrame(
  { message, at, lines, stack }: Frame,
  paint: (code: string, text: string) => string,
): string {
  const list = (value: unknown): string[] =>
    Array.isArray(value) ? value.slice(0, FRAME_LINES_MAX).map(readText) : [];
  const texts = [
    paint(COLOURS.error, cleanLine(readText(message))),
    ...[readText(at)].filter((text) => text !== "").map(cleanLine),
    ...list(lines).map(cleanLine),
    ...list(stack).map((text) => paint("90", `  at ${cleanLine(text)}`)),
  ];
  return texts.map((text) => `    ${text}\n`).join("");
}

function cleanLine(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what is replaced
  return cleanText(text.replaceAll(/[\u0000-\u0008\u000a-\u001f]/g, "?"));
}

/** Formats a parsed JSON line of a logger, for example in a supervisor. */
export function formatLogLine(line: Readonly<Record<string, unknown>>, colours: boolean): string {
  const { level, msg, trace_id, span_id, service, duration_ms, status, timestamp, ...extra } = line;
  const known = typeof level === "string" && Object.hasOwn(COLOURS, level);
  return formatPretty(
    {
      level: known ? (level as EventLevel) : "info",
      msg: encodeText(readText(msg)),
      traceId: encodeText(readText(trace_id)),
      spanId: encodeText(readText(span_id)),
      service: encodeText(readText(service)),
      durationMs: encodeValue("duration_ms", duration_ms ?? null),
      status: encodeValue("status", status ?? null),
      timestamp: readText(timestamp),
      extra: Object.entries(extra).map(([name, value]) => [name, encodeValue(name, value)]),
    },
    colours,
  );
}

function readText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

// Removes the quotes of a JSON string. Escapes of control characters stay, and characters that JSON allows but
// terminals interpret are replaced, so that a message can neither forge nor hide a line.
function unquote(json: string): string {
  return cleanText(json.slice(1, -1).replaceAll(String.raw`\"`, '"'));
}

function cleanText(text: string): string {
  return text.replaceAll(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, "?");
}
