// Arithmetic in GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1, as usual in Reed–Solomon codes for storage.

const POLYNOMIAL = 0x11d;
const ORDER = 255;

/** Tables of logarithms and powers of the generator 2. */
export interface GaloisField {
  multiply: (a: number, b: number) => number;
  /** Throws on 0. */
  invert: (a: number) => number;
  /** The products of all bytes with `factor`. */
  buildProducts: (factor: number) => Uint8Array;
}

/** Builds the tables. */
export function createGaloisField(): GaloisField {
  const powers = new Uint8Array(2 * ORDER);
  const logarithms = new Uint8Array(256);
  for (let exponent = 0, value = 1; exponent < ORDER; exponent += 1) {
    powers[exponent] = value;
    powers[exponent + ORDER] = value;
    logarithms[value] = exponent;
    value <<= 1;
    if (value > 0xff) value ^= POLYNOMIAL;
  }
  const multiply = (a: number, b: number) =>
    a === 0 || b === 0 ? 0 : powers[logarithms[a]! + logarithms[b]!]!;
  return {
    multiply,
    invert: (a) => {
      if (a === 0) throw new RangeError("0 has no inverse");
      return powers[ORDER - logarithms[a]!]!;
    },
    buildProducts: (factor) =>
      Uint8Array.from({ length: 256 }, (_, byte) => multiply(factor, byte)),
  };
}
