// Log events: their levels, fields and encoded form.

/** The names of the levels, from the least to the most severe; `off` is a threshold only. */
export const LOG_LEVELS = ["debug", "info", "warn", "error", "off"] as const;

/** A severity, or `off`. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A severity that an event can have. */
export type EventLevel = Exclude<LogLevel, "off">;

/** What an event carries beside its message. The four named ones have a fixed place in the line. */
export interface LogFields {
  /** 32 hex digits; "" where there is no trace. */
  trace_id?: string | undefined;
  /** 16 hex digits; "" where there is no span. */
  span_id?: string | undefined;
  /** Milliseconds; null where nothing was measured. */
  duration_ms?: number | undefined;
  /** An HTTP status, or another protocol's outcome; null where there is none. */
  status?: number | string | undefined;
  [field: string]: unknown;
}

/** One event as the formatters see it; values are JSON text already, credentials taken out. */
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
