// multipart/form-data from browsers: fields are collected within limits, then the file is streamed (RFC 7578).
import { S3Error } from "../../model/s3-error.ts";

/** Limit of all fields before the file. */
const FIELDS_BYTES_MAX = 65_536;
const FIELDS_MAX = 200;
const PART_HEAD_BYTES_MAX = 4_096;
const CRLF = Buffer.from("\r\n");
const HEAD_END = Buffer.from("\r\n\r\n");
/** Limit of the bytes after the last boundary. */
const FORM_END = Buffer.from("--\r\n");

/** The boundary of a Content-Type. Throws PreconditionFailed for another type, MalformedPOSTRequest without a boundary. */
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
  if (boundary === undefined) throw malformed("the boundary is missing");
  return boundary;
}

/** The file of a form as described in the headers of its part. */
export interface FormFile {
  /** Without the path that some clients send. */
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
 * An incremental parser:
 *
 * ```text
 *   PREAMBLE --boundary--> AFTER_BOUNDARY --CRLF--> PART_HEAD --> FIELD --boundary--> AFTER_BOUNDARY
 *                                                       \--file--> FILE --boundary--> DONE
 * ```
 *
 * Data after the file is ignored as in S3. `form` contains the fields by lower-case name once `onFile` is called.
 */
export class FormReader {
  readonly form = new Map<string, string>();
  file: FormFile | undefined;
  readonly #delimiter: Buffer;
  #state = PREAMBLE;
  // Starts with CRLF, so that a boundary at the very beginning is found like any other.
  #held: Buffer = CRLF;
  #fieldBytes = 0;
  #name = "";
  #fedBytes = 0;
  #fileStart = 0;

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  }

  /** True after the part of the file has ended. */
  get done(): boolean {
    return this.#state === DONE;
  }

  /**
   * The length of the file if it is the last part of a form of this length, which ends with CRLF as clients send it. The
   * part of the file must have begun.
   */
  predictFileBytes(formBytes: number): number {
    return formBytes - this.#fileStart - this.#delimiter.length - FORM_END.length;
  }

  /** Parses the next bytes and passes those of the file to `onData`. Throws S3Error. */
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

  // Number of bytes that a step consumed; `undefined` if it needs more.
  #step(input: Buffer, onData: (data: Buffer) => void): number | undefined {
    switch (this.#state) {
      case AFTER_BOUNDARY: {
        if (input.length < 2) return undefined;
        if (input.toString("latin1", 0, 2) === "--") throw malformed("it has no file");
        if (!input.subarray(0, 2).equals(CRLF))
          throw malformed("a boundary is not followed by CRLF");
        this.#state = PART_HEAD;
        // The CRLF stays: empty headers end with the same CRLF.
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
        if (this.form.has(this.#name)) throw malformed(`the field ${this.#name} is repeated`);
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

  // The possible beginning of a boundary waits for more bytes; the rest of a file is passed on.
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

// Browsers escape a quote as %22 and do not escape a backslash; other clients put a backslash before both.
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
