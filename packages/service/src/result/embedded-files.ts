// Files inside an executable: `platform build` puts them there in place of a folder.
import {
  describeFile,
  findMediaType,
  isServedPath,
  type Segment,
  type StaticFileOptions,
} from "@platform/kernel/content";
import type { FileAnswer } from "./file-result.ts";

/** Size and entity tag of an embedded file. */
export interface EmbeddedFile {
  readonly sizeBytes: number;
  readonly etag: string;
}

/** A folder inside an executable. */
export interface EmbeddedFolder {
  /** Files by path below the folder. */
  readonly files: Readonly<Record<string, EmbeddedFile>>;
  /** Returns the bytes of a file without copying them; they must not be changed. */
  readonly read: (path: string) => Uint8Array;
}

const PIECE_BYTES = 65_536;

/** Finds a file as `openStaticFile` of the kernel does. */
export function findEmbeddedFile(
  folder: EmbeddedFolder,
  path: string,
  options: StaticFileOptions,
): FileAnswer | "folder" | undefined {
  if (!isServedPath(path)) return undefined;
  const isFolder = path === "" || path.endsWith("/");
  if (isFolder && options.index === "") return undefined;
  const name = isFolder ? path + options.index : path;
  if (!Object.hasOwn(folder.files, name)) {
    const isKnown = Object.keys(folder.files).some((file) => file.startsWith(`${name}/`));
    return isKnown && !isFolder ? "folder" : undefined;
  }
  const validators = { ...folder.files[name]!, modifiedMs: undefined };
  const { body, ...head } = describeFile(findMediaType(name), validators, options);
  if (body === undefined) return head;
  const read = () => cutPieces(folder.read(name), body.segments);
  return { ...head, content: { length: body.length, read, close: () => Promise.resolve() } };
}

// oxlint-disable-next-line typescript/require-await -- as pieces of a file
async function* cutPieces(
  bytes: Uint8Array,
  segments: readonly Segment[],
): AsyncGenerator<Uint8Array> {
  for (const segment of segments) {
    const piece = Buffer.isBuffer(segment) ? segment : bytes.subarray(segment.start, segment.end);
    for (let at = 0; at < piece.length; at += PIECE_BYTES) {
      yield piece.subarray(at, at + PIECE_BYTES);
    }
  }
}
