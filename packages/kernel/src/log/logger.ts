// The logger: one JSON line per event, or one readable line on a terminal.
import { systemClock } from "../time/index.ts";
import type { Clock } from "../time/index.ts";
import { encodeText, encodeValue } from "./encode.ts";
import {
  LOG_LEVELS,
  type EncodedEvent,
  type EventLevel,
  type LogFields,
  type LogLevel,
} from "./event.ts";
import { formatPretty } from "./pretty.ts";

const LINE_CHARACTERS_MAX = 16_384;

/** Writes events. Calls never throw; calls below the threshold cost one comparison. */
export interface Logger {
  readonly level: LogLevel;
  /** Whether an event of this level would be written: ask before computing costly fields. */
  isOn(level: EventLevel): boolean;
  debug(msg: string, fields?: LogFields): void;
  info(msg: string, fields?: LogFields): void;
  warn(msg: string, fields?: LogFields): void;
  error(msg: string, fields?: LogFields): void;
  /** A logger that adds these fields to each event; the event's own win. */
  child(fields: LogFields): Logger;
}

/** How to make a logger. */
export interface LoggerOptions {
  /** The service's name, in every line. */
  service: string;
  /** Threshold; default `info`. */
  level?: LogLevel;
  /** `auto` (default): readable on a terminal, JSON otherwise. */
  format?: "json" | "pretty" | "auto";
  /** Takes one whole line, newline included; default: standard output. */
  write?: (line: string) => void;
  clock?: Clock;
  /** Longest line in characters; extra fields that do not fit are left out and `truncated` says so. */
  lineCharactersMax?: number;
}

/**
 * Makes a logger. Every line has `level, msg, trace_id, span_id, service, duration_ms, status, timestamp` in this order,
 * texts "" and numbers null where they do not apply, then the extra fields.
 */
export function createLogger(options: LoggerOptions): Logger {
  const write = options.write ?? writeToStdout();
  const pretty =
    options.format === "pretty" ||
    ((options.format ?? "auto") === "auto" && options.write === undefined && isTerminal());
  const context: LoggerContext = {
    service: encodeText(options.service),
    level: options.level ?? "info",
    threshold: LOG_LEVELS.indexOf(options.level ?? "info"),
    formatTime: createTimeFormatter(options.clock ?? systemClock),
    lineMax: options.lineCharactersMax ?? LINE_CHARACTERS_MAX,
    emit: pretty
      ? (event) => write(formatPretty(event, isTerminal()))
      : (event) => write(formatJson(event)),
  };
  return buildLogger(context, {});
}

interface LoggerContext {
  /** As JSON. */
  service: string;
  level: LogLevel;
  threshold: number;
  formatTime: () => string;
  lineMax: number;
  emit: (event: EncodedEvent) => void;
}

const STANDARD = new Set([
  "level",
  "msg",
  "trace_id",
  "span_id",
  "service",
  "duration_ms",
  "status",
  "timestamp",
]);

function buildLogger(context: LoggerContext, base: LogFields): Logger {
  const hasBase = Object.keys(base).length > 0;
  const method = (level: EventLevel): ((msg: string, fields?: LogFields) => void) => {
    if (LOG_LEVELS.indexOf(level) < context.threshold) return ignoreEvent;
    return (msg, fields) =>
      context.emit(
        encodeEvent(
          context,
          level,
          msg,
          hasBase && fields !== undefined ? { ...base, ...fields } : (fields ?? base),
        ),
      );
  };
  return {
    level: context.level,
    isOn: (level) => LOG_LEVELS.indexOf(level) >= context.threshold,
    debug: method("debug"),
    info: method("info"),
    warn: method("warn"),
    error: method("error"),
    child: (fields) => buildLogger(context, { ...base, ...fields }),
  };
}

function ignoreEvent(): void {
  // Below the threshold.
}

function encodeEvent(
  context: LoggerContext,
  level: EventLevel,
  msg: string,
  fields: LogFields,
): EncodedEvent {
  const event: EncodedEvent = {
    level,
    msg: encodeText(msg),
    traceId: encodeText(fields.trace_id ?? ""),
    spanId: encodeText(fields.span_id ?? ""),
    service: context.service,
    durationMs: encodeDuration(fields.duration_ms),
    status: encodeValue("status", fields.status ?? null),
    timestamp: context.formatTime(),
    extra: [],
  };
  let left = context.lineMax - event.msg.length - 320;
  let dropped = false;
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (STANDARD.has(name) || value === undefined) continue;
    const json = encodeValue(name, value);
    if (json.length + name.length + 4 > left) {
      dropped = true;
      continue;
    }
    left -= json.length + name.length + 4;
    event.extra.push([name, json]);
  }
  if (dropped) event.extra.push(["truncated", "true"]);
  return event;
}

// Many lines are of the same millisecond.
function createTimeFormatter(clock: Clock): () => string {
  let atMs = Number.NaN;
  let text = "";
  return () => {
    const nowMs = clock.now();
    if (nowMs !== atMs) {
      atMs = nowMs;
      text = new Date(nowMs).toISOString();
    }
    return text;
  };
}

// Microseconds are the finest that anyone reads; more digits are noise.
function encodeDuration(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms)) return "null";
  return String(Math.round(ms * 1000) / 1000);
}

function formatJson(event: EncodedEvent): string {
  let line = `{"level":"${event.level}","msg":${event.msg},"trace_id":${event.traceId},"span_id":${event.spanId},"service":${event.service},"duration_ms":${event.durationMs},"status":${event.status},"timestamp":"${event.timestamp}"`;
  for (const [name, json] of event.extra) line += `,${JSON.stringify(name)}:${json}`;
  return `${line}}\n`;
}

function isTerminal(): boolean {
  return process.stdout.isTTY;
}

// A reader that has gone away (`| head`) must not end the service.
function writeToStdout(): (line: string) => void {
  if (!process.stdout.listeners("error").includes(ignoreClosedReader)) {
    process.stdout.on("error", ignoreClosedReader);
  }
  return (line) => void process.stdout.write(line);
}

function ignoreClosedReader(): void {
  // Nobody is left to tell.
}
