// Decompresses blocks of LZ4, as Parquet has them: raw, or in the frames of Hadoop.

/** Decompresses a raw block of a known size. Throws an Error for a damaged one. */
export function decodeLz4(input: Uint8Array, size: number): Uint8Array {
  const output = new Uint8Array(size);
  const written = decodeBlock(input, output, 0);
  if (written !== size) throw new Error("an LZ4 block has the wrong size");
  return output;
}

/** Decompresses the codec LZ4 of Parquet: frames with two big-endian sizes, or a raw block. */
export function decodeHadoopLz4(input: Uint8Array, size: number): Uint8Array {
  const view = new DataView(input.buffer, input.byteOffset, input.byteLength);
  const output = new Uint8Array(size);
  let at = 0;
  let written = 0;
  while (at + 8 <= input.length) {
    const blockSize = view.getUint32(at);
    const compressedSize = view.getUint32(at + 4);
    if (at + 8 + compressedSize > input.length || written + blockSize > size) break;
    const block = input.subarray(at + 8, at + 8 + compressedSize);
    written = decodeBlock(block, output, written);
    at += 8 + compressedSize;
  }
  return at === input.length && written === size ? output : decodeLz4(input, size);
}

// Returns the end of the output.
function decodeBlock(input: Uint8Array, output: Uint8Array, start: number): number {
  let at = 0;
  let written = start;
  const readLength = (nibble: number): number => {
    let length = nibble;
    if (nibble < 15) return length;
    for (;;) {
      const byte = input[at];
      if (byte === undefined) throw new Error("an LZ4 block ends early");
      at += 1;
      length += byte;
      if (byte < 255) return length;
    }
  };
  while (at < input.length) {
    const token = input[at]!;
    at += 1;
    const literals = readLength(token >>> 4);
    if (at + literals > input.length || written + literals > output.length) {
      throw new Error("an LZ4 block is damaged");
    }
    output.set(input.subarray(at, at + literals), written);
    at += literals;
    written += literals;
    // The last sequence has literals only.
    if (at === input.length) break;
    const distance = input[at]! | ((input[at + 1] ?? 0) << 8);
    at += 2;
    const length = readLength(token & 15) + 4;
    const from = written - distance;
    if (distance === 0 || from < start || written + length > output.length) {
      throw new Error("an LZ4 block is damaged");
    }
    for (let index = 0; index < length; index += 1) output[written + index] = output[from + index]!;
    written += length;
  }
  return written;
}
