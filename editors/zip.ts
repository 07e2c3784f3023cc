// Zip archives with the same bytes for the same files: what VS Code calls VSIX
// (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT).
import { crc32, deflateRawSync } from "node:zlib";

/** 1980-01-01, the first day of the format: archives do not depend on the time of their making. */
const DATE = 0x21;
const VERSION = 20;
const UTF8_NAMES = 0x800;
const DEFLATED = 8;

/** Creates an archive of files by their paths, in this order. */
export function createZip(files: ReadonlyMap<string, Uint8Array>): Buffer {
  const locals: Buffer[] = [];
  const entries: Buffer[] = [];
  let offset = 0;
  for (const [path, bytes] of files) {
    const name = Buffer.from(path);
    const packed = deflateRawSync(bytes, { level: 9 });
    const common = Buffer.alloc(26);
    common.writeUInt16LE(VERSION, 0);
    common.writeUInt16LE(UTF8_NAMES, 2);
    common.writeUInt16LE(DEFLATED, 4);
    common.writeUInt16LE(DATE, 8);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\u0003\u0004"), common, name, packed]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    const made = Buffer.from([VERSION, 0]);
    entries.push(Buffer.concat([Buffer.from("PK\u0001\u0002"), made, common, place, name]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(entries);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.size, 4);
  end.writeUInt16LE(files.size, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...locals, directory, Buffer.from("PK\u0005\u0006"), end]);
}
