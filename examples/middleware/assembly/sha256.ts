// SHA-256 (FIPS 180-4) and HMAC (RFC 2104).
const K: StaticArray<u32> = [
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

export function sha256(message: Uint8Array): Uint8Array {
  const blocks = (message.length + 72) / 64;
  const padded = new Uint8Array(blocks * 64);
  memory.copy(padded.dataStart, message.dataStart, message.length);
  padded[message.length] = 0x80;
  store<u64>(padded.dataStart + padded.length - 8, bswap<u64>(<u64>message.length * 8));
  const hash: StaticArray<u32> = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
  ];
  const w = new StaticArray<u32>(64);
  for (let block = 0; block < blocks; block++) {
    for (let t = 0; t < 16; t++) w[t] = bswap<u32>(load<u32>(padded.dataStart + block * 64 + t * 4));
    for (let t = 16; t < 64; t++) {
      const s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
      const s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
      w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    let a = hash[0], b = hash[1], c = hash[2], d = hash[3];
    let e = hash[4], f = hash[5], g = hash[6], h = hash[7];
    for (let t = 0; t < 64; t++) {
      const s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
      const t1 = h + s1 + ((e & f) ^ (~e & g)) + K[t] + w[t];
      const s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
      const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g; g = f; f = e; e = d + t1; d = c; c = b; b = a; a = t1 + t2;
    }
    hash[0] += a; hash[1] += b; hash[2] += c; hash[3] += d;
    hash[4] += e; hash[5] += f; hash[6] += g; hash[7] += h;
  }
  const digest = new Uint8Array(32);
  for (let at = 0; at < 8; at++) store<u32>(digest.dataStart + at * 4, bswap<u32>(hash[at]));
  return digest;
}

/** The HMAC in hex. */
export function hmac(key: Uint8Array, message: Uint8Array): string {
  const short = key.length > 64 ? sha256(key) : key;
  const inner = new Uint8Array(64 + message.length);
  const outer = new Uint8Array(96);
  for (let at = 0; at < 64; at++) {
    const byte: u8 = at < short.length ? short[at] : 0;
    inner[at] = byte ^ 0x36;
    outer[at] = byte ^ 0x5c;
  }
  memory.copy(inner.dataStart + 64, message.dataStart, message.length);
  const digest = sha256(inner);
  memory.copy(outer.dataStart + 64, digest.dataStart, 32);
  const result = sha256(outer);
  let hex = "";
  for (let at = 0; at < 32; at++) hex += (<u32>result[at] >> 4).toString(16) + (<u32>result[at] & 15).toString(16);
  return hex;
}
