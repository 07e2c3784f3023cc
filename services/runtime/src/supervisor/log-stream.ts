// The one log of all processes: their lines as they are for programs, readable ones for people.
import { createLogger, formatLogLine } from "@platform/kernel/log";
import type { Logger, LogLevel } from "@platform/kernel/log";

const HELD_LINES_MAX = 1000;

/** The log of a `platform up`. */
export interface LogStream {
  /** Takes a line that a service wrote. */
  take(service: string, line: string): void;
  /** The supervisor's own logger. */
  logger: Logger;
  /** Ends the quiet of the start: what was held back is shown (`all`), or only its warnings and errors. */
  release(what: "all" | "warnings"): void;
}

/** How the log is written. */
export interface LogStreamOptions {
  json: boolean;
  colours: boolean;
  level: LogLevel;
  write: (text: string) => void;
}

interface Line {
  severe: boolean;
  text: string;
}

/** Makes the log; for people it holds lines back until the first screen has been shown. */
export function createLogStream(options: LogStreamOptions): LogStream {
  const { json, colours, write } = options;
  let held: Line[] | undefined = json ? undefined : [];

  function put(line: Line): void {
    if (held === undefined) write(line.text);
    else if (held.length < HELD_LINES_MAX) held.push(line);
  }

  return {
    logger: createLogger({
      service: "platform",
      level: options.level,
      format: "json",
      write: (line) => put(render(line.trimEnd(), "platform", json, colours)),
    }),
    take: (service, line) => {
      if (line.trim() !== "") put(render(line, service, json, colours));
    },
    release(what) {
      const lines = held ?? [];
      held = undefined;
      for (const line of lines) if (what === "all" || line.severe) write(line.text);
    },
  };
}

function render(line: string, service: string, json: boolean, colours: boolean): Line {
  const event = parseEvent(line);
  if (event !== undefined) {
    const severe = event["level"] === "warn" || event["level"] === "error";
    return { severe, text: json ? `${line}\n` : formatLogLine(event, colours) };
  }
  // Not one of the platform's events: a crash of the runtime itself, or another program's output.
  let text = "";
  const wrap = createLogger({ service, format: "json", write: (wrapped) => void (text = wrapped) });
  wrap.warn(line);
  const wrapped = parseEvent(text);
  return {
    severe: true,
    text: json || wrapped === undefined ? text : formatLogLine(wrapped, colours),
  };
}

function parseEvent(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && "level" in value && "msg" in value
      ? { ...value }
      : undefined;
  } catch {
    return undefined;
  }
}
