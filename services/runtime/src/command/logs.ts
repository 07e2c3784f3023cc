// `platform logs`: the log of all services or one, from the data directory.
import { existsSync } from "node:fs";
import { open, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LogLevel } from "@platform/kernel/log";
import { createLogFilter, formatReadable, parseLogEvent } from "../control/log-line.ts";
import { explainFileError, formatFolder } from "../data-folder/data-folder.ts";
import { locatePlatform } from "../data-folder/platform-list.ts";
import { readRunning } from "../data-folder/running-file.ts";
import { getProjectData } from "../projects/records.ts";
import { findEntry } from "../services/index.ts";
import { ROTATED_FILES } from "../supervisor/log-file.ts";

/** The log in the data directory. */
export const LOG_FILE = join("logs", "platform.jsonl");
/** The gateway's access log in the data directory. */
const ACCESS_FILE = join("gate", "access.jsonl");
const POLL_MS = 300;
const READ_BYTES_MAX = 4 * 1024 * 1024;

/** Options of {@link runLogs}. */
export interface LogsOptions {
  data: string;
  /** Short name or product name; undefined for all services. */
  service: string | undefined;
  lines: number;
  level: LogLevel;
  follow: boolean;
  access: boolean;
  json: boolean;
}

type Format = (line: string) => string | undefined;

/** Prints the last lines, and new ones with `follow` until the command is interrupted. */
export async function runLogs(options: LogsOptions): Promise<void> {
  const dataDir = locatePlatform(options.data);
  const path = join(dataDir, options.access ? ACCESS_FILE : LOG_FILE);
  if (!existsSync(path)) {
    throw new Error(
      options.access
        ? `there is no access log ${formatFolder(path)}: it begins with the first request of a route with access_log`
        : `there is no log in ${formatFolder(dataDir)}: start the platform, or name its folder with --data`,
    );
  }
  const format = createFormat(options);
  process.stdout.on("error", () => process.exit(0));
  try {
    const { size } = await stat(path);
    const lines = await readLast(path, options.lines, format);
    for (const line of lines) process.stdout.write(line);
    if (lines.length === 0 && options.lines > 0)
      process.stderr.write(`${describeNothing(options)}\n`);
    if (options.follow) await follow(path, size, format);
  } catch (error) {
    throw explainFileError(error, path);
  }
}

function describeNothing({
  data,
  service,
  level,
  access,
  follow: isFollowing,
}: LogsOptions): string {
  const source = service === undefined ? "" : ` of ${findSource(service, data).label}`;
  const kept = access ? "the access log is empty" : `no line${source} at level ${level} or above`;
  return isFollowing ? `${kept} yet` : kept;
}

function createFormat({ data, service, level, access, json }: LogsOptions): Format {
  const colours = process.stdout.isTTY && process.env["NO_COLOR"] === undefined;
  const entry = service === undefined ? undefined : findSource(service, data);
  const accepts = createLogFilter({ service: entry, level, text: undefined });
  return (line) => {
    const event = parseLogEvent(line);
    if (event === undefined) return undefined;
    if (access) return json ? `${line}\n` : formatAccess(event);
    if (!accepts(event)) return undefined;
    return json ? `${line}\n` : formatReadable(event, colours);
  };
}

// Also projects, whose log can be read when the platform is stopped.
function findSource(word: string, data: string): { name: string; label: string } {
  const dataDir = locatePlatform(data);
  const running = readRunning(dataDir)?.services.find(({ name }) => name === word);
  if (running !== undefined) return running;
  const isProject = existsSync(getProjectData(dataDir, word)) && /^[a-z][a-z0-9-]*$/.test(word);
  return isProject ? { name: word, label: word } : findEntry(word, "logs");
}

function formatAccess(event: Readonly<Record<string, unknown>>): string {
  const { timestamp, method, path, status, latency_ms, client_ip, upstream, code, trace_id } =
    event;
  const took = `${String(latency_ms)} ms`;
  const words = [timestamp, status, method, path, took, client_ip, upstream, code];
  return `${[...words, trace_id].filter((word) => word !== "").join(" ")}\n`;
}

// Reads rotated files too until there are enough lines.
async function readLast(path: string, count: number, format: Format): Promise<string[]> {
  let found: string[] = [];
  for (let age = 0; age <= ROTATED_FILES && found.length < count; age += 1) {
    const file = age === 0 ? path : `${path}.${age}`;
    if (!existsSync(file)) break;
    const text = await readFile(file, "utf8");
    const lines = text.split("\n").flatMap((line) => format(line) ?? []);
    found = [...lines.slice(-(count - found.length)), ...found];
  }
  return found;
}

async function follow(path: string, from: number, format: Format): Promise<never> {
  let position = from;
  let rest = "";
  for (;;) {
    await sleep(POLL_MS);
    const size = await stat(path).then(
      (file) => file.size,
      () => 0,
    );
    // The file was rotated.
    if (size < position) position = 0;
    if (size === position) continue;
    const file = await open(path);
    const length = Math.min(size - position, READ_BYTES_MAX);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
    await file.close();
    position += bytesRead;
    const lines = (rest + buffer.toString("utf8", 0, bytesRead)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) process.stdout.write(format(line) ?? "");
  }
}
