// CRC-64/NVME (NVM Express NVM Command Set Specification 1.0, section 5.2.1.3.4).

/** The polynomial, reflected. */
export const CRC64_POLYNOMIAL = 0x9a6c9329ac4bc9b5n;

const ALL_ONES = (1n << 64n) - 1n;

/** The effect of each byte on a zero state; `tables[k]` applies when `k` more bytes follow. */
export function buildCrc64Tables(count: number): bigint[][] {
  const first = Array.from({ length: 256 }, (_, index) => {
    let value = BigInt(index);
    for (let bit = 0; bit < 8; bit += 1) {
      value = (value & 1n) === 1n ? (value >> 1n) ^ CRC64_POLYNOMIAL : value >> 1n;
    }
    return value;
  });
  const tables = [first];
  while (tables.length < count) {
    const before = tables.at(-1)!;
    tables.push(before.map((value) => (value >> 8n) ^ first[Number(value & 0xffn)]!));
  }
  return tables;
}

// In halves: arithmetic on big integers takes a hundred times as long.
const TABLE = buildCrc64Tables(1)[0]!;
const HIGH = Uint32Array.from(TABLE, (value) => Number(value >> 32n));
const LOW = Uint32Array.from(TABLE, (value) => Number(value & 0xffffffffn));

/** The state after `bytes`. A checksum begins with all ones and ends with the complement. */
export function advanceCrc64(state: bigint, bytes: Uint8Array): bigint {
  let high = Number(state >> 32n);
  let low = Number(state & 0xffffffffn);
  for (const byte of bytes) {
    const index = (low ^ byte) & 0xff;
    low = ((low >>> 8) | (high << 24)) ^ LOW[index]!;
    high = (high >>> 8) ^ HIGH[index]!;
  }
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

/** The digest of a state: 8 bytes, big-endian. */
export function formatCrc64(state: bigint): Buffer {
  const digest = Buffer.alloc(8);
  digest.writeBigUInt64BE(state ^ ALL_ONES);
  return digest;
}

/** The initial state. */
export const CRC64_START: bigint = ALL_ONES;
