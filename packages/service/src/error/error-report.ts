// Errors as their author reads them: message, the lines of the author's file, and the frames that are the author's.
import { readFileSync, statSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { redactText } from "@platform/kernel/log";

/** An error during development. */
export interface ErrorReport {
  /** Name and message, and those of its causes. */
  readonly message: string;
  /** `path:line:column` in the author's file, relative to the working directory; "" if no frame is the author's. */
  readonly at: string;
  /** Lines around the position, with a mark below the column. */
  readonly lines: readonly string[];
  /** The author's frames. */
  readonly stack: readonly string[];
}

interface Frame {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly text: string;
}

const FRAME =
  /^\s+at (?:(?<name>.+?) )?\(?(?<place>file:\/\/[^()]+?|[^():\s][^()]*?):(?<line>\d+):(?<column>\d+)\)?$/;
/** Files that are not the author's: installed packages, Node, this package and the platform in a clone. */
const FOREIGN = /\/node_modules\/|^node:|^<|\/(?:packages|services)\/[\w-]+\/src\//;
const OWN = `${dirname(dirname(import.meta.filename))}${sep}`;
const FRAMES_MAX = 5;
const CAUSES_MAX = 3;
const FILE_BYTES_MAX = 1_048_576;
const LINE_CHARACTERS_MAX = 160;
const MESSAGE_CHARACTERS_MAX = 2_000;
const LINES_BEFORE = 2;
const LINES_AFTER = 1;

/** Describes an error; never throws. Reads the author's file, so it is for development only. */
export function reportError(error: unknown): ErrorReport {
  try {
    return describeError(error);
  } catch {
    // Any value can be assigned to the properties of an error, also a getter that throws.
    return { message: "an error that cannot be read", at: "", lines: [], stack: [] };
  }
}

function describeError(error: unknown): ErrorReport {
  const frames = error instanceof Error ? listFrames(error) : [];
  const [first] = frames;
  const stack = frames.slice(0, FRAMES_MAX).map(({ text }) => text);
  const message = describeCauses(error);
  if (first === undefined) return { message, at: "", lines: [], stack };
  return { message, at: formatPlace(first), lines: readLines(first), stack };
}

/** Formats a report as lines for a terminal. */
export function formatReport({ message, at, lines, stack }: ErrorReport): string {
  const frames = stack.map((frame) => `    at ${frame}`);
  const place = at === "" ? [] : [at];
  return [message, ...place, ...lines, ...frames, ""].join("\n");
}

function describeCauses(error: unknown): string {
  const texts: string[] = [];
  for (let one = error; one !== undefined && texts.length < CAUSES_MAX;) {
    if (!(one instanceof Error)) {
      texts.push(typeof one === "string" ? one : `a value of type ${typeof one}`);
      break;
    }
    texts.push(`${one.name}: ${one.message}`);
    one = one.cause;
  }
  return redactText(texts.join("; caused by ")).slice(0, MESSAGE_CHARACTERS_MAX);
}

function listFrames(error: Error): Frame[] {
  const frames = (error.stack ?? "").split("\n").flatMap((text) => readFrame(text) ?? []);
  if (frames.length > 0 || !(error.cause instanceof Error)) return frames;
  const { stack } = error.cause;
  return (stack ?? "").split("\n").flatMap((text) => readFrame(text) ?? []);
}

function readFrame(text: string): Frame | undefined {
  const { name = "", place = "", line = "", column = "" } = FRAME.exec(text)?.groups ?? {};
  if (place === "" || FOREIGN.test(place)) return undefined;
  try {
    const path = place.startsWith("file:")
      ? fileURLToPath(place.replace(/\?.*$/, ""))
      : resolve(place);
    if (path.startsWith(OWN)) return undefined;
    const frame = { path, line: Number(line), column: Number(column) };
    const where = formatPlace(frame);
    return { ...frame, text: redactText(name === "" ? where : `${name} (${where})`) };
  } catch {
    // Not the address of a file.
    return undefined;
  }
}

function formatPlace({ path, line, column }: Omit<Frame, "text">): string {
  const short = relative(process.cwd(), path);
  return `${short.startsWith("..") ? path : short}:${line}:${column}`;
}

function readLines({ path, line, column }: Frame): string[] {
  let source: string[];
  try {
    if (statSync(path).size > FILE_BYTES_MAX) return [];
    source = readFileSync(path, "utf8").split(/\r\n?|\n/);
  } catch {
    // Removed since it was loaded.
    return [];
  }
  const first = Math.max(1, line - LINES_BEFORE);
  const last = Math.min(source.length, line + LINES_AFTER);
  const width = String(last).length;
  const lines: string[] = [];
  for (let number = first; number <= last; number++) {
    const text = redactText(source[number - 1] ?? "").trimEnd();
    const mark = number === line ? ">" : " ";
    const shown = text.slice(0, LINE_CHARACTERS_MAX);
    lines.push(`${mark} ${String(number).padStart(width)} | ${shown}`.trimEnd());
    if (number !== line || column > LINE_CHARACTERS_MAX) continue;
    const indent = text.slice(0, column - 1).replaceAll(/[^\t]/g, " ");
    lines.push(`  ${" ".repeat(width)} | ${indent}^`);
  }
  return lines;
}
