// Parses replies of Redis as they arrive (RESP2: https://redis.io/docs/latest/develop/reference/protocol-spec/).

/** A reply: a status or text, an integer, an array, or null. */
export type RedisReply = string | number | null | RedisReply[];

/** Maximum bytes of one reply: all replies that the gateway asks for are short. */
const REPLY_BYTES_MAX = 1_048_576;
const ELEMENTS_MAX = 65_536;

/** Collects bytes until a reply is complete. */
export class ReplyParser {
  #text = "";
  #at = 0;

  /** Returns the complete replies; error replies are Errors. Throws an Error if the bytes are no replies. */
  read(bytes: Buffer): (RedisReply | Error)[] {
    this.#text += bytes.toString("latin1");
    const replies: (RedisReply | Error)[] = [];
    for (;;) {
      const start = this.#at;
      const reply = this.#readReply();
      if (reply === undefined) {
        this.#at = start;
        break;
      }
      replies.push(reply);
    }
    this.#text = this.#text.slice(this.#at);
    this.#at = 0;
    if (this.#text.length > REPLY_BYTES_MAX) throw new Error("a reply of Redis is too long");
    return replies;
  }

  #readReply(): RedisReply | Error | undefined {
    const end = this.#text.indexOf("\r\n", this.#at);
    if (end === -1) return undefined;
    const kind = this.#text[this.#at];
    const line = this.#text.slice(this.#at + 1, end);
    this.#at = end + 2;
    switch (kind) {
      case "+":
        return line;
      case "-":
        return new Error(line);
      case ":":
        return readInteger(line);
      case "$":
        return this.#readText(readInteger(line));
      case "*":
        return this.#readArray(readInteger(line));
      default:
        throw new Error("Redis sent an unknown kind of reply");
    }
  }

  #readText(length: number): string | null | undefined {
    if (length === -1) return null;
    if (this.#text.length < this.#at + length + 2) return undefined;
    const value = this.#text.slice(this.#at, this.#at + length);
    this.#at += length + 2;
    return Buffer.from(value, "latin1").toString("utf8");
  }

  #readArray(length: number): RedisReply[] | null | undefined {
    if (length === -1) return null;
    if (length > ELEMENTS_MAX) throw new Error("a reply of Redis has too many elements");
    const values: RedisReply[] = [];
    while (values.length < length) {
      const value = this.#readReply();
      if (value === undefined) return undefined;
      values.push(value instanceof Error ? value.message : value);
    }
    return values;
  }
}

function readInteger(text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) throw new Error("Redis sent an invalid number");
  return Number(text);
}
