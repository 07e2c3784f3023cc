// Checks that zstd ends with a whole frame: the decompressor of Node ends silently within one (RFC 8878 section 3.1.1).
import { SelectError } from "../language/fault.ts";

const MAGIC = 0xfd2fb528;
/** Skippable frames have one of 16 numbers. */
const SKIPPABLE_MAGIC = 0x184d2a50;
const CHECKSUM_BYTES = 4;
/** Sizes of the fields of a frame header, by their flags. */
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
const SIZE_BYTES = [0, 2, 4, 8] as const;

/** The next field of the format: what it is, and the bytes that it has. */
type Expected =
  | {
      readonly field: "magic" | "skippable-size" | "descriptor" | "block-header";
      readonly bytes: number;
    }
  /** Bytes that are passed. */
  | { readonly field: "rest"; readonly bytes: number; readonly next: Expected };

const FRAME: Expected = { field: "magic", bytes: 4 };
const BLOCK: Expected = { field: "block-header", bytes: 3 };

/** Yields the pieces unchanged. Throws TruncatedInput at their end if a frame is not complete. */
export async function* checkZstdFrames(
  pieces: AsyncGenerator<Buffer, void, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  const frames = new FrameReader();
  for await (const piece of pieces) {
    frames.feed(piece);
    yield piece;
  }
  if (!frames.isComplete) throw new SelectError("TruncatedInput");
}

class FrameReader {
  #expected: Expected = FRAME;
  /** The field so far, as a little-endian number. */
  #value = 0;
  #read = 0;
  #hasChecksum = false;

  /** True between two frames. */
  get isComplete(): boolean {
    return this.#expected === FRAME && this.#read === 0;
  }

  feed(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      const expected = this.#expected;
      const left = expected.bytes - this.#read;
      const taken = Math.min(left, bytes.length - at);
      if (expected.field !== "rest") {
        for (let index = 0; index < taken; index += 1) {
          this.#value += bytes[at + index]! * 2 ** (8 * (this.#read + index));
        }
      }
      this.#read += taken;
      at += taken;
      if (this.#read === expected.bytes) this.#enter(this.#next(expected));
    }
  }

  // Fields without bytes are complete immediately.
  #enter(next: Expected): void {
    this.#expected = next.field === "rest" && next.bytes === 0 ? next.next : next;
    this.#value = 0;
    this.#read = 0;
  }

  #next(expected: Expected): Expected {
    const value = this.#value;
    switch (expected.field) {
      case "magic":
        if (value === MAGIC) return { field: "descriptor", bytes: 1 };
        if (value - (value % 16) === SKIPPABLE_MAGIC) return { field: "skippable-size", bytes: 4 };
        throw new SelectError("TruncatedInput");
      case "skippable-size":
        return { field: "rest", bytes: value, next: FRAME };
      case "descriptor": {
        const isSingle = (value & 0x20) !== 0;
        this.#hasChecksum = (value & 0x04) !== 0;
        const size = value >>> 6 === 0 && isSingle ? 1 : SIZE_BYTES[(value >>> 6) as 0 | 1 | 2 | 3];
        const dictionary = DICTIONARY_BYTES[(value & 3) as 0 | 1 | 2 | 3];
        return { field: "rest", bytes: (isSingle ? 0 : 1) + dictionary + size, next: BLOCK };
      }
      case "block-header": {
        const isLast = (value & 1) !== 0;
        // A block of type 1 is one byte that is repeated.
        const size = ((value >>> 1) & 3) === 1 ? 1 : value >>> 3;
        const end: Expected = this.#hasChecksum
          ? { field: "rest", bytes: CHECKSUM_BYTES, next: FRAME }
          : FRAME;
        return { field: "rest", bytes: size, next: isLast ? end : BLOCK };
      }
      case "rest":
        return expected.next;
      default:
        return expected satisfies never;
    }
  }
}
