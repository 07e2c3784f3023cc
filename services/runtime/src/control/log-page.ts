// Pages of the log in the data directory.
import type { LogLine } from "@platform/console/contract";
import { readLinePage, type LinePage, type LinePageOptions } from "@platform/kernel/files";
import { ROTATED_FILES } from "../supervisor/log-file.ts";
import { parseLogEvent, toLogLine, type LogEvent } from "./log-line.ts";

/** Options of {@link readLogPage}. */
export interface LogPageOptions extends Omit<LinePageOptions<LogLine>, "rotatedFiles" | "parse"> {
  accepts: (event: LogEvent) => boolean;
}

/** Reads the lines of the log before a position. */
export function readLogPage({ accepts, ...options }: LogPageOptions): Promise<LinePage<LogLine>> {
  return readLinePage({
    ...options,
    rotatedFiles: ROTATED_FILES,
    parse: (text) => {
      const event = parseLogEvent(text);
      return event !== undefined && accepts(event) ? toLogLine(event, text) : undefined;
    },
  });
}
