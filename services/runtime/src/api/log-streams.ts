// The stream of log lines.
import { LineStreams, type LineStreamsOptions } from "@platform/kernel/feeds";
import {
  createLogFilter,
  parseLogEvent,
  toLogLine,
  type LogEvent,
  type LogFilter,
} from "../control/log-line.ts";
import { requireRead } from "./access.ts";
import { LOG_STREAM_PATH } from "./log-routes.ts";

/** A line of the log, and its JSON text. */
interface LoggedEvent {
  event: LogEvent;
  json: string;
}

/** Options of {@link createLogStreams}. */
export interface LogStreamsOptions extends Pick<
  LineStreamsOptions<LoggedEvent>,
  "guard" | "logger"
> {
  /** Calls a function with each line as JSON; returns a function that ends it. */
  listen: (listener: (json: string) => void) => () => void;
  readFilter: (search: URLSearchParams) => LogFilter;
}

/** Creates the stream of the log. */
export function createLogStreams(options: LogStreamsOptions): LineStreams<LoggedEvent> {
  const { guard, logger, listen, readFilter } = options;
  return new LineStreams<LoggedEvent>({
    path: LOG_STREAM_PATH,
    guard,
    access: requireRead,
    readFilter: (search) => {
      const accepts = createLogFilter(readFilter(search));
      return ({ event }) => accepts(event);
    },
    describe: ({ event, json }) => toLogLine(event, json),
    listen: (streams) =>
      listen((json) => {
        const event = parseLogEvent(json);
        if (event !== undefined) streams.add({ event, json });
      }),
    logger,
  });
}
