// The hash that selects partitions.

/** FNV-1a, 32 bits, as an unsigned number (http://www.isthe.com/chongo/tech/comp/fnv). */
export function fnv1a(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < bytes.length; at++) {
    hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  }
  return hash >>> 0;
}
