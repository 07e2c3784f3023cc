// Dynamic updates (RFC 2136) of TXT records, signed with a shared key (TSIG, RFC 8945).
import { createHmac, randomInt, timingSafeEqual } from "node:crypto";
import type { NameServer } from "../config/discovery-address.ts";
import { TSIG_HASHES, type TsigKey } from "../config/tsig-key.ts";
import {
  CLASS_IN,
  type DnsMessage,
  encodeName,
  encodeRecord,
  parseMessage,
  RecordType,
} from "./message.ts";
import { DnsError, exchangeOverTcp } from "./query.ts";

/** A TXT record to add or to remove. */
export interface TextUpdate {
  kind: "add" | "remove";
  zone: string;
  name: string;
  /** At most 255 characters. */
  text: string;
  ttlSeconds: number;
}

const CLASS_NONE = 254;
const CLASS_ANY = 255;
const OPCODE_UPDATE = 5 << 11;
const FUDGE_SECONDS = 300;
const TIMEOUT_MS = 10_000;
const CODES: Readonly<Record<number, string>> = {
  1: "FORMERR",
  2: "SERVFAIL",
  4: "NOTIMP",
  5: "REFUSED",
  9: "NOTAUTH",
  10: "NOTZONE",
  16: "BADSIG",
  17: "BADKEY",
  18: "BADTIME",
};

/** Sends an update to the primary server of a zone. Throws DnsError if it is refused, or the answer is not signed. */
export async function sendUpdate(
  server: NameServer,
  key: TsigKey | undefined,
  update: TextUpdate,
  nowMs: number,
): Promise<void> {
  const plain = encodeUpdate(update);
  const signed = key === undefined ? undefined : signMessage(plain, key, nowMs, Buffer.alloc(0));
  const answer = await exchangeOverTcp(server, signed?.message ?? plain, TIMEOUT_MS);
  const message = parseMessage(answer);
  if (message.id !== plain.readUInt16BE(0) || !message.isResponse) {
    throw new DnsError("the response belongs to another update");
  }
  const signature = findSignature(message);
  if (message.code !== 0) {
    const reason = signature?.error === 0 ? undefined : signature?.error;
    const code = reason ?? message.code;
    throw new DnsError(`the server refuses the update: ${CODES[code] ?? `code ${code}`}`);
  }
  if (key === undefined || signed === undefined) return;
  if (signature === undefined || !verify(answer, message, key, signed.mac, signature, nowMs)) {
    throw new DnsError("the response is not signed with the key");
  }
}

function encodeUpdate({ kind, zone, name, text, ttlSeconds }: TextUpdate): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(randomInt(65_536), 0);
  head.writeUInt16BE(OPCODE_UPDATE, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(1, 8);
  const section = Buffer.alloc(4);
  section.writeUInt16BE(RecordType.SOA, 0);
  section.writeUInt16BE(CLASS_IN, 2);
  const data = Buffer.from(`\0${text}`, "latin1");
  data.writeUInt8(text.length, 0);
  const [recordClass, ttl] = kind === "add" ? [CLASS_IN, ttlSeconds] : [CLASS_NONE, 0];
  const record = encodeRecord(name, RecordType.TXT, recordClass, ttl, data);
  return Buffer.concat([head, encodeName(zone), section, record]);
}

/** Fields of a TSIG record that the signature covers, and the signature. */
interface Signature {
  algorithm: string;
  timeAndFudge: Buffer;
  mac: Buffer;
  error: number;
  other: Buffer;
  keyName: string;
}

function signMessage(
  message: Buffer,
  key: TsigKey,
  nowMs: number,
  requestMac: Buffer,
): { message: Buffer; mac: Buffer } {
  const timeAndFudge = Buffer.alloc(8);
  timeAndFudge.writeUIntBE(Math.floor(nowMs / 1_000), 0, 6);
  timeAndFudge.writeUInt16BE(FUDGE_SECONDS, 6);
  const mac = computeMac(message, key, requestMac, timeAndFudge, 0, Buffer.alloc(0));
  const tail = Buffer.alloc(6);
  message.copy(tail, 0, 0, 2);
  const size = Buffer.alloc(2);
  size.writeUInt16BE(mac.length, 0);
  const data = Buffer.concat([encodeName(key.algorithm), timeAndFudge, size, mac, tail]);
  const record = encodeRecord(key.name, RecordType.TSIG, CLASS_ANY, 0, data);
  const signed = Buffer.concat([message, record]);
  signed.writeUInt16BE(signed.readUInt16BE(10) + 1, 10);
  return { message: signed, mac };
}

function computeMac(
  message: Buffer,
  key: TsigKey,
  requestMac: Buffer,
  timeAndFudge: Buffer,
  error: number,
  other: Buffer,
): Buffer {
  const start = Buffer.alloc(6);
  start.writeUInt16BE(CLASS_ANY, 0);
  const end = Buffer.alloc(4);
  end.writeUInt16BE(error, 0);
  end.writeUInt16BE(other.length, 2);
  const before = Buffer.alloc(requestMac.length === 0 ? 0 : 2);
  if (before.length > 0) before.writeUInt16BE(requestMac.length, 0);
  return createHmac(TSIG_HASHES[key.algorithm]!, key.secret)
    .update(before)
    .update(requestMac)
    .update(message)
    .update(encodeName(key.name))
    .update(start)
    .update(encodeName(key.algorithm))
    .update(timeAndFudge)
    .update(end)
    .update(other)
    .digest();
}

function findSignature({ additionals }: DnsMessage): Signature | undefined {
  const last = additionals.at(-1);
  if (last?.type !== RecordType.TSIG || last.data.kind !== "other") return undefined;
  const { bytes } = last.data;
  try {
    let at = 0;
    const labels: string[] = [];
    for (let length = bytes.readUInt8(at); length > 0; length = bytes.readUInt8(at)) {
      labels.push(bytes.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
    at += 1;
    const size = bytes.readUInt16BE(at + 8);
    const end = at + 10 + size;
    return {
      algorithm: labels.join(".").toLowerCase(),
      timeAndFudge: bytes.subarray(at, at + 8),
      mac: bytes.subarray(at + 10, end),
      error: bytes.readUInt16BE(end + 2),
      other: bytes.subarray(end + 6, end + 6 + bytes.readUInt16BE(end + 4)),
      keyName: last.name,
    };
  } catch {
    return undefined;
  }
}

function verify(
  answer: Buffer,
  { lastAt }: DnsMessage,
  key: TsigKey,
  requestMac: Buffer,
  { algorithm, keyName, mac, timeAndFudge, error, other }: Signature,
  nowMs: number,
): boolean {
  if (algorithm !== key.algorithm || keyName !== key.name) return false;
  const unsigned = Buffer.from(answer.subarray(0, lastAt));
  unsigned.writeUInt16BE(unsigned.readUInt16BE(10) - 1, 10);
  const expected = computeMac(unsigned, key, requestMac, timeAndFudge, error, other);
  const isOld = Math.abs(timeAndFudge.readUIntBE(0, 6) - nowMs / 1_000) > FUDGE_SECONDS;
  return !isOld && mac.length === expected.length && timingSafeEqual(mac, expected);
}
