// Part of built services: stacks show the author's files and lines. The map is read with the first stack.
import { SourceMap, type SourceMapPayload } from "node:module";
import { readFileSync, realpathSync } from "node:fs";
import { getAsset, isSea } from "node:sea";

/** Name of the map among the executable's assets. */
const ASSET = "source-map";
const PLACE = /\(?(file:[^()]*|[^()\s]*):(\d+):(\d+)\)?$/;

/** The script of a container, which an author's program may change in its arguments. */
const [, SCRIPT = ""] = process.argv;

let map: SourceMap | undefined;

/** V8's frames have a text, which the types of Node leave out. */
type Frame = Pick<NodeJS.CallSite, "getFileName"> & { toString(): string };

Error.prepareStackTrace = (error, frames: Frame[]) =>
  `${formatError(error)}${frames.map((frame) => `\n    at ${mapFrame(frame)}`).join("")}`;

function mapFrame(frame: Frame): string {
  const text = frame.toString();
  const file = frame.getFileName();
  if (file === null || file === undefined || file.startsWith("node:")) return text;
  return text.replace(PLACE, (place, _, row: string, column: string) => {
    map ??= new SourceMap(JSON.parse(readMap()) as SourceMapPayload);
    const line = Number(row) - 1;
    const found = map.findEntry(line, Number(column) - 1);
    if (!("originalLine" in found) || found.generatedLine !== line) return place;
    const { originalSource, originalLine, originalColumn } = found;
    const mapped = `${originalSource}:${originalLine + 1}:${originalColumn + 1}`;
    return place.startsWith("(") ? `(${mapped})` : mapped;
  });
}

/** The map of the executable, or the file beside the script; without it, places are those of the script. */
function readMap(): string {
  if (isSea()) return getAsset(ASSET, "utf8");
  try {
    return readFileSync(`${realpathSync(SCRIPT)}.map`, "utf8");
  } catch {
    return '{ "version": 3, "sources": [], "names": [], "mappings": "" }';
  }
}

/** The first line of a stack, as V8 writes it. */
function formatError(error: unknown): string {
  try {
    return Error.prototype.toString.call(error);
  } catch {
    return "Error";
  }
}
