// A set of many networks as a path-compressed binary trie in shared memory: all threads use one copy.
import { MAPPED_BITS, parseRange, readAddress } from "./address-set.ts";

/*
 * A node is 8 words: [0 … 3] the first `bits` bits of its networks, [4] bits, [5] child for bit 0, [6] child for bit 1,
 * [7] 1 if the node is a network of the set. A child of 0 is absent: node 0, the root, is nobody's child.
 */
const NODE_WORDS = 8;
const BITS = 4;
const CHILDREN = 5;
const MEMBER = 7;
const ADDRESS_BITS = 128;

/** An immutable set of networks. A lookup visits at most one node for each bit in which networks differ. */
export class AddressTrie {
  readonly #words: Uint32Array;
  readonly #wanted = new Uint32Array(4);

  /** Wraps a trie of {@link buildAddressTrie}, also in another thread. */
  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Uint32Array(buffer);
  }

  /** True if the address is in one of the networks; false for text that is not an address. */
  has(address: string): boolean {
    const bytes = readAddress(address);
    if (bytes === undefined) return false;
    const words = this.#words;
    const wanted = this.#wanted;
    readWords(bytes, wanted);
    const bitsMin = isMapped(wanted) ? MAPPED_BITS : 0;
    for (let node = 0; ;) {
      const bits = words[node + BITS]!;
      if (countEqualBits(wanted, 0, words, node, bits) < bits) return false;
      if (words[node + MEMBER] === 1 && bits >= bitsMin) return true;
      if (bits === ADDRESS_BITS) return false;
      node = words[node + CHILDREN + readBit(wanted, 0, bits)]!;
      if (node === 0) return false;
    }
  }
}

/**
 * Builds the trie of networks such as `192.0.2.1`, `10.0.0.0/8` or `2001:db8::/32`. Throws a RangeError that contains the
 * first invalid text.
 */
export function buildAddressTrie(networks: readonly string[]): SharedArrayBuffer {
  const builder = new Builder(networks.length);
  for (const text of networks) {
    const range = parseRange(text);
    if (range === undefined) {
      throw new RangeError(`${JSON.stringify(text)} is not an IP address or CIDR range`);
    }
    builder.add(range.bytes, range.bits);
  }
  return builder.finish();
}

class Builder {
  readonly #words: Uint32Array;
  readonly #wanted = new Uint32Array(4);
  #used = NODE_WORDS;

  /** The root stands for no bits; a network adds at most two nodes: its own and the one at which it branches off. */
  constructor(networks: number) {
    this.#words = new Uint32Array((networks * 2 + 1) * NODE_WORDS);
  }

  add(bytes: Uint8Array, bits: number): void {
    const words = this.#words;
    readWords(bytes, this.#wanted);
    // A wider network of IPv6 addresses does not contain those of IPv4.
    const bitsMin = isMapped(this.#wanted) ? MAPPED_BITS : 0;
    for (let node = 0; ;) {
      if (words[node + MEMBER] === 1 && words[node + BITS]! >= bitsMin) return;
      if (words[node + BITS] === bits) {
        words[node + MEMBER] = 1;
        return;
      }
      const link = node + CHILDREN + readBit(this.#wanted, 0, words[node + BITS]!);
      const child = words[link]!;
      if (child === 0) {
        words[link] = this.#create(bits, 1);
        return;
      }
      const limit = Math.min(bits, words[child + BITS]!);
      const equal = countEqualBits(this.#wanted, 0, words, child, limit);
      if (equal < words[child + BITS]!) {
        words[link] = this.#branch(child, equal, bits);
        return;
      }
      node = child;
    }
  }

  finish(): SharedArrayBuffer {
    const buffer = new SharedArrayBuffer(this.#used * 4);
    new Uint32Array(buffer).set(this.#words.subarray(0, this.#used));
    return buffer;
  }

  // A node above `child` at which the wanted network ends or branches off.
  #branch(child: number, equal: number, bits: number): number {
    const words = this.#words;
    const parent = this.#create(equal, equal === bits ? 1 : 0);
    words[parent + CHILDREN + readBit(words, child, equal)] = child;
    if (equal < bits) {
      words[parent + CHILDREN + readBit(this.#wanted, 0, equal)] = this.#create(bits, 1);
    }
    return parent;
  }

  #create(bits: number, member: 0 | 1): number {
    const node = this.#used;
    this.#used += NODE_WORDS;
    this.#words.set(this.#wanted, node);
    this.#words[node + BITS] = bits;
    this.#words[node + MEMBER] = member;
    return node;
  }
}

/** True for IPv4 addresses. */
function isMapped(words: Uint32Array): boolean {
  return words[0] === 0 && words[1] === 0 && words[2] === 0xffff;
}

function readWords(bytes: Uint8Array, words: Uint32Array): void {
  for (let at = 0; at < 4; at++) {
    const from = at * 4;
    words[at] =
      ((bytes[from]! << 24) |
        (bytes[from + 1]! << 16) |
        (bytes[from + 2]! << 8) |
        bytes[from + 3]!) >>>
      0;
  }
}

function readBit(words: Uint32Array, at: number, bit: number): 0 | 1 {
  return ((words[at + (bit >> 5)]! >>> (31 - (bit & 31))) & 1) as 0 | 1;
}

// The number of equal leading bits, at most `limit`.
function countEqualBits(
  one: Uint32Array,
  oneAt: number,
  other: Uint32Array,
  otherAt: number,
  limit: number,
): number {
  for (let word = 0; word * 32 < limit; word++) {
    const difference = one[oneAt + word]! ^ other[otherAt + word]!;
    if (difference !== 0) return Math.min(limit, word * 32 + Math.clz32(difference));
  }
  return limit;
}
