// The logger: one JSON line per event, or one readable line on a terminal.
import { systemClock, type Clock } from "../time/index.ts";
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
/** Lines that wait for the end of the turn; more are written immediately. */
const WAITING_CHARACTERS_MAX = 65_536;

/** Writes events. Calls never throw; calls below the threshold cost one comparison. */
export interface Logger {
  readonly level: LogLevel;
  /** True if events of this level are written: check before computing expensive fields. */
  isOn(level: EventLevel): boolean;
  debug(msg: string, fields?: LogFields): void;
  info(msg: string, fields?: LogFields): void;
  warn(msg: string, fields?: LogFields): void;
  error(msg: string, fields?: LogFields): void;
  /** Creates a logger that adds these fields to each event; the event's own fields take precedence. */
  child(fields: LogFields): Logger;
}

/** Options of {@link createLogger}. */
export interface LoggerOptions {
  /** Name of the service, in every line. */
  service: string;
  /** Threshold; default `info`. */
  level?: LogLevel;
  /** `auto` (default): readable on a terminal, JSON otherwise. */
  format?: "json" | "pretty" | "auto";
  /** Writes a line, including its newline; default: to standard output. */
  write?: (line: string) => void;
  clock?: Clock;
  /** Maximum length of a line in characters; extra fields that do not fit are omitted and `truncated` is set. */
  lineCharactersMax?: number;
}

/**
 * Creates a logger. Every line has `level, msg, trace_id, span_id, service, duration_ms, status, timestamp` in this
 * order ("" or null if not applicable), followed by the extra fields.
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
  /** JSON text. */
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

// Cached, because many lines have the same millisecond.
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

// Rounded to microseconds.
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

// Lines of one turn of the event loop are written together: writing is synchronous, and each write wakes the reader.
function writeToStdout(): (line: string) => void {
  // A closed pipe (`| head`) must not end the service.
  if (!process.stdout.listeners("error").includes(ignoreClosedReader)) {
    process.stdout.on("error", ignoreClosedReader);
  }
  let waiting = "";
  const flush = (): void => {
    const lines = waiting;
    waiting = "";
    if (lines !== "") process.stdout.write(lines);
  };
  process.on("exit", flush);
  return (line) => {
    if (waiting === "") setImmediate(flush);
    waiting += line;
    if (waiting.length > WAITING_CHARACTERS_MAX) flush();
  };
}

function ignoreClosedReader(): void {
  // Ignored: the output is gone.
}
