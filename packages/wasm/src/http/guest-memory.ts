// Reads and writes the linear memory of an instance.
import { GuestError } from "../errors.ts";

/** Texts of up to so many bytes are kept, that many of them: a power of two. */
const KEPT_BYTES_MAX = 40;
const KEPT_MAX = 256;
/** Texts of up to so many bytes are written faster one by one than by a call of the buffer. */
const SHORT_BYTES_MAX = 48;
const TWO_TO_32 = 4_294_967_296;

/** The memory of one instance. The view is renewed when the memory has grown, which detaches it. */
export class GuestMemory {
  readonly #memory: WebAssembly.Memory;
  #bytes: Buffer;
  /** Texts that were read, each in the place of its length and its first and last byte: guests use the same ones again. */
  readonly #kept: string[] = Array.from({ length: KEPT_MAX }, () => "");

  constructor(memory: WebAssembly.Memory) {
    this.#memory = memory;
    this.#bytes = Buffer.from(memory.buffer);
  }

  get byteLength(): number {
    return this.#current.length;
  }

  /** A view of a range; valid only until the guest runs again. Traps outside of the memory. */
  view(at: number, length: number): Buffer {
    const start = at >>> 0;
    const end = start + (length >>> 0);
    const bytes = this.#current;
    if (end > bytes.length) throw outside();
    return bytes.subarray(start, end);
  }

  /** A range as latin1. Traps outside of the memory. */
  readText(at: number, length: number): string {
    const start = at >>> 0;
    const size = length >>> 0;
    const end = start + size;
    const bytes = this.#current;
    if (end > bytes.length) throw outside();
    if (size === 0 || size > KEPT_BYTES_MAX) return bytes.toString("latin1", start, end);
    const place = (size * 37 + bytes[start]! * 11 + bytes[end - 1]!) & (KEPT_MAX - 1);
    const known = this.#kept[place]!;
    if (known.length === size) {
      let same = 0;
      while (same < size && known.charCodeAt(same) === bytes[start + same]) same++;
      if (same === size) return known;
    }
    const text = bytes.toString("latin1", start, end);
    this.#kept[place] = text;
    return text;
  }

  /**
   * Writes latin1 text if it has at most `limit` bytes; returns its length in either case (`buf_limit`). Traps outside of the
   * memory.
   */
  writeText(text: string, at: number, limit: number): number {
    const { length } = text;
    if (length > limit >>> 0 || length === 0) return length;
    const start = at >>> 0;
    const bytes = this.#current;
    if (start + length > bytes.length) throw outside();
    writeLatin1(bytes, text, start);
    return length;
  }

  /** Like {@link writeText} for bytes. */
  writeBytes(content: Uint8Array, at: number, limit: number): number {
    const { length } = content;
    if (length > limit >>> 0 || length === 0) return length;
    this.view(at, length).set(content);
    return length;
  }

  /** Writes NUL-terminated texts if they fit into `limit` bytes; returns `count_len` in either case. */
  writeTexts(texts: readonly string[], at: number, limit: number): bigint {
    let total = texts.length;
    for (const text of texts) total += text.length;
    if (total <= limit >>> 0 && total > 0) {
      let to = at >>> 0;
      const bytes = this.#current;
      if (to + total > bytes.length) throw outside();
      for (const text of texts) {
        writeLatin1(bytes, text, to);
        to += text.length;
        bytes[to++] = 0;
      }
    }
    // Exact: there are far fewer than 2^21 texts.
    return BigInt(texts.length * TWO_TO_32 + total);
  }

  get #current(): Buffer {
    if (this.#bytes.length === 0) this.#bytes = Buffer.from(this.#memory.buffer);
    return this.#bytes;
  }
}

function writeLatin1(bytes: Buffer, text: string, at: number): void {
  const { length } = text;
  if (length > SHORT_BYTES_MAX) bytes.write(text, at, "latin1");
  else for (let index = 0; index < length; index++) bytes[at + index] = text.charCodeAt(index);
}

function outside(): GuestError {
  return new GuestError("trapped", "The guest passed a range outside of its memory.");
}
