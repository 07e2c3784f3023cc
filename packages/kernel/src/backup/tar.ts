// Tar archives of regular files: the POSIX format (ustar) with GNU's form of sizes from 8 GiB. All common tools read it.
import { BackupError } from "./error.ts";

/*
 * block 512 = name 100 │ mode 8 │ uid 8 │ gid 8 │ size 12 │ mtime 12 │ checksum 8 │ type 1 │ link 100
 *             │ "ustar" 0 "00" │ user 32 │ group 32 │ device 16 │ prefix 155 │ zeros 12
 *
 * Numbers are octal text. The contents follow, padded with zeros to a block; two blocks of zeros are the end.
 * https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html, "ustar Interchange Format"
 */
const BLOCK_BYTES = 512;
const NAME_BYTES_MAX = 100;
const PREFIX_BYTES_MAX = 155;
const OCTAL_SIZE_MAX = 8 ** 11;
const FILE_MODE = 0o600;

/** The end of an archive. */
export const TAR_END: Buffer = Buffer.alloc(2 * BLOCK_BYTES);

/** A file in an archive. The contents must be read to their end before the next file. */
export interface TarEntry {
  path: string;
  bytes: number;
  contents: AsyncGenerator<Buffer>;
}

/**
 * Encodes the block before the contents of a file; by default, only its owner can read it. Throws BackupError if the path is
 * too long.
 */
export function encodeTarHead(
  path: string,
  bytes: number,
  nowMs: number,
  mode: number = FILE_MODE,
): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  const { prefix, name } = splitPath(path);
  block.write(name, 0);
  writeOctal(block, mode, 100, 8);
  writeOctal(block, 0, 108, 8);
  writeOctal(block, 0, 116, 8);
  if (bytes < OCTAL_SIZE_MAX) writeOctal(block, bytes, 124, 12);
  else {
    block.writeUInt8(0x80, 124);
    block.writeBigUInt64BE(BigInt(bytes), 128);
  }
  writeOctal(block, Math.floor(nowMs / 1000), 136, 12);
  block.write("0", 156);
  block.write("ustar\u000000", 257);
  block.write(prefix, 345);
  block.write(`${sumBlock(block).toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** The zeros after contents of `bytes`. */
export function padTar(bytes: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES);
}

/**
 * Reads the regular files of an archive. Throws BackupError if the stream ends too early, or if it contains anything
 * else.
 */
export async function* readTar(stream: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const reader = new ByteReader(stream);
  try {
    for (;;) {
      const block = await reader.take(BLOCK_BYTES);
      if (block.every((byte) => byte === 0)) return;
      const { path, bytes } = decodeHead(block);
      const contents = reader.pieces(bytes);
      yield { path, bytes, contents };
      // A caller that left the contents must not read them as the next head.
      for await (const _ of contents);
      await reader.take(padTar(bytes).length);
    }
  } finally {
    await reader.close();
  }
}

/** Reads exact numbers of bytes from a stream. */
class ByteReader {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#iterator = stream[Symbol.asyncIterator]();
  }

  /** Returns `bytes` bytes, at most a few blocks. */
  async take(bytes: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for await (const piece of this.pieces(bytes)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  async *pieces(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0;) {
      if (this.#held.length === 0) await this.#fill();
      const piece = this.#held.subarray(0, left);
      this.#held = this.#held.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  async close(): Promise<void> {
    await this.#iterator.return?.();
  }

  async #fill(): Promise<void> {
    const next = await this.#iterator.next();
    if (next.done === true) throw new BackupError("the stream ended before it was complete");
    const { buffer, byteOffset, length } = next.value;
    this.#held = Buffer.from(buffer, byteOffset, length);
  }
}

function decodeHead(block: Buffer): { path: string; bytes: number } {
  if (readOctal(block, 148, 8) !== sumBlock(block)) {
    throw new BackupError("the stream is not a tar archive, or it is damaged");
  }
  const name = readText(block, 0, NAME_BYTES_MAX);
  const prefix = readText(block, 345, PREFIX_BYTES_MAX);
  const path = prefix === "" ? name : `${prefix}/${name}`;
  const type = readText(block, 156, 1);
  if (type !== "0") throw new BackupError(`${JSON.stringify(path)} is not a regular file`);
  return { path, bytes: readSize(block) };
}

function readSize(block: Buffer): number {
  if (block.readUInt8(124) !== 0x80) return readOctal(block, 124, 12);
  const bytes = Number(block.readBigUInt64BE(128));
  if (!Number.isSafeInteger(bytes)) throw new BackupError("a file in the stream is too large");
  return bytes;
}

// The shortest prefix that leaves a name of the allowed length.
function splitPath(path: string): { prefix: string; name: string } {
  const bytes = Buffer.from(path);
  if (bytes.length <= NAME_BYTES_MAX) return { prefix: "", name: path };
  const at = bytes.indexOf("/", bytes.length - NAME_BYTES_MAX - 1);
  if (at < 1 || at > PREFIX_BYTES_MAX) throw new BackupError(`${path}: the path is too long`);
  return { prefix: bytes.toString("utf8", 0, at), name: bytes.toString("utf8", at + 1) };
}

// As if the checksum were spaces.
function sumBlock(block: Buffer): number {
  let sum = 8 * 0x20;
  for (const [at, byte] of block.entries()) if (at < 148 || at >= 156) sum += byte;
  return sum;
}

function writeOctal(block: Buffer, value: number, at: number, length: number): void {
  block.write(value.toString(8).padStart(length - 1, "0"), at);
}

function readOctal(block: Buffer, at: number, length: number): number {
  const text = readText(block, at, length).trim();
  return /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : Number.NaN;
}

function readText(block: Buffer, at: number, length: number): string {
  const end = block.indexOf(0, at);
  return block.toString("utf8", at, end === -1 ? at + length : Math.min(end, at + length));
}
