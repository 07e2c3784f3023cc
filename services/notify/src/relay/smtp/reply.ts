// Replies of SMTP servers (RFC 5321 section 4.2), parsed incrementally.

/** A complete reply. */
export interface SmtpReply {
  code: number;
  /** Enhanced status code of the last line (RFC 2034), if there is one. */
  enhanced: string | undefined;
  /** The lines without code, separator and enhanced status code. */
  lines: string[];
}

/** A violation of the protocol by the server. */
export class SmtpProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "SmtpProtocolError";
  }
}

const LINE_BYTES_MAX = 4_096;
const LINES_MAX = 200;
const TEXT_CHARACTERS_MAX = 500;
const LINE = /^([2-5]\d\d)(?:([ -])(.*))?$/;
const ENHANCED = /^([245]\.\d{1,3}\.\d{1,3})(?: +|$)/;

/** Parses replies from chunks of any size. Throws SmtpProtocolError. */
export class ReplyReader {
  #rest = "";
  #lines: string[] = [];
  #code = "";

  /** True if the server has sent bytes that belong to no complete reply. */
  get hasRest(): boolean {
    return this.#rest !== "" || this.#lines.length > 0;
  }

  /** Returns the replies that are complete. */
  push(chunk: Buffer): SmtpReply[] {
    const replies: SmtpReply[] = [];
    this.#rest += chunk.toString("latin1");
    for (let end = this.#rest.indexOf("\n"); end !== -1; end = this.#rest.indexOf("\n")) {
      const line = this.#rest.slice(0, end).replace(/\r$/, "");
      this.#rest = this.#rest.slice(end + 1);
      const reply = this.#addLine(line);
      if (reply !== undefined) replies.push(reply);
    }
    if (this.#rest.length > LINE_BYTES_MAX)
      throw new SmtpProtocolError("the reply line is too long");
    return replies;
  }

  #addLine(line: string): SmtpReply | undefined {
    const found = line.length > LINE_BYTES_MAX ? null : LINE.exec(line);
    if (found === null) throw new SmtpProtocolError("the reply is malformed");
    const [, code = "", separator, text = ""] = found;
    if (this.#lines.length > 0 && code !== this.#code) {
      throw new SmtpProtocolError("the lines of a reply have different codes");
    }
    if (this.#lines.length >= LINES_MAX)
      throw new SmtpProtocolError("the reply has too many lines");
    this.#code = code;
    this.#lines.push(text);
    if (separator === "-") return undefined;
    const lines = this.#lines;
    this.#lines = [];
    const enhanced = ENHANCED.exec(text)?.[1];
    return { code: Number(code), enhanced, lines: lines.map((one) => one.replace(ENHANCED, "")) };
  }
}

/** Returns the text of a reply on one line, without control characters, of at most 500 characters. */
export function toReplyText({ lines }: SmtpReply): string {
  const text = Buffer.from(lines.join(" "), "latin1").toString();
  return text
    .replaceAll(/[^\P{C}]/gu, " ")
    .trim()
    .slice(0, TEXT_CHARACTERS_MAX);
}
