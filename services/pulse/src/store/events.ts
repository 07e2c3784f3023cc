// Logs the events of the log.
import type { Logger } from "@platform/kernel/log";
import { LogError, type LogEvent, type RecoveryReport } from "@platform/log";
import { formatCommand, type LogPlace } from "./folder.ts";

/** Logs an event of the log in this place. Everything that may mean lost data is an error. */
export function logEvent(log: Logger, event: LogEvent, place: LogPlace): void {
  switch (event.kind) {
    case "checkpoint":
    case "compacted":
      log.debug(event.kind, { ...event });
      return;
    case "checkpoint-failed":
    case "group-failed":
      log.error("writing the log failed", { ...event });
      return;
    case "disk-full":
      log.error(
        "the disk is full: publishing is refused; delete topics, lower their retention or free space",
        { ...event },
      );
      return;
    case "disk-has-room":
      log.info("the disk has room again: publishing is accepted", { ...event });
      return;
    case "damaged":
      log.error(
        "stored messages cannot be read; the rest of the partition can, and a repair of the stopped broker drops the damaged range",
        { ...event.damage, repair: formatCommand(place, "repair") },
      );
      return;
    case "quarantine-failed":
      log.error("damaged data could not be quarantined", { ...event });
      return;
    case "quarantined":
      log.error("stored data is damaged; the damaged part was quarantined", { ...event.report });
      return;
    case "healed":
      log.error("a file is damaged; it was restored from its copy", { ...event.report });
      return;
    case "offloaded":
      log.debug("a segment was uploaded", { ...event });
      return;
    case "offload-failed":
      log.warn("object storage failed", { ...event });
      return;
    case "offload-damaged":
      log.error("a damaged segment is not uploaded and stays on the disk", {
        ...event,
        repair: formatCommand(place, "repair"),
      });
      return;
    case "removals-full":
      log.error("too many objects wait for their removal: retention of remote segments pauses", {
        ...event,
      });
      return;
    case "unknown-objects":
      log.warn("object storage has objects of this log that nothing refers to; they stay", {
        ...event,
      });
      return;
    case "set-aside":
      log.warn("a file that belongs to nothing was quarantined", { file: event.file });
  }
}

/** Logs the recovery report. */
export function logRecovery(log: Logger, recovery: RecoveryReport): void {
  const { quarantined, healed, setAside, ...figures } = recovery;
  log.info("log opened", {
    ...figures,
    quarantined: quarantined.length,
    healed: healed.length,
    setAside: setAside.length,
  });
  if (recovery.cutBytes === 0) return;
  log.warn("the end of the journal was cut: a write that was never acknowledged as stored", {
    cutBytes: recovery.cutBytes,
  });
}

/** Adds the helpful command to an error of opening the log. */
export function explainOpenError(error: unknown, place: LogPlace): unknown {
  if (!(error instanceof LogError) || error.code !== "needs-repair") return error;
  const text = `${error.message}; run "${formatCommand(place, "check")}" for the whole list, then restore the files or run "${formatCommand(place, "repair")}"`;
  return new LogError(error.code, text, { cause: error });
}
