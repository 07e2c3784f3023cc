// Reading of bodies. A module that imports `read_body` waits for the body; the others need not.
import { buffer, limit } from "./handler";

@external("http_handler", "read_body") declare function read_body(kind: u32, at: usize, limit: u32): u64;

/** A whole body of at most 4 MiB; traps if there is more. */
export function readBody(kind: u32): Uint8Array {
  let bytes = new Uint8Array(0);
  let isAtEnd = false;
  while (!isAtEnd) {
    const got = read_body(kind, buffer, limit);
    const length = <i32>(<u32>got);
    const joined = new Uint8Array(bytes.length + length);
    memory.copy(joined.dataStart, bytes.dataStart, bytes.length);
    memory.copy(joined.dataStart + bytes.length, buffer, length);
    bytes = joined;
    assert(bytes.length <= 4194304);
    isAtEnd = got >> 32 != 0;
  }
  return bytes;
}
