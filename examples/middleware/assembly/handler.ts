// Binding of the http-wasm handler ABI for AssemblyScript: strings in, strings out.
@external("http_handler", "get_config") declare function get_config(at: usize, limit: u32): u32;
@external("http_handler", "enable_features") declare function enable_features(bits: u32): u32;
@external("http_handler", "get_method") declare function get_method(at: usize, limit: u32): u32;
@external("http_handler", "get_uri") declare function get_uri(at: usize, limit: u32): u32;
@external("http_handler", "get_header_values") declare function get_header_values(kind: u32, name: usize, nameLength: u32, at: usize, limit: u32): u64;
@external("http_handler", "set_header_value") declare function set_header_value(kind: u32, name: usize, nameLength: u32, value: usize, length: u32): void;
@external("http_handler", "add_header_value") declare function add_header_value(kind: u32, name: usize, nameLength: u32, value: usize, length: u32): void;
@external("http_handler", "remove_header") declare function remove_header(kind: u32, name: usize, nameLength: u32): void;
@external("http_handler", "write_body") declare function write_body(kind: u32, at: usize, length: u32): void;
@external("http_handler", "set_status_code") declare function set_status_code(status: u32): void;

export const REQUEST: u32 = 0;
export const RESPONSE: u32 = 1;
export const BUFFER_RESPONSE: u32 = 2;

const SIZE: u32 = 65536;
export const buffer: usize = heap.alloc(SIZE);
export const limit: u32 = SIZE;

// Each call begins with an empty heap: nothing is kept from one request for the next.
const start: usize = heap.alloc(16);
export function reset(): void {
  heap.reset();
  heap.alloc(start + 16 - __heap_base);
}

function text(length: u32): string {
  return length > SIZE ? "" : String.UTF8.decodeUnsafe(buffer, length);
}

export function config(): string { return text(get_config(buffer, SIZE)); }
export function method(): string { return text(get_method(buffer, SIZE)); }
export function uri(): string { return text(get_uri(buffer, SIZE)); }
export function enable(bits: u32): void { enable_features(bits); }
export function status(code: u32): void { set_status_code(code); }

/** The first value of a field, "" without one. */
export function field(kind: u32, name: string): string {
  const key = String.UTF8.encode(name);
  const got = get_header_values(kind, changetype<usize>(key), key.byteLength, buffer, SIZE);
  const length = <u32>got;
  if (got == 0 || length > SIZE) return "";
  let end: u32 = 0;
  while (end < length && load<u8>(buffer + end) != 0) end++;
  return String.UTF8.decodeUnsafe(buffer, end);
}

export function setField(kind: u32, name: string, value: string): void {
  const key = String.UTF8.encode(name);
  const bytes = String.UTF8.encode(value);
  set_header_value(kind, changetype<usize>(key), key.byteLength, changetype<usize>(bytes), bytes.byteLength);
}

export function addField(kind: u32, name: string, value: string): void {
  const key = String.UTF8.encode(name);
  const bytes = String.UTF8.encode(value);
  add_header_value(kind, changetype<usize>(key), key.byteLength, changetype<usize>(bytes), bytes.byteLength);
}

export function removeField(kind: u32, name: string): void {
  const key = String.UTF8.encode(name);
  remove_header(kind, changetype<usize>(key), key.byteLength);
}

export function writeText(kind: u32, value: string): void {
  const bytes = String.UTF8.encode(value);
  write_body(kind, changetype<usize>(bytes), bytes.byteLength);
}

export function writeBytes(kind: u32, at: usize, length: u32): void {
  write_body(kind, at, length);
}
