// Reads and writes the linear memory of an instance.
import { GuestError } from "../errors.ts";

/** The memory of one instance. The view is renewed when the memory has grown, which detaches it. */
export class GuestMemory {
  readonly #memory: WebAssembly.Memory;
  #bytes: Buffer;

  constructor(memory: WebAssembly.Memory) {
    this.#memory = memory;
    this.#bytes = Buffer.from(memory.buffer);
  }

  get byteLength(): number {
    return this.#memory.buffer.byteLength;
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
    const end = start + (length >>> 0);
    const bytes = this.#current;
    if (end > bytes.length) throw outside();
    return bytes.toString("latin1", start, end);
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
    bytes.write(text, start, "latin1");
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
      const range = this.view(at, total);
      let to = 0;
      for (const text of texts) {
        to += range.write(text, to, "latin1");
        range[to++] = 0;
      }
    }
    return (BigInt(texts.length) << 32n) | BigInt(total);
  }

  get #current(): Buffer {
    if (this.#bytes.length === 0) this.#bytes = Buffer.from(this.#memory.buffer);
    return this.#bytes;
  }
}

function outside(): GuestError {
  return new GuestError("trapped", "The guest passed a range outside of its memory.");
}
