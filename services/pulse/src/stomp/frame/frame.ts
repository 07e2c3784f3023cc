// A frame, and its encoding.
import { escapeHeader } from "./escape.ts";
import type { StompVersion } from "./version.ts";

/** A frame of a client. Of repeated headers the first counts. */
export interface Frame {
  command: string;
  headers: ReadonlyMap<string, string>;
  body: Buffer;
}

/** A header of a frame. */
export type Header = readonly [name: string, value: string];

const NO_BODY = Buffer.alloc(0);
/** Frames whose headers are never escaped, for clients of 1.0. */
const UNESCAPED: ReadonlySet<string> = new Set(["CONNECT", "CONNECTED"]);

/** Encodes header lines; headers that the version cannot express are left out. */
export function encodeHeaders(headers: Iterable<Header>, version: StompVersion): string {
  let text = "";
  for (const [name, value] of headers) {
    const encodedName = escapeHeader(name, version, "name");
    const encodedValue = escapeHeader(value, version, "value");
    if (encodedName === undefined || encodedName === "" || encodedValue === undefined) continue;
    text += `${encodedName}:${encodedValue}\n`;
  }
  return text;
}

/**
 * Encodes a frame:
 *
 *     command LF *(name ":" value LF) LF body NUL
 *
 * `content-length` must be among the headers if the body holds a NUL.
 */
export function encodeFrame(
  command: string,
  headers: Iterable<Header>,
  version: StompVersion,
  body: Buffer = NO_BODY,
): Buffer {
  const form = UNESCAPED.has(command) ? "1.0" : version;
  return joinFrame(`${command}\n${encodeHeaders(headers, form)}\n`, body);
}

/** Joins an encoded head, with its empty line, and a body. */
export function joinFrame(head: string, body: Buffer): Buffer {
  const headBytes = Buffer.byteLength(head);
  const frame = Buffer.allocUnsafe(headBytes + body.length + 1);
  frame.write(head, 0, "utf8");
  body.copy(frame, headBytes);
  frame[frame.length - 1] = 0;
  return frame;
}
