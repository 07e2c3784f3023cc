// Replaces e-mail addresses by `[e-mail]`, with the calling convention `transform`: the whole object at once, at most 64 MiB.

let output: usize = 0;
let written: usize = 0;

/** Memory for the input. */
export function alloc(length: u32): usize {
  return heap.alloc(length);
}

/** Returns the place of the result in the upper, and its length in the lower half. */
export function transform(input: usize, length: u32): u64 {
  const end = input + length;
  // A replacement is longer than the shortest address by at most 5 bytes, of 3.
  output = heap.alloc(<usize>length * 3 + 16);
  written = 0;
  let at = input;
  while (at < end) {
    const stop = findAddress(at, end);
    if (stop > at) {
      copyText("[e-mail]");
      at = stop;
      continue;
    }
    // The rest of a word that is no address is copied as a whole, so that its end is not taken for one.
    do {
      store<u8>(output + written++, load<u8>(at++));
    } while (at < end && isLocal(load<u8>(at - 1)) && isLocal(load<u8>(at)));
  }
  return (<u64>output << 32) | <u64>written;
}

// The end of the address that begins here; the place itself if there is none.
function findAddress(from: usize, end: usize): usize {
  let at = from;
  while (at < end && isLocal(load<u8>(at))) at++;
  if (at == from || at == end || load<u8>(at) != 0x40) return from;
  const host = ++at;
  let dot: usize = 0;
  while (at < end && isHost(load<u8>(at))) {
    if (load<u8>(at) == 0x2e && at + 1 < end && isHost(load<u8>(at + 1))) dot = at;
    at++;
  }
  if (dot <= host) return from;
  // A sentence may end behind the address.
  while (load<u8>(at - 1) == 0x2e) at--;
  return at;
}

function isLetter(byte: u8): bool {
  const lower = byte | 32;
  return (lower >= 0x61 && lower <= 0x7a) || (byte >= 0x30 && byte <= 0x39);
}

function isLocal(byte: u8): bool {
  return isLetter(byte) || byte == 0x2e || byte == 0x5f || byte == 0x25 || byte == 0x2b || byte == 0x2d;
}

function isHost(byte: u8): bool {
  return isLetter(byte) || byte == 0x2e || byte == 0x2d;
}

function copyText(text: string): void {
  for (let index = 0; index < text.length; index++)
    store<u8>(output + written++, <u8>text.charCodeAt(index));
}
