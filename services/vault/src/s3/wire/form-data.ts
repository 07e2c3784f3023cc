// multipart/form-data as browsers post it: fields gathered within bounds, then the file passed on as it comes (RFC 7578).
import { S3Error } from "../../model/s3-error.ts";

/** All fields before the file together. */
const FIELDS_BYTES_MAX = 65_536;
const FIELDS_MAX = 200;
const PART_HEAD_BYTES_MAX = 4_096;
const CRLF = Buffer.from("\r\n");
const HEAD_END = Buffer.from("\r\n\r\n");
/** Behind the last boundary. */
const FORM_END = Buffer.from("--\r\n");

/** The boundary of a Content-Type; PreconditionFailed for another type, MalformedPOSTRequest without a boundary. */
export function readBoundary(contentType: string): string {
  if (!/^multipart\/form-data\b/i.test(contentType)) {
    throw new S3Error("PreconditionFailed", {
      elements: [["Condition", "Bucket POST must be of the enclosure-type multipart/form-data"]],
    });
  }
  const match = /^multipart\/form-data\s*;.*?\bboundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(
    contentType,
  );
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw malformed("there is no boundary");
  return boundary;
}

/** The file of a form, as its part's head describes it. */
export interface FormFile {
  /** Without the path that some clients put before it. */
  fileName: string;
  contentType: string | undefined;
}

const PREAMBLE = 0;
const AFTER_BOUNDARY = 1;
const PART_HEAD = 2;
const FIELD = 3;
const FILE = 4;
const DONE = 5;

/**
 * An incremental reader:
 *
 * ```text
 *   PREAMBLE --boundary--> AFTER_BOUNDARY --CRLF--> PART_HEAD --> FIELD --boundary--> AFTER_BOUNDARY
 *                                                       \--file--> FILE --boundary--> DONE
 * ```
 *
 * What follows the file is ignored, as S3 does. `form` holds the fields by lower-case name once `onFile` is called.
 */
export class FormReader {
  readonly form = new Map<string, string>();
  file: FormFile | undefined;
  readonly #delimiter: Buffer;
  #state = PREAMBLE;
  // Begins with CRLF, so that a boundary at the very start is found like any other.
  #held: Buffer = CRLF;
  #fieldBytes = 0;
  #name = "";
  #fedBytes = 0;
  #fileStart = 0;

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  }

  /** Whether the file's part has ended. */
  get done(): boolean {
    return this.#state === DONE;
  }

  /**
   * How long the file is if it is the last part of a form of so many bytes, which ends in CRLF as clients send it. The
   * file's part has begun.
   */
  predictFileBytes(formBytes: number): number {
    return formBytes - this.#fileStart - this.#delimiter.length - FORM_END.length;
  }

  /** Takes the next bytes; the file's bytes go to `onData`. Throws S3Error. */
  execute(bytes: Buffer, onData: (data: Buffer) => void): void {
    if (this.#state === DONE) return;
    this.#fedBytes += bytes.length;
    let input = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    for (;;) {
      const next = this.#step(input, onData);
      if (next === undefined) break;
      const isInFile = this.#state === FILE;
      input = input.subarray(next);
      if (isInFile) this.#fileStart = this.#fedBytes - input.length;
      if (this.done) {
        this.#held = Buffer.alloc(0);
        return;
      }
    }
    this.#hold(input, onData);
  }

  // How many bytes of the input a step took; undefined where it needs more.
  #step(input: Buffer, onData: (data: Buffer) => void): number | undefined {
    switch (this.#state) {
      case AFTER_BOUNDARY: {
        if (input.length < 2) return undefined;
        if (input.toString("latin1", 0, 2) === "--") throw malformed("it has no file");
        if (!input.subarray(0, 2).equals(CRLF))
          throw malformed("a boundary is not followed by CRLF");
        this.#state = PART_HEAD;
        // The CRLF stays: a head may be empty, and its end is then the same CRLF.
        return 0;
      }
      case PART_HEAD: {
        const end = input.indexOf(HEAD_END);
        if (end < 0) return undefined;
        this.#startPart(input.toString("utf8", 2, end));
        return end + HEAD_END.length;
      }
      default: {
        const at = input.indexOf(this.#delimiter);
        if (at < 0) return undefined;
        this.#endPart(input.subarray(0, at), onData);
        return at + this.#delimiter.length;
      }
    }
  }

  #startPart(head: string): void {
    const lines = head.split("\r\n");
    const disposition = lines.find((line) => /^content-disposition\s*:/i.test(line)) ?? "";
    const name = readParameter(disposition, "name");
    if (name === undefined) throw malformed("a part has no name");
    this.#name = name.toLowerCase();
    if (this.#name !== "file") {
      if (this.form.size >= FIELDS_MAX) throw new S3Error("MaxPostPreDataLengthExceededError");
      this.#state = FIELD;
      return;
    }
    const type = lines.find((line) => /^content-type\s*:/i.test(line));
    this.file = {
      fileName: (readParameter(disposition, "filename") ?? "").replace(/^.*[/\\]/s, ""),
      contentType: type?.slice(type.indexOf(":") + 1).trim(),
    };
    this.#state = FILE;
  }

  #endPart(content: Buffer, onData: (data: Buffer) => void): void {
    switch (this.#state) {
      case FIELD:
        this.#count(content.length);
        if (this.form.has(this.#name)) throw malformed(`the field ${this.#name} came twice`);
        this.form.set(this.#name, content.toString("utf8"));
        this.#state = AFTER_BOUNDARY;
        break;
      case FILE:
        if (content.length > 0) onData(content);
        this.#state = DONE;
        break;
      default:
        this.#state = AFTER_BOUNDARY;
    }
  }

  #count(bytes: number): void {
    this.#fieldBytes += bytes;
    if (this.#fieldBytes > FIELDS_BYTES_MAX) throw new S3Error("MaxPostPreDataLengthExceededError");
  }

  // What may be the beginning of a boundary waits for more; of a file the rest goes on.
  #hold(input: Buffer, onData: (data: Buffer) => void): void {
    if (this.#state === FILE || this.#state === PREAMBLE) {
      const keep = Math.min(input.length, this.#delimiter.length - 1);
      const passed = input.subarray(0, input.length - keep);
      if (this.#state === FILE && passed.length > 0) onData(passed);
      this.#held = Buffer.from(input.subarray(input.length - keep));
      return;
    }
    const bytesMax = this.#state === PART_HEAD ? PART_HEAD_BYTES_MAX : FIELDS_BYTES_MAX;
    if (input.length > bytesMax) throw new S3Error("MaxPostPreDataLengthExceededError");
    this.#held = Buffer.from(input);
  }
}

// Browsers escape a quote as %22 and a backslash not at all; other clients put a backslash before both.
function readParameter(header: string, name: string): string | undefined {
  const match = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s]+))`, "i").exec(header);
  return match?.[1]?.replaceAll(/\\(["\\])/g, "$1").replaceAll("%22", '"') ?? match?.[2];
}

function malformed(detail: string): S3Error {
  return new S3Error(
    "MalformedPOSTRequest",
    `The body of your POST request is not well-formed multipart/form-data: ${detail}.`,
  );
}
