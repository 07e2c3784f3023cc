// The parts of DER (X.690) that requests for certificates and certificates of challenges consist of.

/** Tags of values. */
const TAG = {
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
} as const;

/** Encodes a value with a tag. */
export function encodeTagged(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content]);
  const size: number[] = [];
  for (let rest = content.length; rest > 0; rest >>>= 8) size.unshift(rest & 0xff);
  return Buffer.concat([Buffer.from([tag, 0x80 | size.length, ...size]), content]);
}

/** Encodes a SEQUENCE. */
export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return encodeTagged(TAG.sequence, ...parts);
}

/** Encodes a SET of one member. */
export function setOf(part: Uint8Array): Buffer {
  return encodeTagged(TAG.set, part);
}

/** Encodes an unsigned INTEGER of big-endian bytes. */
export function unsigned(bytes: Uint8Array): Buffer {
  // TLS refuses certificates with more zeros than the sign requires.
  const start = bytes.findIndex((byte) => byte !== 0);
  const digits = start === -1 ? Buffer.from([0]) : bytes.subarray(start);
  const isNegative = digits[0]! >= 0x80;
  return encodeTagged(TAG.integer, isNegative ? Buffer.from([0]) : Buffer.alloc(0), digits);
}

/** Encodes an OBJECT IDENTIFIER in dotted form. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const digits = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) digits.unshift(0x80 | (left & 0x7f));
    return digits;
  });
  return encodeTagged(TAG.oid, Buffer.from(bytes));
}

/** Encodes an OCTET STRING. */
export function octets(bytes: Uint8Array): Buffer {
  return encodeTagged(TAG.octets, bytes);
}

/** Encodes a BIT STRING of whole bytes. */
export function bits(bytes: Uint8Array): Buffer {
  return encodeTagged(TAG.bits, Buffer.from([0]), bytes);
}

/** Encodes a UTF8String. */
export function utf8(text: string): Buffer {
  return encodeTagged(TAG.utf8, Buffer.from(text, "utf8"));
}

/** Encodes a UTCTime, for years up to 2049. */
export function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]/g, "").slice(2, 14);
  return encodeTagged(TAG.utcTime, Buffer.from(`${digits}Z`, "latin1"));
}

/** Encodes the extension subjectAltName with one DNS name. */
export function describeDnsName(name: string): Buffer {
  const names = sequence(encodeTagged(0x82, Buffer.from(name, "latin1")));
  return sequence(oid("2.5.29.17"), octets(names));
}
