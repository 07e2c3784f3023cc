// Attachments of aggregate reports: XML, gzip or ZIP, unpacked within bounds.
import { gunzip, inflateRaw } from "node:zlib";
import { promisify } from "node:util";

/** Maximum size of a report after unpacking. */
const REPORT_BYTES_MAX = 10 * 1024 * 1024;

const GZIP = [0x1f, 0x8b];
const ZIP_LOCAL = 0x04034b50;
const ZIP_CENTRAL = 0x02014b50;
const ZIP_END = 0x06054b50;
const ZIP_END_BYTES = 22;
const ZIP_COMMENT_MAX = 65_535;
const ZIP_STORED = 0;
const ZIP_DEFLATED = 8;
const gunzipAsync = promisify(gunzip);
const inflateAsync = promisify(inflateRaw);

/** Returns the XML of an attachment. Rejects if it is no archive of one XML file, or larger than the maximum. */
export async function unpackReport(content: Buffer): Promise<Buffer> {
  const options = { maxOutputLength: REPORT_BYTES_MAX };
  if (content[0] === GZIP[0] && content[1] === GZIP[1]) return unpackGzip(content);
  if (content.length < 4 || content.readUInt32LE(0) !== ZIP_LOCAL) {
    if (content.length > REPORT_BYTES_MAX) throw new Error("the report is too large");
    return content;
  }
  const { method, data } = findOnlyEntry(content);
  if (method === ZIP_DEFLATED) return inflateAsync(data, options);
  if (method === ZIP_STORED && data.length <= REPORT_BYTES_MAX) return data;
  throw new Error("the ZIP file uses an unsupported method, or is too large");
}

// Bytes behind the compressed data, such as a line end of the mail, are ignored, as gzip does: they are no second member.
async function unpackGzip(content: Buffer): Promise<Buffer> {
  const options = { maxOutputLength: REPORT_BYTES_MAX };
  try {
    return await gunzipAsync(content, options);
  } catch (error) {
    const start = findGzipData(content);
    if (start === undefined) throw error;
    return inflateAsync(content.subarray(start), options);
  }
}

// RFC 1952 section 2.3: flags for a checksum of the header, extra fields, a name and a comment.
function findGzipData(file: Buffer): number | undefined {
  const flags = file[3] ?? 0;
  let at = 10;
  if ((flags & 4) !== 0) at += 2 + (file.length < at + 2 ? 0 : file.readUInt16LE(at));
  for (const flag of [8, 16]) {
    if ((flags & flag) === 0) continue;
    const end = file.indexOf(0, at);
    if (end === -1) return undefined;
    at = end + 1;
  }
  if ((flags & 2) !== 0) at += 2;
  return at < file.length ? at : undefined;
}

// The sizes of the central directory (APPNOTE 4.3.12) count: those of the local header may be missing. They are only
// bounds of a slice of the file; what is inflated is bounded by zlib.
function findOnlyEntry(file: Buffer): { method: number; data: Buffer } {
  const end = findEnd(file);
  const entries = file.readUInt16LE(end + 10);
  const central = file.readUInt32LE(end + 16);
  if (entries !== 1) throw new Error(`the ZIP file has ${entries} files instead of one`);
  if (central + 46 > file.length || file.readUInt32LE(central) !== ZIP_CENTRAL) throw invalid();
  const flags = file.readUInt16LE(central + 8);
  if ((flags & 1) !== 0) throw new Error("the ZIP file is encrypted");
  const method = file.readUInt16LE(central + 10);
  const size = file.readUInt32LE(central + 20);
  const local = file.readUInt32LE(central + 42);
  if (local + 30 > file.length || file.readUInt32LE(local) !== ZIP_LOCAL) throw invalid();
  const start = local + 30 + file.readUInt16LE(local + 26) + file.readUInt16LE(local + 28);
  if (start + size > file.length) throw invalid();
  return { method, data: file.subarray(start, start + size) };
}

function findEnd(file: Buffer): number {
  const lowest = Math.max(0, file.length - ZIP_END_BYTES - ZIP_COMMENT_MAX);
  for (let at = file.length - ZIP_END_BYTES; at >= lowest; at -= 1) {
    if (file.readUInt32LE(at) === ZIP_END) return at;
  }
  throw invalid();
}

function invalid(): Error {
  return new Error("the ZIP file is damaged");
}
