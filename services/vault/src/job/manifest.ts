// Reads manifests: lists of objects as CSV (bucket,key[,version], keys in the encoding of URLs) or JSON lines.
import type { JobManifest } from "../model/job.ts";

const READ_BYTES = 1024 * 1024;
/** A key of 1 024 bytes, encoded, with its bucket and its version. */
const LINE_BYTES_MAX = 16 * 1024;

/** An entry of a manifest, or a line that is none. */
export type ManifestEntry =
  | { readonly bucket: string; readonly key: string; readonly version?: string | undefined }
  | { readonly fault: string; readonly line: string };

/** A piece of a manifest. */
export interface ManifestPage {
  readonly entries: ManifestEntry[];
  readonly offset: number;
  readonly isSkipping: boolean;
  readonly isLast: boolean;
}

/** Reads bytes of the manifest from an offset; empty at its end. */
export type ReadManifest = (offset: number, bytes: number) => Promise<Buffer>;

/** Reads entries from `offset`, at most `entriesMax`. */
export async function readManifestPage(
  read: ReadManifest,
  format: JobManifest["format"],
  from: { offset: number; isSkipping: boolean },
  entriesMax: number,
): Promise<ManifestPage> {
  const bytes = await read(from.offset, READ_BYTES);
  const isEnd = bytes.length < READ_BYTES;
  const entries: ManifestEntry[] = [];
  let { isSkipping } = from;
  let at = 0;
  while (at < bytes.length && entries.length < entriesMax) {
    const newline = bytes.indexOf(0x0a, at);
    const end = newline < 0 ? bytes.length : newline;
    const length = end - at;
    const isWhole = newline >= 0 || isEnd;
    if (!isWhole && length <= LINE_BYTES_MAX && !isSkipping) break;
    if (!isSkipping && length > LINE_BYTES_MAX) {
      const line = bytes.toString("utf8", at, at + 64);
      entries.push({ fault: `The line has more than ${LINE_BYTES_MAX} bytes.`, line });
    } else if (!isSkipping && length > 0) {
      const entry = parseLine(bytes.toString("utf8", at, end).trim(), format);
      if (entry !== undefined) entries.push(entry);
    }
    isSkipping = !isWhole;
    at = newline < 0 ? end : newline + 1;
  }
  return { entries, offset: from.offset + at, isSkipping, isLast: isEnd && at === bytes.length };
}

function parseLine(line: string, format: JobManifest["format"]): ManifestEntry | undefined {
  if (line === "") return undefined;
  const shown = line.slice(0, 64);
  try {
    const [bucket, key, version] = format === "csv" ? splitCsv(line) : readJson(line);
    if (bucket === undefined || bucket === "" || key === undefined || key === "")
      return { fault: "The line has no bucket and key.", line: shown };
    return { bucket, key, ...(version === undefined || version === "" ? {} : { version }) };
  } catch {
    return { fault: `The line is no ${format === "csv" ? "CSV" : "JSON"}.`, line: shown };
  }
}

function readJson(line: string): (string | undefined)[] {
  const value = JSON.parse(line) as Record<string, unknown> | null;
  const text = (...names: string[]): string | undefined => {
    const found = names.map((name) => value?.[name]).find((one) => typeof one === "string");
    return typeof found === "string" ? found : undefined;
  };
  return [text("bucket", "Bucket"), text("key", "Key"), text("version_id", "version", "VersionId")];
}

function splitCsv(line: string): (string | undefined)[] {
  const values: string[] = [];
  for (let at = 0; at <= line.length;) {
    if (line[at] !== '"') {
      const comma = line.indexOf(",", at);
      const end = comma < 0 ? line.length : comma;
      values.push(line.slice(at, end).trim());
      at = end + 1;
      continue;
    }
    let value = "";
    let from = at + 1;
    for (;;) {
      const quote = line.indexOf('"', from);
      if (quote < 0) throw new Error("a quote is not closed");
      value += line.slice(from, quote);
      if (line[quote + 1] !== '"') {
        at = quote + 2;
        break;
      }
      value += '"';
      from = quote + 2;
    }
    values.push(value);
  }
  const [bucket, key, version] = values;
  return [
    bucket,
    key === undefined ? undefined : decodeURIComponent(key.replaceAll("+", " ")),
    version,
  ];
}
