// The combined log of all processes: JSON lines for programs, readable lines for people.
import { createLogger, type Logger, type LogLevel } from "@platform/kernel/log";

const HELD_LINES_MAX = 1000;

/** The log of a `platform up`. */
export interface LogStream {
  /** Adds a line of a service's output. */
  add(service: string, line: string): void;
  /** Logger of the supervisor. */
  logger: Logger;
  /** Calls a function with each line as JSON from now on; returns a function that ends it. */
  listen(listener: (json: string) => void): () => void;
  /** Writes the lines held back during startup, either all of them or only warnings and errors. */
  release(lines: "all" | "warnings"): void;
}

/** Options of {@link createLogStream}. */
export interface LogStreamOptions {
  json: boolean;
  /** Returns the readable line of an event, with its newline. */
  format: FormatEvent;
  level: LogLevel;
  write: (text: string) => void;
  /** Called with every line as JSON, also while lines are held back. */
  record: (line: string) => void;
}

type FormatEvent = (event: Readonly<Record<string, unknown>>) => string;

interface Line {
  severe: boolean;
  json: string;
  text: string;
}

/** Creates the log. Readable lines are held back until `release` is called. */
export function createLogStream(options: LogStreamOptions): LogStream {
  const { json, format, write } = options;
  const listeners = new Set<(json: string) => void>();
  let held: Line[] | undefined = json ? undefined : [];

  function put(line: Line): void {
    options.record(line.json);
    for (const listener of listeners) listener(line.json);
    if (held === undefined) write(line.text);
    else if (held.length < HELD_LINES_MAX) held.push(line);
  }

  return {
    logger: createLogger({
      service: "platform",
      level: options.level,
      format: "json",
      write: (line) => put(render(line.trimEnd(), "platform", json, format)),
    }),
    add: (service, line) => {
      if (line.trim() !== "") put(render(line, service, json, format));
    },
    listen(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    release(lines) {
      const waiting = held ?? [];
      held = undefined;
      for (const line of waiting) if (lines === "all" || line.severe) write(line.text);
    },
  };
}

function render(line: string, service: string, json: boolean, format: FormatEvent): Line {
  const event = parseEvent(line);
  if (event !== undefined) {
    const severe = event["level"] === "warn" || event["level"] === "error";
    const own = `${line}\n`;
    return { severe, json: own, text: json ? own : format(event) };
  }
  // Not a log event of the platform, such as a crash message of the JavaScript runtime.
  let text = "";
  const wrap = createLogger({ service, format: "json", write: (wrapped) => void (text = wrapped) });
  wrap.warn(line);
  const wrapped = parseEvent(text);
  return {
    severe: true,
    json: text,
    text: json || wrapped === undefined ? text : format(wrapped),
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
