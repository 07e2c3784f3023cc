// Messages of DNS (RFC 1035) with the records that the gateway reads: addresses, SRV, TXT, NS, SOA and CNAME.
import { isIP } from "node:net";

/** Types of records. */
export const RecordType = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  TSIG: 250,
  ANY: 255,
} as const;

/** Codes of responses (RFC 1035 section 4.1.1, RFC 2136 section 2.2). */
export const ResponseCode = { noError: 0, nameError: 3 } as const;

/** The internet, in records and questions. */
export const CLASS_IN = 1;

/** A record; what its data contains depends on its type. */
export interface DnsRecord {
  /** Lower case without a final dot. */
  name: string;
  type: number;
  class: number;
  ttlSeconds: number;
  data: RecordData;
}

/** Parsed data of a record. */
type RecordData =
  | { kind: "address"; address: string }
  | { kind: "name"; name: string }
  | { kind: "srv"; priority: number; weight: number; port: number; target: string }
  | { kind: "soa"; server: string; minimumSeconds: number }
  | { kind: "text"; text: string }
  | { kind: "other"; bytes: Buffer };

/** A parsed response. */
export interface DnsMessage {
  id: number;
  isResponse: boolean;
  /** The response did not fit: ask over TCP. */
  isTruncated: boolean;
  code: number;
  /** Start of the last record, which may be a signature. */
  lastAt: number;
  question: { name: string; type: number } | undefined;
  answers: DnsRecord[];
  authorities: DnsRecord[];
  additionals: DnsRecord[];
}

/** A message that is not valid. */
export class DnsFormatError extends Error {
  override readonly name = "DnsFormatError";
}

const HEADER_BYTES = 12;
/** Size of responses over UDP that pass all networks (RFC 6891). */
const UDP_BYTES_MAX = 1_232;
const NAME_BYTES_MAX = 255;
const LABEL_BYTES_MAX = 63;
/** A message of 64 KiB over TCP has at most about this number. */
const RECORDS_MAX = 6_000;

/** Encodes a query with EDNS. */
export function encodeQuery(
  id: number,
  name: string,
  type: number,
  options: { recursion: boolean },
): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt16BE(id, 0);
  head.writeUInt16BE(options.recursion ? 0x0100 : 0, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(1, 10);
  const end = Buffer.alloc(4);
  end.writeUInt16BE(type, 0);
  end.writeUInt16BE(CLASS_IN, 2);
  const edns = encodeRecord("", RecordType.OPT, UDP_BYTES_MAX, 0, Buffer.alloc(0));
  return Buffer.concat([head, encodeName(name), end, edns]);
}

/** Encodes a name without compression. Throws DnsFormatError. */
export function encodeName(name: string): Buffer {
  const labels = name === "" ? [] : name.replace(/\.$/, "").split(".");
  const parts = labels.flatMap((label) => {
    const bytes = Buffer.from(label, "latin1");
    if (bytes.length === 0 || bytes.length > LABEL_BYTES_MAX) {
      throw new DnsFormatError("a label of a name is empty or too long");
    }
    return [Buffer.from([bytes.length]), bytes];
  });
  const encoded = Buffer.concat([...parts, Buffer.from([0])]);
  if (encoded.length > NAME_BYTES_MAX) throw new DnsFormatError("a name is too long");
  return encoded;
}

/** Encodes a record. */
export function encodeRecord(
  name: string,
  type: number,
  recordClass: number,
  ttlSeconds: number,
  data: Buffer,
): Buffer {
  const middle = Buffer.alloc(10);
  middle.writeUInt16BE(type, 0);
  middle.writeUInt16BE(recordClass, 2);
  middle.writeUInt32BE(ttlSeconds, 4);
  middle.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodeName(name), middle, data]);
}

/** Parses a message. Throws DnsFormatError. */
export function parseMessage(bytes: Buffer): DnsMessage {
  try {
    return new Reader(bytes).readMessage();
  } catch (error) {
    if (error instanceof RangeError) throw new DnsFormatError("a message is cut", { cause: error });
    throw error;
  }
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;
  #lastAt = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  readMessage(): DnsMessage {
    const id = this.#readShort();
    const flags = this.#readShort();
    const counts = [0, 0, 0, 0].map(() => this.#readShort());
    const [questions = 0, answers = 0, authorities = 0, additionals = 0] = counts;
    if (questions + answers + authorities + additionals > RECORDS_MAX) {
      throw new DnsFormatError("a message has too many records");
    }
    let question: DnsMessage["question"];
    for (let count = 0; count < questions; count++) {
      const name = this.#readName();
      question ??= { name, type: this.#bytes.readUInt16BE(this.#at) };
      this.#at += 4;
    }
    return {
      id,
      isResponse: (flags & 0x8000) !== 0,
      isTruncated: (flags & 0x0200) !== 0,
      code: flags & 0x000f,
      question,
      answers: this.#readRecords(answers),
      authorities: this.#readRecords(authorities),
      additionals: this.#readRecords(additionals),
      lastAt: this.#lastAt,
    };
  }

  #readRecords(count: number): DnsRecord[] {
    return Array.from({ length: count }, () => this.#readRecord());
  }

  #readRecord(): DnsRecord {
    this.#lastAt = this.#at;
    const name = this.#readName();
    const type = this.#readShort();
    const recordClass = this.#readShort();
    const ttlSeconds = this.#bytes.readUInt32BE(this.#at);
    this.#at += 4;
    const length = this.#readShort();
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new DnsFormatError("a record is cut");
    const data = this.#readData(type, length);
    this.#at = end;
    return { name, type, class: recordClass, ttlSeconds, data };
  }

  #readData(type: number, length: number): RecordData {
    const bytes = this.#bytes.subarray(this.#at, this.#at + length);
    switch (type) {
      case RecordType.A:
        if (length !== 4) throw new DnsFormatError("an address is malformed");
        return { kind: "address", address: bytes.join(".") };
      case RecordType.AAAA:
        return { kind: "address", address: readAddress(bytes) };
      case RecordType.NS:
      case RecordType.CNAME:
        return { kind: "name", name: this.#readName() };
      case RecordType.SRV:
        return {
          kind: "srv",
          priority: this.#readShort(),
          weight: this.#readShort(),
          port: this.#readShort(),
          target: this.#readName(),
        };
      case RecordType.SOA: {
        const server = this.#readName();
        this.#readName();
        return { kind: "soa", server, minimumSeconds: this.#bytes.readUInt32BE(this.#at + 16) };
      }
      case RecordType.TXT:
        return { kind: "text", text: readText(bytes) };
      default:
        return { kind: "other", bytes };
    }
  }

  #readShort(): number {
    const value = this.#bytes.readUInt16BE(this.#at);
    this.#at += 2;
    return value;
  }

  // Pointers lead only backwards, so that they cannot form a ring.
  #readName(): string {
    const labels: string[] = [];
    let at = this.#at;
    let limit = at;
    let size = 0;
    let isJumped = false;
    for (;;) {
      const length = this.#bytes.readUInt8(at);
      if (length >= 0xc0) {
        const target = this.#bytes.readUInt16BE(at) & 0x3fff;
        if (!isJumped) this.#at = at + 2;
        isJumped = true;
        if (target >= limit) throw new DnsFormatError("a compressed name points forwards");
        at = target;
        limit = target;
        continue;
      }
      if (length > LABEL_BYTES_MAX) throw new DnsFormatError("a label of a name is malformed");
      size += length + 1;
      if (size > NAME_BYTES_MAX) throw new DnsFormatError("a name is too long");
      if (length === 0) break;
      if (at + 1 + length > this.#bytes.length) throw new DnsFormatError("a name is cut");
      labels.push(this.#bytes.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
    if (!isJumped) this.#at = at + 1;
    return labels.join(".").toLowerCase();
  }
}

function readAddress(bytes: Buffer): string {
  if (bytes.length !== 16) throw new DnsFormatError("an address is malformed");
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16));
  const text = groups.join(":");
  return isIP(text) === 6 ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text;
}

function readText(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 1 + bytes[at]!) {
    text += bytes.toString("latin1", at + 1, at + 1 + bytes[at]!);
  }
  return text;
}
