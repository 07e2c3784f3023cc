// The parts of a message by its declared boundaries (RFC 2046 section 5.1), as ranges of its bytes.

/** A part. Ranges are offsets of bytes. */
export interface MimePart {
  /** The header, without the empty line. */
  headerStart: number;
  headerEnd: number;
  bodyStart: number;
  /** End of the body; the line end before a delimiter belongs to the delimiter. */
  bodyEnd: number;
  /** Media type in lower case, `text/plain` by default. */
  type: string;
  /** Number of multiparts and messages around it. */
  depth: number;
  /** True for multiparts with a boundary and for messages, whose parts follow in the list. */
  isContainer: boolean;
}

/** Bounds of {@link listParts}. */
export interface MimeBounds {
  partsMax: number;
  containersMax: number;
}

const HEADER_BYTES_MAX = 65_536;
const CR = 0x0d;
const LF = 0x0a;
const DASH = 0x2d;

/** Lists the parts in their order, beginning with the whole message; undefined beyond the bounds. */
export function listParts(content: Buffer, bounds: MimeBounds): MimePart[] | undefined {
  const parts: MimePart[] = [];
  const waiting = [{ start: 0, end: content.length, depth: 0 }];
  let containers = 0;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const part = readPart(content, next);
    parts.push(part);
    if (part.isContainer) containers += 1;
    if (parts.length > bounds.partsMax || containers > bounds.containersMax) return undefined;
    const inner = listInner(content, part, bounds.partsMax - parts.length - waiting.length + 1);
    if (inner === undefined) return undefined;
    for (const { start, end } of inner.toReversed()) {
      waiting.push({ start, end, depth: part.depth + 1 });
    }
  }
  return parts;
}

/** Returns the value of a field of a part, unfolded; "" without one. Of several fields the first counts. */
export function readPartField(content: Buffer, part: MimePart, name: string): string {
  const text = content.toString("latin1", part.headerStart, part.headerEnd);
  const found = new RegExp(`^${name}[ \\t]*:(.*(?:\\r?\\n[ \\t].*)*)`, "im").exec(text)?.[1] ?? "";
  return found.replaceAll(/\r?\n/g, "").trim();
}

/** Returns a parameter of a field (RFC 2045 section 5.1, RFC 2231); undefined without it. */
export function readParameter(field: string, name: string): string | undefined {
  const plain = new RegExp(
    `[;\\s]${name}\\*?[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s"]+))`,
    "i",
  );
  const found = plain.exec(field);
  if (found !== null) return found[1]?.replaceAll(/\\(.)/g, "$1") ?? found[2];
  const sections = new RegExp(
    `[;\\s]${name}\\*(\\d+)\\*?[ \\t]*=[ \\t]*(?:"([^"]*)"|([^;\\s"]+))`,
    "gi",
  );
  const values = [...field.matchAll(sections)].toSorted((a, b) => Number(a[1]) - Number(b[1]));
  return values.length === 0 ? undefined : values.map((one) => one[2] ?? one[3]).join("");
}

function readPart(
  content: Buffer,
  { start, end, depth }: { start: number; end: number; depth: number },
): MimePart {
  const { headerEnd, bodyStart } = findHeaderEnd(content, start, end);
  const range = { headerStart: start, headerEnd, bodyStart, bodyEnd: end, depth };
  const type = readPartField(content, { ...range, type: "", isContainer: false }, "content-type");
  const name = /^[^;\s]+/.exec(type)?.[0].toLowerCase() ?? "text/plain";
  const isMultipart =
    name.startsWith("multipart/") && readParameter(type, "boundary") !== undefined;
  return { ...range, type: name, isContainer: isMultipart || isMessage(name) };
}

function isMessage(type: string): boolean {
  return type === "message/rfc822" || type === "message/global";
}

function listInner(content: Buffer, part: MimePart, max: number) {
  if (!part.isContainer) return [];
  if (isMessage(part.type)) return [{ start: part.bodyStart, end: part.bodyEnd }];
  const boundary = readParameter(readPartField(content, part, "content-type"), "boundary")!;
  return splitAtBoundary(content, part, `--${boundary}`, max);
}

// The header ends at the first empty line; without one there is no body.
function findHeaderEnd(content: Buffer, start: number, end: number) {
  if (content[start] === LF) return { headerEnd: start, bodyStart: start + 1 };
  if (content[start] === CR && content[start + 1] === LF) {
    return { headerEnd: start, bodyStart: start + 2 };
  }
  const limit = start === 0 ? end : Math.min(end, start + HEADER_BYTES_MAX);
  for (
    let at = content.indexOf(LF, start);
    at !== -1 && at < limit;
    at = content.indexOf(LF, at + 1)
  ) {
    if (content[at + 1] === LF) return { headerEnd: at + 1, bodyStart: at + 2 };
    if (content[at + 1] === CR && content[at + 2] === LF) {
      return { headerEnd: at + 1, bodyStart: at + 3 };
    }
  }
  return { headerEnd: end, bodyStart: end };
}

function splitAtBoundary(
  content: Buffer,
  { bodyStart, bodyEnd }: MimePart,
  line: string,
  max: number,
) {
  const delimiter = Buffer.from(line, "latin1");
  const ranges: { start: number; end: number }[] = [];
  let start: number | undefined;
  for (
    let at = content.indexOf(delimiter, bodyStart);
    at !== -1 && at < bodyEnd;
    at = content.indexOf(delimiter, at + delimiter.length)
  ) {
    if (at !== bodyStart && content[at - 1] !== LF) continue;
    let rest = at + delimiter.length;
    const isLast = content[rest] === DASH && content[rest + 1] === DASH;
    if (isLast) rest += 2;
    while (content[rest] === 0x20 || content[rest] === 0x09) rest += 1;
    if (rest < bodyEnd && content[rest] !== CR && content[rest] !== LF) continue;
    if (start !== undefined) {
      const before = content[at - 2] === CR ? at - 2 : at - 1;
      ranges.push({ start, end: Math.max(start, before) });
      if (ranges.length > max) return undefined;
    }
    if (isLast) return ranges;
    start = Math.min(
      bodyEnd,
      content.indexOf(LF, rest) === -1 ? bodyEnd : content.indexOf(LF, rest) + 1,
    );
  }
  if (start !== undefined) ranges.push({ start, end: bodyEnd });
  return ranges;
}
