// Decompresses bzip2: blocks of at most 900 000 bytes, each one Huffman-coded after a Burrows–Wheeler transform.
import { SelectError } from "../language/fault.ts";

/** No block is longer: 900 001 symbols of at most 20 bits, and its tables. */
const BLOCK_BYTES_MAX = 2_300_000;
const BLOCK_UNIT = 100_000;
const GROUP_SYMBOLS = 50;
const CODE_BITS_MAX = 20;
const BLOCK_MAGIC = [0x314159, 0x265359] as const;
const END_MAGIC = [0x177245, 0x385090] as const;

/** A Huffman code: for each length, the largest code and the offset of its symbols. */
interface HuffmanTable {
  readonly minBits: number;
  readonly limits: Int32Array;
  readonly bases: Int32Array;
  readonly symbols: Int32Array;
}

export class Bzip2Decoder {
  #bytes: Buffer = Buffer.alloc(0);
  /** Position in bits. */
  #bit = 0;
  #level = 0;
  #hasStream = false;
  #isEnded = false;

  /** Adds compressed bytes. */
  feed(bytes: Buffer): void {
    const passed = this.#bit >>> 3;
    this.#bytes = Buffer.concat([this.#bytes.subarray(passed), bytes]);
    this.#bit &= 7;
  }

  /** No more bytes follow. */
  end(): void {
    this.#isEnded = true;
  }

  /** The next block; `undefined` if more bytes are needed, or at the end. Throws TruncatedInput. */
  next(): Buffer | undefined {
    for (;;) {
      const left = this.#bytes.length - (this.#bit >>> 3);
      if (!this.#isEnded && left < BLOCK_BYTES_MAX) return undefined;
      if (!this.#hasStream) {
        if (left === 0) return undefined;
        this.#readHeader();
      }
      const [high, low] = [this.#read(24), this.#read(24)];
      if (high === BLOCK_MAGIC[0] && low === BLOCK_MAGIC[1]) return this.#readBlock();
      if (high !== END_MAGIC[0] || low !== END_MAGIC[1]) throw damaged();
      this.#read(32);
      // Streams may follow each other; each one begins at a byte.
      this.#bit = (this.#bit + 7) & ~7;
      this.#hasStream = false;
    }
  }

  #readHeader(): void {
    if (this.#read(24) !== 0x425a68) throw damaged();
    this.#level = this.#read(8) - 0x30;
    if (this.#level < 1 || this.#level > 9) throw damaged();
    this.#hasStream = true;
  }

  #readBlock(): Buffer {
    const expected = this.#read(32);
    // Randomized blocks have not been written since 1997.
    if (this.#read(1) !== 0) throw damaged();
    const origin = this.#read(24);
    const alphabet = this.#readAlphabet();
    const symbolsCount = alphabet.length + 2;
    const tablesCount = this.#read(3);
    const selectorsCount = this.#read(15);
    if (tablesCount < 2 || tablesCount > 6 || selectorsCount < 1) throw damaged();
    const selectors = this.#readSelectors(tablesCount, selectorsCount);
    const tables = Array.from({ length: tablesCount }, () => this.#readTable(symbolsCount));
    const transformed = this.#readSymbols(alphabet, tables, selectors, symbolsCount);
    if (origin >= transformed.length) throw damaged();
    const block = expandRuns(invertTransform(transformed, origin));
    if (checksum(block) !== expected) throw damaged();
    return block;
  }

  #readAlphabet(): number[] {
    const used = this.#read(16);
    const alphabet: number[] = [];
    for (let high = 0; high < 16; high += 1) {
      if ((used & (0x8000 >>> high)) === 0) continue;
      const bits = this.#read(16);
      for (let low = 0; low < 16; low += 1) {
        if ((bits & (0x8000 >>> low)) !== 0) alphabet.push(high * 16 + low);
      }
    }
    if (alphabet.length === 0) throw damaged();
    return alphabet;
  }

  #readSelectors(tablesCount: number, count: number): number[] {
    const order = Array.from({ length: tablesCount }, (_, index) => index);
    const selectors: number[] = [];
    for (let index = 0; index < count; index += 1) {
      let position = 0;
      while (this.#read(1) === 1) {
        position += 1;
        if (position >= tablesCount) throw damaged();
      }
      const [selected] = order.splice(position, 1);
      order.unshift(selected!);
      selectors.push(selected!);
    }
    return selectors;
  }

  #readTable(symbolsCount: number): HuffmanTable {
    const lengths = new Uint8Array(symbolsCount);
    let length = this.#read(5);
    for (let symbol = 0; symbol < symbolsCount; symbol += 1) {
      while (this.#read(1) === 1) length += this.#read(1) === 0 ? 1 : -1;
      if (length < 1 || length > CODE_BITS_MAX) throw damaged();
      lengths[symbol] = length;
    }
    return buildTable(lengths);
  }

  // Undoes the Huffman code, the runs of zeros and the move to the front.
  #readSymbols(
    alphabet: number[],
    tables: readonly HuffmanTable[],
    selectors: readonly number[],
    symbolsCount: number,
  ): Uint8Array {
    const output = new Uint8Array(this.#level * BLOCK_UNIT);
    const front = Uint8Array.from(alphabet);
    const endSymbol = symbolsCount - 1;
    let size = 0;
    let run = 0;
    let runBit = 1;
    for (let count = 0; ; count += 1) {
      const selector = selectors[Math.floor(count / GROUP_SYMBOLS)];
      if (selector === undefined) throw damaged();
      const symbol = this.#readSymbol(tables[selector]!);
      if (symbol <= 1) {
        run += runBit << symbol;
        runBit <<= 1;
        if (run > output.length) throw damaged();
        continue;
      }
      if (run > 0) {
        if (size + run > output.length) throw damaged();
        output.fill(front[0]!, size, size + run);
        size += run;
        run = 0;
        runBit = 1;
      }
      if (symbol === endSymbol) return output.subarray(0, size);
      const position = symbol - 1;
      const byte = front[position]!;
      front.copyWithin(1, 0, position);
      front[0] = byte;
      if (size === output.length) throw damaged();
      output[size] = byte;
      size += 1;
    }
  }

  #readSymbol({ minBits, limits, bases, symbols }: HuffmanTable): number {
    let bits = minBits;
    let code = this.#read(minBits);
    while (bits <= CODE_BITS_MAX && code > limits[bits]!) {
      code = (code << 1) | this.#read(1);
      bits += 1;
    }
    const symbol = bits > CODE_BITS_MAX ? undefined : symbols[code - bases[bits]!];
    if (symbol === undefined) throw damaged();
    return symbol;
  }

  // At most 32 bits.
  #read(count: number): number {
    let value = 0;
    let left = count;
    const bytes = this.#bytes;
    if (this.#bit + count > bytes.length * 8) throw damaged();
    while (left > 0) {
      const offset = this.#bit & 7;
      const taken = Math.min(8 - offset, left);
      const byte = bytes[this.#bit >>> 3]!;
      value = value * 2 ** taken + ((byte >>> (8 - offset - taken)) & ((1 << taken) - 1));
      this.#bit += taken;
      left -= taken;
    }
    return value;
  }
}

function buildTable(lengths: Uint8Array): HuffmanTable {
  const counts = new Int32Array(CODE_BITS_MAX + 2);
  let minBits = CODE_BITS_MAX;
  for (const length of lengths) {
    counts[length] = counts[length]! + 1;
    minBits = Math.min(minBits, length);
  }
  const symbols: number[] = [];
  const limits = new Int32Array(CODE_BITS_MAX + 2).fill(-1);
  const bases = new Int32Array(CODE_BITS_MAX + 2);
  let code = 0;
  for (let bits = minBits; bits <= CODE_BITS_MAX; bits += 1) {
    bases[bits] = code - symbols.length;
    for (const [symbol, length] of lengths.entries()) if (length === bits) symbols.push(symbol);
    code += counts[bits]!;
    limits[bits] = code - 1;
    code <<= 1;
  }
  return { minBits, limits, bases, symbols: Int32Array.from(symbols) };
}

function invertTransform(last: Uint8Array, origin: number): Uint8Array {
  const size = last.length;
  const starts = new Int32Array(256);
  for (const byte of last) starts[byte] = starts[byte]! + 1;
  for (let byte = 0, sum = 0; byte < 256; byte += 1) {
    const count = starts[byte]!;
    starts[byte] = sum;
    sum += count;
  }
  const next = new Int32Array(size);
  for (let index = 0; index < size; index += 1) {
    const byte = last[index]!;
    next[starts[byte]!] = index;
    starts[byte] = starts[byte]! + 1;
  }
  const output = new Uint8Array(size);
  let position = next[origin]!;
  for (let index = 0; index < size; index += 1) {
    output[index] = last[position]!;
    position = next[position]!;
  }
  return output;
}

// Four equal bytes are followed by the number of further ones.
function expandRuns(bytes: Uint8Array): Buffer {
  let size = 0;
  visitRuns(bytes, (_, count) => {
    size += count;
  });
  const output = Buffer.alloc(size);
  let at = 0;
  visitRuns(bytes, (byte, count) => {
    if (count === 1) output[at] = byte;
    else output.fill(byte, at, at + count);
    at += count;
  });
  return output;
}

function visitRuns(bytes: Uint8Array, visit: (byte: number, count: number) => void): void {
  let previous = -1;
  let repeated = 0;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index]!;
    if (repeated === 4) {
      if (byte > 0) visit(previous, byte);
      previous = -1;
      repeated = 0;
      continue;
    }
    repeated = byte === previous ? repeated + 1 : 1;
    previous = byte;
    visit(byte, 1);
  }
}

const CRC_TABLE = new Int32Array(256);
for (let byte = 0; byte < 256; byte += 1) {
  let value = byte << 24;
  for (let bit = 0; bit < 8; bit += 1) value = (value << 1) ^ (value < 0 ? 0x04c11db7 : 0);
  CRC_TABLE[byte] = value;
}

function checksum(bytes: Buffer): number {
  let value = -1;
  for (const byte of bytes) value = (value << 8) ^ CRC_TABLE[((value >>> 24) ^ byte) & 0xff]!;
  return ~value >>> 0;
}

function damaged(): SelectError {
  return new SelectError("TruncatedInput");
}
