// Pictures that the service shows: their types are read from their bytes, never from names or headers.

/** Content-Security-Policy of pictures: opened on their own, they are documents without rights. */
export const PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/** A raster image. */
export interface Raster {
  readonly type: "image/png" | "image/jpeg";
  /** In pixels. */
  readonly width: number;
  readonly height: number;
}

const PNG_START = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
const PNG_HEADER_BYTES = 24;
/** Start of a frame, in all its codings: C4, C8 and CC have other meanings. */
const JPEG_FRAMES = new Set([
  0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf,
]);
const SVG_START = /^\uFEFF?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--(?:(?!-->)[^])*-->\s*)*<svg[\s>]/;
const SVG_REFUSED: readonly (readonly [RegExp, string])[] = [
  [/<!(?:DOCTYPE|ENTITY)/i, "a document type"],
  [/<\s*(?:[\w-]+:)?(?:script|foreignObject|handler|iframe|object|embed)\b/i, "active elements"],
  [/[\s"'/]on[a-z]+\s*=/i, "event handlers"],
  [
    /\b(?:href|src)\s*=\s*["']?\s*(?!["'#]|data:image\/(?:png|jpeg);)/i,
    "references to other files",
  ],
  [/url\(\s*["']?\s*(?!["'#])|@import|javascript:/i, "references to other files"],
];

/** Reads type and size of a PNG or JPEG; `undefined` for anything else. */
export function readRaster(bytes: Buffer): Raster | undefined {
  if (bytes.length >= PNG_HEADER_BYTES && bytes.subarray(0, PNG_START.length).equals(PNG_START)) {
    return { type: "image/png", width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  }
  return readJpeg(bytes);
}

/** The problem of an SVG; `undefined` if it has no scripts and refers to no other files. */
export function findSvgProblem(bytes: Buffer): string | undefined {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return "is not UTF-8";
  }
  if (!SVG_START.test(text)) return "is not an SVG";
  const refused = SVG_REFUSED.find(([pattern]) => pattern.test(text));
  return refused === undefined ? undefined : `contains ${refused[1]}`;
}

// Segments have a marker and a length. The one that starts the frame contains the size.
function readJpeg(bytes: Buffer): Raster | undefined {
  if (bytes.length < 4 || bytes.readUIntBE(0, 3) !== 0xff_d8_ff) return undefined;
  let at = 2;
  while (at + 9 <= bytes.length) {
    if (bytes[at] !== 0xff) return undefined;
    const marker = bytes[at + 1]!;
    if (JPEG_FRAMES.has(marker)) {
      const [height, width] = [bytes.readUInt16BE(at + 5), bytes.readUInt16BE(at + 7)];
      return { type: "image/jpeg", width, height };
    }
    at += 2 + Math.max(bytes.readUInt16BE(at + 2), 2);
  }
  return undefined;
}
