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
 * JSON.
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
  for (const [name, json] of event.extra)
    details.push(`${name.replaceAll(/[^\w.-]/g, "?")}=${cleanText(json)}`);
  if (details.length > 0) parts.push(paint("90", details.join(" ")));
  return `${parts.join(" ")}\n`;
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
