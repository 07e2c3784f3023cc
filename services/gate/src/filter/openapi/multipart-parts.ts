// Bodies of `multipart/form-data` (RFC 7578), read strictly: other forms are read differently by upstreams.

/** One part of a form. */
export interface FormPart {
  name: string;
  /** Media type in lower case, with its parameters as sent; undefined if the part names none. */
  type: string | undefined;
  content: Buffer;
}

const PARTS_MAX = 1_000;
const HEAD_BYTES_MAX = 8_192;
const BOUNDARY = /;\s*boundary=(?:"([^"\\]{1,70})"|([^\s;"]{1,70}))/gi;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)$/;
const DISPOSITION = /^form-data((?:;[ \t]*[\w*-]+=(?:"[^"\\]*"|[^\s;"\\]+))*)$/i;
const PARAMETER = /;[ \t]*([\w*-]+)=(?:"([^"]*)"|([^\s;"]+))/g;

/** The boundary of a media type; undefined if there is not exactly one. */
export function readBoundary(type: string): string | undefined {
  const [found, second] = type.matchAll(BOUNDARY);
  return second === undefined ? (found?.[1] ?? found?.[2]) : undefined;
}

/** The parts of a body; undefined if it is malformed or has too many of them. */
export function readParts(body: Buffer, boundary: string): FormPart[] | undefined {
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  const parts: FormPart[] = [];
  // The first delimiter has no line before it.
  if (!body.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2))) return undefined;
  let at = delimiter.length - 2;
  for (;;) {
    const mark = body.toString("latin1", at, at + 2);
    if (mark === "--")
      return /^(?:\r\n)?$/.test(body.toString("latin1", at + 2)) ? parts : undefined;
    if (mark !== "\r\n" || parts.length === PARTS_MAX) return undefined;
    const end = body.indexOf(delimiter, at);
    const part = end === -1 ? undefined : readPart(body.subarray(at + 2, end));
    if (part === undefined) return undefined;
    parts.push(part);
    at = end + delimiter.length;
  }
}

function readPart(bytes: Buffer): FormPart | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd === -1 || headEnd > HEAD_BYTES_MAX) return undefined;
  const fields = new Map<string, string>();
  for (const line of bytes.toString("utf8", 0, headEnd).split("\r\n")) {
    const [, name = "", value = ""] = FIELD.exec(line) ?? [];
    const key = name.toLowerCase();
    if (key === "" || fields.has(key)) return undefined;
    fields.set(key, value.trim());
  }
  const encoding = fields.get("content-transfer-encoding") ?? "binary";
  if (!/^(?:binary|8bit|7bit)$/i.test(encoding)) return undefined;
  const name = readName(fields.get("content-disposition") ?? "");
  if (name === undefined) return undefined;
  return {
    name,
    type: fields.get("content-type")?.toLowerCase(),
    content: bytes.subarray(headEnd + 4),
  };
}

function readName(disposition: string): string | undefined {
  const [, parameters] = DISPOSITION.exec(disposition) ?? [];
  if (parameters === undefined) return undefined;
  const values = new Map<string, string>();
  for (const [, key = "", quoted, token] of parameters.matchAll(PARAMETER)) {
    const lower = key.toLowerCase();
    if (values.has(lower) || lower === "name*") return undefined;
    values.set(lower, quoted ?? token ?? "");
  }
  return values.get("name");
}
