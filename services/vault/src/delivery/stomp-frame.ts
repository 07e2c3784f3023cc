// Frames of STOMP 1.2: those that a client sends, and those of a broker that it understands.
//
//   frame  = command LF *( header LF ) LF *OCTET NUL *( EOL )
//   header = name ":" value          (stomp.github.io/stomp-specification-1.2.html, "Augmented BNF")

const NUL = 0;
const LF = 10;
const CR = 13;
const ESCAPES: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\r": "\\r",
  "\n": "\\n",
  ":": "\\c",
};
const UNESCAPES: Readonly<Record<string, string>> = {
  "\\\\": "\\",
  "\\r": "\r",
  "\\n": "\n",
  "\\c": ":",
};

/** A frame from a broker; if a header repeats, its first value counts. */
export interface StompFrame {
  command: string;
  headers: ReadonlyMap<string, string>;
  body: Buffer;
}

/** The broker sent an invalid frame, or one above the size limit. */
class StompFrameError extends Error {
  override readonly name = "StompFrameError";
}

/** Encodes a frame. `CONNECT` has no escapes (section "Value Encoding"). */
export function encodeFrame(
  command: string,
  headers: Readonly<Record<string, string>>,
  body = "",
): Buffer {
  const escape = (text: string) =>
    command === "CONNECT" ? text : text.replace(/[\\\r\n:]/g, (char) => ESCAPES[char]!);
  const lines = Object.entries(headers).map(
    ([name, value]) => `${escape(name)}:${escape(value)}\n`,
  );
  return Buffer.from(`${command}\n${lines.join("")}\n${body}\0`);
}

/** Splits incoming bytes into frames, however they are chunked. */
export class StompFrameReader {
  readonly #bytesMax: number;
  #pending: Buffer = Buffer.alloc(0);

  /** `bytesMax` limits a whole frame. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The frames that these bytes complete. Throws a StompFrameError. */
  read(bytes: Buffer): StompFrame[] {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    const frames: StompFrame[] = [];
    let frame: StompFrame | undefined;
    while ((frame = this.#take()) !== undefined) frames.push(frame);
    if (this.#pending.length > this.#bytesMax)
      throw new StompFrameError(`a frame of more than ${this.#bytesMax} bytes`);
    return frames;
  }

  #take(): StompFrame | undefined {
    let start = 0;
    // Line ends between frames are heart-beats.
    while (this.#pending[start] === LF || this.#pending[start] === CR) start++;
    if (start > 0) this.#pending = this.#pending.subarray(start);
    const headEnd = findHeadEnd(this.#pending);
    if (headEnd === undefined) return undefined;
    const [command = "", ...lines] = this.#pending
      .toString("utf8", 0, headEnd.at)
      .split("\n")
      .map((line) => line.replace(/\r$/, ""));
    const headers = readHeaders(command, lines);
    const declared = headers.get("content-length");
    const end = this.#findBodyEnd(headEnd.next, declared);
    if (end === undefined) return undefined;
    const body = Buffer.from(this.#pending.subarray(headEnd.next, end));
    this.#pending = this.#pending.subarray(end + 1);
    return { command, headers, body };
  }

  #findBodyEnd(start: number, declared: string | undefined): number | undefined {
    if (declared === undefined) {
      const end = this.#pending.indexOf(NUL, start);
      return end < 0 ? undefined : end;
    }
    if (!/^\d{1,10}$/.test(declared))
      throw new StompFrameError("a content-length that is not a number");
    const end = start + Number(declared);
    if (end > this.#bytesMax)
      throw new StompFrameError(`a frame of more than ${this.#bytesMax} bytes`);
    if (end >= this.#pending.length) return undefined;
    if (this.#pending[end] !== NUL)
      throw new StompFrameError("a body longer than its content-length");
    return end;
  }
}

function findHeadEnd(bytes: Buffer): { at: number; next: number } | undefined {
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at + 1] === LF) return { at, next: at + 2 };
    if (bytes[at + 1] === CR && bytes[at + 2] === LF) return { at, next: at + 3 };
  }
  return undefined;
}

function readHeaders(command: string, lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  const unescape = (text: string) =>
    command === "CONNECTED"
      ? text
      : text.replace(/\\(?:.|$)/g, (pair) => {
          const char = UNESCAPES[pair];
          if (char === undefined) throw new StompFrameError("an undefined escape");
          return char;
        });
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon <= 0) throw new StompFrameError("a header without a colon");
    const name = unescape(line.slice(0, colon));
    if (!headers.has(name)) headers.set(name, unescape(line.slice(colon + 1)));
  }
  return headers;
}
