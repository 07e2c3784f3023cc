// Structured logs.
export { createLogger, type Logger, type LoggerOptions } from "./logger.ts";
export { LOG_LEVELS, type LogLevel } from "./event.ts";
export { REDACTED, isSecretName, redactText } from "./redact.ts";
export { formatLogLine } from "./pretty.ts";
