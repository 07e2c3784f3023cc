// Log events: their levels, fields and encoded form.

/** Levels from least to most severe; `off` is only a threshold. */
export const LOG_LEVELS = ["debug", "info", "warn", "error", "off"] as const;

/** A level, including `off`. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Level of an event. */
export type EventLevel = Exclude<LogLevel, "off">;

/** Fields of an event besides its message. The first four have a fixed position in the line. */
export interface LogFields {
  /** 32 hex digits; "" without a trace. */
  trace_id?: string | undefined;
  /** 16 hex digits; "" without a span. */
  span_id?: string | undefined;
  /** In milliseconds; null if not measured. */
  duration_ms?: number | undefined;
  /** HTTP status, or the outcome of another protocol; null if not applicable. */
  status?: number | string | undefined;
  [field: string]: unknown;
}

/** An event for the formatters; values are redacted JSON. */
export interface EncodedEvent {
  level: EventLevel;
  msg: string;
  traceId: string;
  spanId: string;
  service: string;
  durationMs: string;
  status: string;
  timestamp: string;
  extra: [name: string, json: string][];
}
