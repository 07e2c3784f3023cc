// Structured logs.
export * from "./logger.ts";
export { REDACTED, isSecretName, redactText } from "./redact.ts";
export { formatLogLine } from "./pretty.ts";
