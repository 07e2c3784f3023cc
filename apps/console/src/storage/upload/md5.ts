// MD5 of bytes (RFC 1321): storage reports it for each part, so that a resumed upload is compared with the chosen file.

const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const SINES = Int32Array.from({ length: 64 }, (_, i) =>
  Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32),
);
/** Order of the words in the four rounds. */
const ORDER = Uint8Array.from({ length: 64 }, (_, i) =>
  i < 16 ? i : i < 32 ? (5 * i + 1) % 16 : i < 48 ? (3 * i + 5) % 16 : (7 * i) % 16,
);
const BLOCK_BYTES = 64;
/** Bytes between two pauses, in which the page can paint. */
const STRIDE_BYTES = 2 * 1024 * 1024;

/** The digest in lower-case hexadecimal. */
export async function hashMd5(blob: Blob): Promise<string> {
  const state = new Int32Array([0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476]);
  const whole = Math.floor(blob.size / BLOCK_BYTES) * BLOCK_BYTES;
  for (let at = 0; at < whole; at += STRIDE_BYTES) {
    const bytes = await blob.slice(at, Math.min(whole, at + STRIDE_BYTES)).arrayBuffer();
    addBlocks(state, new DataView(bytes));
  }
  const rest = new Uint8Array(await blob.slice(whole).arrayBuffer());
  addBlocks(state, pad(rest, blob.size));
  return [...new Uint8Array(state.buffer)]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

// Section 3.1 and 3.2: one bit, zeros, and the length in bits.
function pad(rest: Uint8Array, size: number): DataView {
  const length = rest.length + 9 > BLOCK_BYTES ? 2 * BLOCK_BYTES : BLOCK_BYTES;
  const padded = new Uint8Array(length);
  padded.set(rest);
  padded[rest.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(length - 8, BigInt(size) * 8n, true);
  return view;
}

function addBlocks(state: Int32Array, view: DataView): void {
  const words = new Int32Array(16);
  for (let at = 0; at < view.byteLength; at += BLOCK_BYTES) {
    for (let i = 0; i < 16; i += 1) words[i] = view.getInt32(at + 4 * i, true);
    addBlock(state, words);
  }
}

function addBlock(state: Int32Array, words: Int32Array): void {
  let [a, b, c, d] = state as unknown as [number, number, number, number];
  for (let i = 0; i < 64; i += 1) {
    const round = i >> 4;
    const mixed =
      round === 0
        ? (b & c) | (~b & d)
        : round === 1
          ? (d & b) | (~d & c)
          : round === 2
            ? b ^ c ^ d
            : c ^ (b | ~d);
    const sum = (a + mixed + SINES[i]! + words[ORDER[i]!]!) | 0;
    const shift = SHIFTS[4 * round + (i & 3)]!;
    a = d;
    d = c;
    c = b;
    b = (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0;
  }
  state[0]! += a;
  state[1]! += b;
  state[2]! += c;
  state[3]! += d;
}
