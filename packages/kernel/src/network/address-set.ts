// IP addresses, CIDR ranges and sets of them. IPv4-mapped IPv6 addresses equal their IPv4 addresses, which no wider range
// of IPv6 addresses contains: `::/0` is all of IPv6.
import { isIPv4, isIPv6 } from "node:net";

/** The first `bits` bits of `bytes`. */
interface Range {
  bytes: Uint8Array;
  bits: number;
}

/** An immutable set. `has` scans all ranges, so call it once per connection. */
export class AddressSet {
  readonly #ranges: readonly Range[];

  /** Accepts `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`. Throws a RangeError that contains the invalid text. */
  constructor(ranges: readonly string[]) {
    this.#ranges = ranges.map((text) => {
      const range = parseRange(text);
      if (range !== undefined) return range;
      throw new RangeError(`${JSON.stringify(text)} is not an IP address or CIDR range`);
    });
  }

  /** True if the address is in one of the ranges; false for text that is not an address. */
  has(address: string): boolean {
    if (this.#ranges.length === 0) return false;
    const bytes = readAddress(address);
    if (bytes === undefined) return false;
    const bitsMin = isMapped(bytes) ? MAPPED_BITS : 0;
    return this.#ranges.some((range) => range.bits >= bitsMin && isWithin(bytes, range));
  }
}

/** Returns the 16 bytes of an IPv6 or mapped IPv4 address, without its zone; undefined for other text. */
export function readAddress(text: string): Uint8Array | undefined {
  if (isIPv4(text)) return mapIPv4(text);
  const zone = text.indexOf("%");
  const bare = zone === -1 ? text : text.slice(0, zone);
  return isIPv6(bare) ? parseIPv6(bare) : undefined;
}

/** True if the text is an address or range that `AddressSet` accepts. */
export function isNetwork(text: string): boolean {
  return parseRange(text) !== undefined;
}

/** True for loopback addresses: `127.0.0.0/8` or `::1`. */
export function isLoopback(address: string): boolean {
  // Created on first use: parsing it compiles the pattern of IPv6 addresses, which delays starts.
  return (loopback ??= new AddressSet(["127.0.0.0/8", "::1"])).has(address);
}

let loopback: AddressSet | undefined;

/** The network of a text; undefined for other text. An address with a zone belongs to an interface and is not a network. */
export function parseRange(text: string): Range | undefined {
  const [address = "", length, ...rest] = text.split("/");
  const bytes = address.includes("%") ? undefined : readAddress(address);
  const bitsMax = isIPv4(address) ? 32 : 128;
  const isLength = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bitsMax);
  if (bytes === undefined || rest.length > 0 || !isLength) return undefined;
  const bits = length === undefined ? bitsMax : Number(length);
  return { bytes, bits: bits + 128 - bitsMax };
}

/** Bits that all mapped IPv4 addresses share. */
export const MAPPED_BITS = 96;

function isWithin(address: Uint8Array, { bytes, bits }: Range): boolean {
  const whole = bits >> 3;
  for (let at = 0; at < whole; at++) if (address[at] !== bytes[at]) return false;
  const rest = bits & 7;
  return rest === 0 || ((address[whole]! ^ bytes[whole]!) & (0xff00 >> rest) & 0xff) === 0;
}

/** True for an IPv4 address in its form of 16 bytes. */
function isMapped(address: Uint8Array): boolean {
  return (
    address[10] === 0xff &&
    address[11] === 0xff &&
    address.subarray(0, 10).every((byte) => byte === 0)
  );
}

function mapIPv4(text: string): Uint8Array {
  return Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...text.split(".").map(Number));
}

function parseIPv6(text: string): Uint8Array {
  const dotted = text.lastIndexOf(":") + 1;
  if (text.includes(".")) {
    const [a, b, c, d] = text.slice(dotted).split(".").map(Number) as [
      number,
      number,
      number,
      number,
    ];
    const groups = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
    return parseIPv6(text.slice(0, dotted) + groups);
  }
  const [head = "", tail] = text.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const groups = [
    ...left,
    ...Array.from({ length: 8 - left.length - right.length }, () => "0"),
    ...right,
  ];
  return Uint8Array.from(
    groups.flatMap((group) => {
      const value = Number.parseInt(group, 16);
      return [value >> 8, value & 0xff];
    }),
  );
}
