// Representations of content: media types, codings, conditional requests, files of a folder.
export { type ContentCoding, chooseCoding } from "./accept-encoding.ts";
export { evaluateConditions, type ReadField, type Validators } from "./conditions.ts";
export { matchesTag } from "./entity-tag.ts";
export { findMediaType } from "./media-type.ts";
export {
  type ByteRange,
  describeRange,
  layOutRanges,
  type Multipart,
  RANGES_MAX,
  readRanges,
  type Segment,
} from "./ranges.ts";
export {
  describeFile,
  isServedPath,
  openStaticFile,
  readPieces,
  type StaticFileAnswer,
  type StaticFileOptions,
} from "./static-file.ts";
export { hasUniqueItems } from "./unique-items.ts";
