// PNG images for tests: any kind, with all filters; and the reading of images with the filters "none" and "sub".
import { crc32, deflateSync, inflateSync } from "node:zlib";

const MAGIC = Buffer.from("89504e470d0a1a0a", "hex");
const CHANNELS = [1, 0, 3, 1, 2, 0, 4];
/** The palette of images of kind 3, and their alpha. */
const PALETTE = Buffer.from([10, 20, 30, 40, 50, 60, 70, 80, 90]);
const ALPHA = Buffer.from([255, 7]);
const FILTERS = 5;

/** An image to encode. */
export interface PngSource {
  width: number;
  height: number;
  /** As in the header: 0 grey, 2 colour, 3 palette, 4 grey with alpha, 6 colour with alpha. */
  kind: number;
  /** Bits of a sample. */
  depth: number;
  /** The samples of a pixel. */
  pixel: (x: number, y: number) => readonly number[];
}

/** Encodes an image; its lines have all filters in turns, and its data is in two chunks. */
export function encodePng({ width, height, kind, depth, pixel }: PngSource): Buffer {
  const stride = Math.ceil((width * CHANNELS[kind]! * depth) / 8);
  const step = Math.ceil((CHANNELS[kind]! * depth) / 8);
  let above: Buffer = Buffer.alloc(stride);
  const lines: Buffer[] = [];
  for (let y = 0; y < height; y += 1) {
    const samples = Array.from({ length: width }, (_, x) => pixel(x, y)).flat();
    const line = packSamples(samples, depth, stride);
    lines.push(Buffer.from([y % FILTERS]), filterLine(line, above, step, y % FILTERS));
    above = line;
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([depth, kind, 0, 0, 0], 8);
  const data = deflateSync(Buffer.concat(lines));
  const half = data.length >> 1;
  return Buffer.concat([
    MAGIC,
    encodeChunk("IHDR", head),
    ...(kind === 3 ? [encodeChunk("PLTE", PALETTE), encodeChunk("tRNS", ALPHA)] : []),
    encodeChunk("IDAT", data.subarray(0, half)),
    encodeChunk("IDAT", data.subarray(half)),
    encodeChunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Decodes an image of red, green, blue and alpha with 8 bits. Throws if a checksum differs. */
export function decodePng(png: Buffer): {
  width: number;
  height: number;
  pixel: (x: number, y: number) => number[];
} {
  if (!png.subarray(0, 8).equals(MAGIC)) throw new Error("not a PNG");
  const data: Buffer[] = [];
  let head = Buffer.alloc(0);
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    const content = png.subarray(at + 8, at + 8 + length);
    const crc = png.readUInt32BE(at + 8 + length);
    if (crc32(png.subarray(at + 4, at + 8 + length)) !== crc) throw new Error(`${type}: crc`);
    if (type === "IHDR") head = Buffer.from(content);
    if (type === "IDAT") data.push(content);
    at += 12 + length;
  }
  const [width, height] = [head.readUInt32BE(0), head.readUInt32BE(4)];
  const lines = inflateSync(Buffer.concat(data));
  const stride = width * 4 + 1;
  for (let y = 0; y < height; y += 1) {
    if (lines[y * stride] !== 1) continue;
    for (let n = 5; n < stride; n += 1) {
      const at = y * stride + n;
      lines[at] = (lines[at]! + lines[at - 4]!) & 0xff;
    }
  }
  const pixel = (x: number, y: number): number[] => {
    const at = y * stride + 1 + x * 4;
    return [...lines.subarray(at, at + 4)];
  };
  return { width, height, pixel };
}

function packSamples(samples: readonly number[], depth: number, stride: number): Buffer {
  const line = Buffer.alloc(stride);
  for (const [index, sample] of samples.entries()) {
    if (depth === 16) line.writeUInt16BE(sample, index * 2);
    else {
      const bit = index * depth;
      line[bit >> 3]! |= sample << (8 - depth - (bit & 7));
    }
  }
  return line;
}

function filterLine(line: Buffer, above: Buffer, step: number, filter: number): Buffer {
  return Buffer.from(
    line.map((value, n) => {
      const left = n >= step ? line[n - step]! : 0;
      const up = above[n]!;
      const corner = n >= step ? above[n - step]! : 0;
      const added = [0, left, up, (left + up) >> 1, predict(left, up, corner)];
      return (value - added[filter]!) & 0xff;
    }),
  );
}

// Paeth (ISO/IEC 15948, 9.4).
function predict(left: number, up: number, corner: number): number {
  const estimate = left + up - corner;
  const [a, b, c] = [left, up, corner].map((one) => Math.abs(estimate - one)) as [
    number,
    number,
    number,
  ];
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

function encodeChunk(type: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), content]);
  const ends = Buffer.alloc(8);
  ends.writeUInt32BE(content.length, 0);
  ends.writeUInt32BE(crc32(named), 4);
  return Buffer.concat([ends.subarray(0, 4), named, ends.subarray(4)]);
}
