// The command `replay`: options, report, exit code.
import { ConfigError } from "@platform/kernel/config";
import type { ReplayCommandOptions } from "../config/replay-options.ts";
import type { RecordedFields } from "../recording/recorded-exchange.ts";
import { formatGuestReport, replayThroughGuest } from "./guest-replay.ts";
import { replayShadow } from "./replay.ts";
import { formatReport } from "./report.ts";

/** Exit codes as of diff: all responses are the same, some differ, or there is nothing to compare. */
const EXIT = { same: 0, different: 1, trouble: 2 } as const;

/** Runs `platform-gate replay` and prints its report. Returns the exit code. */
export async function runReplay(
  options: ReplayCommandOptions,
  print: (text: string) => void,
  printError: (text: string) => void,
): Promise<number> {
  const { log, target, middleware, shadow } = options;
  if (middleware !== undefined && shadow)
    throw refuse("--middleware", "is not allowed with --shadow");
  if (middleware === undefined && !shadow) {
    throw refuse("--shadow", "is required, or --middleware: it sends the requests to --target");
  }
  if (log === undefined) throw refuse("--log", "is required");
  if (middleware !== undefined) return runGuestReplay(log, middleware, options, print, printError);
  if (target === undefined) throw refuse("--target", "is required");
  try {
    const result = await replayShadow({
      log,
      target: new URL(target),
      concurrency: options.concurrency,
      timeoutMs: options.timeout_ms,
      host: options.host_header,
      headers: joinLines(options.headers).map((line) => readHeader(line)),
      methods: options.methods.map((method) => method.toUpperCase()),
      limit: options.limit,
      ignoredHeaders: options.ignore_headers,
      ignoredMembers: options.ignore_members,
      redactedNames: options.redact,
      shownMax: options.show,
    });
    print(
      options.format === "json" ? `${JSON.stringify(result, null, 2)}\n` : formatReport(result),
    );
    if (result.different + result.failed > 0) return EXIT.different;
    if (result.replayed > 0) return EXIT.same;
    printError("the recording contains no request that can be replayed");
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    printError(error instanceof Error ? error.message : String(error));
  }
  return EXIT.trouble;
}

async function runGuestReplay(
  log: string,
  middleware: string,
  options: ReplayCommandOptions,
  print: (text: string) => void,
  printError: (text: string) => void,
): Promise<number> {
  try {
    const { config, limit, show: shownMax } = options;
    const result = await replayThroughGuest({ log, middleware, config, limit, shownMax });
    const isText = options.format === "text";
    print(isText ? formatGuestReport(result) : `${JSON.stringify(result, null, 2)}\n`);
    const isDifferent = result.changed + result.answered > 0;
    if (result.failed > 0 || (options.expect_same && isDifferent)) return EXIT.different;
    if (result.replayed > 0) return EXIT.same;
    printError("the recording contains no exchange");
  } catch (error) {
    printError(error instanceof Error ? error.message : String(error));
  }
  return EXIT.trouble;
}

// Commas separate fields, and occur in values: a piece that does not begin like a field belongs to the one before it.
function joinLines(parts: readonly string[]): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.length - 1;
    if (last === -1 || /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:/.test(part)) lines.push(part);
    else lines[last] = `${lines[last]}, ${part}`;
  }
  return lines;
}

function readHeader(line: string): RecordedFields[number] {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e]*)$/.exec(line) ?? [];
  if (name === undefined || value === undefined) {
    throw refuse("--headers", 'expected fields such as "Authorization: Bearer …"');
  }
  return [name, value];
}

function refuse(source: string, message: string): ConfigError {
  return new ConfigError([{ source, path: "", message }]);
}
