// A log whose errors have the lines of the author's file, during development.
import type { Logger } from "@platform/kernel/log";
import { reportError } from "../error/error-report.ts";

type Fields = Parameters<Logger["error"]>[1];

/** Wraps a log: events with an error have a field `frame`, which terminals show below their line. */
export function createReportingLog(log: Logger): Logger {
  const add = (fields: Fields): Fields =>
    fields?.["error"] instanceof Error
      ? { ...fields, frame: reportError(fields["error"]) }
      : fields;
  return {
    level: log.level,
    isOn: (level) => log.isOn(level),
    debug: (msg, fields) => log.debug(msg, fields),
    info: (msg, fields) => log.info(msg, fields),
    warn: (msg, fields) => log.warn(msg, log.isOn("warn") ? add(fields) : fields),
    error: (msg, fields) => log.error(msg, log.isOn("error") ? add(fields) : fields),
    child: (fields) => createReportingLog(log.child(fields)),
  };
}
