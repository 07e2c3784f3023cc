// The standard output of `platform up`, and its log.
import type { LogLevel } from "@platform/kernel/log";
import { formatReadable } from "../control/log-line.ts";
import { LogFile } from "../supervisor/log-file.ts";
import { createLogStream, type LogStream } from "../supervisor/log-stream.ts";

/** Output of `platform up`. */
export interface Output {
  log: LogStream;
  hasColours: boolean;
  write(text: string): void;
  /** Resolves when the reader of the standard output has gone. */
  readonly closed: Promise<void>;
  /** Resolves when the log file is complete. */
  settle(): Promise<void>;
}

/** Creates the output; `path` is the log file. */
export function createOutput(
  { json, logLevel }: { json: boolean; logLevel: LogLevel },
  path: string,
): Output {
  const hasColours = process.stdout.isTTY && process.env["NO_COLOR"] === undefined;
  let isClosed = false;
  const closed = Promise.withResolvers<void>();
  // `up | tee log`, ctrl-c: without a listener the error would be logged, which fails again.
  const close = (): void => {
    isClosed = true;
    closed.resolve();
  };
  process.stdout.on("error", close);
  process.stderr.on("error", close);
  const write = (text: string): void => {
    if (!isClosed) process.stdout.write(text);
  };
  const file = new LogFile({
    path,
    onError: (error) => log.logger.warn("cannot write the log file", { error }),
  });
  const log: LogStream = createLogStream({
    json,
    format: (event) => formatReadable(event, hasColours),
    level: logLevel,
    write,
    record: (line) => file.append(line),
  });
  return {
    log,
    hasColours,
    write,
    closed: closed.promise,
    settle: () => file.settle(),
  };
}
