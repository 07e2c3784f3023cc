// Lines of the combined log as the API returns them, and filters of lines.
import { createHash } from "node:crypto";
import type { LogLine } from "@platform/console/contract";
import { formatLogLine, LOG_LEVELS, type LogLevel } from "@platform/kernel/log";
import { SERVICES } from "../services/index.ts";

/** Parsed line of the log. */
export type LogEvent = Readonly<Record<string, unknown>>;

/** Filter of lines. */
export interface LogFilter {
  /** Name and product name of a service; lines of the supervisor about it are included. */
  service: { name: string; label: string } | undefined;
  /** Minimum severity. */
  level: LogLevel;
  /** Text that the message or a field contains, in any case. */
  text: string | undefined;
}

/** Parses a line; undefined if it is not an event. */
export function parseLogEvent(line: string): LogEvent | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as LogEvent;
  } catch {
    // The line is being written.
    return undefined;
  }
}

/** Formats an event as a line for people, which has the product name of its service. */
export function formatReadable(event: LogEvent, colours: boolean): string {
  const label = SERVICES.find(({ name }) => name === event["service"])?.label;
  return formatLogLine(label === undefined ? event : { ...event, service: label }, colours);
}

/** Converts an event. `line` is its JSON text. */
export function toLogLine(event: LogEvent, line: string): LogLine {
  const { timestamp, level, service, msg, trace_id, span_id, ...rest } = event;
  const fields: Record<string, unknown> = { ...rest };
  for (const name of ["duration_ms", "status"]) {
    if (fields[name] === null || fields[name] === "") delete fields[name];
  }
  if (span_id !== "" && span_id !== undefined) fields["span_id"] = span_id;
  return {
    id: createHash("sha256").update(line.trimEnd()).digest("base64url").slice(0, 16),
    timestamp: readText(timestamp),
    level: readText(level),
    service: readText(service),
    msg: readText(msg),
    trace_id: readText(trace_id),
    fields,
  };
}

/** Creates a function that is true for lines that pass a filter. */
export function createLogFilter({ service, level, text }: LogFilter): (event: LogEvent) => boolean {
  const threshold = LOG_LEVELS.indexOf(level);
  const wanted = text?.toLowerCase() ?? "";
  return (event) => {
    // The supervisor's events name the service by its product name.
    const isOther =
      service !== undefined && event["service"] !== service.name && event["part"] !== service.label;
    if (isOther || LOG_LEVELS.indexOf(event["level"] as LogLevel) < threshold) return false;
    return wanted === "" || Object.values(event).some((value) => contains(value, wanted));
  };
}

function contains(value: unknown, wanted: string): boolean {
  if (value === null || value === undefined) return false;
  const text = typeof value === "object" ? JSON.stringify(value) : readText(value);
  return text.toLowerCase().includes(wanted);
}

function readText(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}
