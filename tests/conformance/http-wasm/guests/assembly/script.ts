// Executes the script in `x-script` in handle_request, that in `x-then` in handle_response; `script.c` describes scripts.
//
//   npx asc script.ts --outFile script-as.wasm --runtime stub -O3 --use abort= --exportStart _initialize
@external("http_handler", "enable_features") declare function enable_features(features: u32): u32;
@external("http_handler", "get_config") declare function get_config(at: usize, limit: u32): u32;
@external("http_handler", "log") declare function log(level: i32, at: usize, length: u32): void;
@external("http_handler", "log_enabled") declare function log_enabled(level: i32): u32;
@external("http_handler", "get_method") declare function get_method(at: usize, limit: u32): u32;
@external("http_handler", "set_method") declare function set_method(at: usize, length: u32): void;
@external("http_handler", "get_uri") declare function get_uri(at: usize, limit: u32): u32;
@external("http_handler", "set_uri") declare function set_uri(at: usize, length: u32): void;
@external("http_handler", "get_protocol_version") declare function get_protocol_version(at: usize, limit: u32): u32;
@external("http_handler", "get_source_addr") declare function get_source_addr(at: usize, limit: u32): u32;
@external("http_handler", "get_header_names") declare function get_header_names(kind: u32, at: usize, limit: u32): u64;
@external("http_handler", "get_header_values") declare function get_header_values(kind: u32, name: usize, length: u32, at: usize, limit: u32): u64;
@external("http_handler", "set_header_value") declare function set_header_value(kind: u32, name: usize, length: u32, at: usize, size: u32): void;
@external("http_handler", "add_header_value") declare function add_header_value(kind: u32, name: usize, length: u32, at: usize, size: u32): void;
@external("http_handler", "remove_header") declare function remove_header(kind: u32, name: usize, length: u32): void;
@external("http_handler", "read_body") declare function read_body(kind: u32, at: usize, limit: u32): u64;
@external("http_handler", "write_body") declare function write_body(kind: u32, at: usize, length: u32): void;
@external("http_handler", "get_status_code") declare function get_status_code(): u32;
@external("http_handler", "set_status_code") declare function set_status_code(status: u32): void;

const SCRIPT_MAX: u32 = 8192;
const OUT_MAX: u32 = 12288;
const BUFFER_BYTES: u32 = 8192;
const SHOWN_MAX: u32 = 96;

const script = memory.data(8192);
const out = memory.data(12288);
let buffer: usize = memory.data(8192);
let outLength: u32 = 0;
let result: u64 = 1;
let seenContext: u32 = 0;
let seenError: u32 = 0;

function put(byte: u32): void {
  if (outLength < OUT_MAX) store<u8>(out + outLength++, <u8>byte);
}

function putBytes(at: usize, length: u32): void {
  for (let i: u32 = 0; i < length; i++) put(load<u8>(at + i));
}

function putNumber(number: u32): void {
  if (number >= 10) putNumber(number / 10);
  put(48 + (number % 10));
}

function give(number: u32, limit: u32): void {
  putNumber(number);
  put(91);
  const end = min(limit + 2, SHOWN_MAX);
  for (let i: u32 = 0; i < end; i++) {
    const byte = load<u8>(buffer + i);
    put(byte == 0 ? 46 : byte < 32 || byte > 126 ? 63 : byte);
  }
  put(93);
}

function givePair(pair: u64, limit: u32): void {
  putNumber(<u32>(pair >> 32));
  put(58);
  give(<u32>pair, limit);
}

function bytesOf(text: string): ArrayBuffer {
  return String.UTF8.encode(text);
}

/** The decoded words of a call, and the addresses and lengths of its arguments. */
class Call {
  at: StaticArray<usize> = new StaticArray<usize>(5);
  length: StaticArray<u32> = new StaticArray<u32>(5);
  name: string = "";

  number(index: i32): u32 {
    const length = this.length[index];
    let number: u32 = 0;
    let isNegative = false;
    for (let i: u32 = 0; i < length; i++) {
      const byte = load<u8>(this.at[index] + i);
      if (i == 0 && byte == 45) isNegative = true;
      else number = number * 10 + byte - 48;
    }
    return isNegative ? 0 - number : number;
  }
}

function digit(byte: u32): u32 {
  return byte <= 57 ? byte - 48 : (byte | 32) - 87;
}

/** Decodes %XX in place; returns the new length. */
function decode(at: usize, length: u32): u32 {
  let to: u32 = 0;
  for (let i: u32 = 0; i < length; i++) {
    let byte: u32 = load<u8>(at + i);
    if (byte == 37 && i + 2 < length) {
      byte = digit(load<u8>(at + i + 1)) * 16 + digit(load<u8>(at + i + 2));
      i += 2;
    }
    store<u8>(at + to++, <u8>byte);
  }
  return to;
}

function run(call: Call): void {
  const name = call.name;
  const a = call.number(1);
  const b = call.number(2);
  const c = call.number(3);
  const first = call.at[1];
  const firstLength = call.length[1];
  const second = call.at[2];
  const secondLength = call.length[2];
  memory.fill(buffer, 35, BUFFER_BYTES);
  putBytes(call.at[0], call.length[0]);
  put(61);
  if (name == "features") putNumber(enable_features(a));
  else if (name == "config") give(get_config(buffer, a), a);
  else if (name == "log") log(a, second, secondLength);
  else if (name == "enabled") putNumber(log_enabled(a));
  else if (name == "method") give(get_method(buffer, a), a);
  else if (name == "set_method") set_method(first, firstLength);
  else if (name == "uri") give(get_uri(buffer, a), a);
  else if (name == "set_uri") set_uri(first, firstLength);
  else if (name == "version") give(get_protocol_version(buffer, a), a);
  else if (name == "source") give(get_source_addr(buffer, a), a);
  else if (name == "names") givePair(get_header_names(a, buffer, b), b);
  else if (name == "values") givePair(get_header_values(a, second, secondLength, buffer, c), c);
  else if (name == "set") set_header_value(a, second, secondLength, call.at[3], call.length[3]);
  else if (name == "add") add_header_value(a, second, secondLength, call.at[3], call.length[3]);
  else if (name == "remove") remove_header(a, second, secondLength);
  else if (name == "read") givePair(read_body(a, buffer, b), b);
  else if (name == "write") write_body(a, second, secondLength);
  else if (name == "fill") write_body(a, buffer, b);
  else if (name == "status") putNumber(get_status_code());
  else if (name == "set_status") set_status_code(a);
  else if (name == "grow") {
    const pages = memory.grow(a);
    if (pages != -1) buffer = <usize>pages * 65536;
    put(pages == -1 ? 110 : 121);
  } else if (name == "outside") putNumber(get_method(0xfffffff0, a));
  else if (name == "next") result = (<u64>a << 32) | 1;
  else if (name == "answer") result = <u64>a << 32;
  else if (name == "raw") result = a;
  else if (name == "context") putNumber(seenContext);
  else if (name == "error") putNumber(seenError);
  else unreachable();
  put(124);
}

function runAll(field: string): void {
  const key = bytesOf(field);
  const length = <u32>(
    get_header_values(0, changetype<usize>(key), key.byteLength, script, SCRIPT_MAX)
  );
  if (length == 0 || length > SCRIPT_MAX) return;
  const call = new Call();
  let count = 0;
  let from: u32 = 0;
  for (let i: u32 = 0; i < length; i++) {
    const byte = load<u8>(script + i);
    if (byte != 32 && byte != 124 && byte != 0) continue;
    if (count < 5) {
      call.at[count] = script + from;
      call.length[count] = decode(script + from, i - from);
      count++;
    }
    from = i + 1;
    if (byte == 32) continue;
    for (let k = count; k < 5; k++) call.length[k] = 0;
    call.name = String.UTF8.decodeUnsafe(call.at[0], call.length[0]);
    run(call);
    count = 0;
    if (byte == 0) return;
  }
}

function report(): void {
  const key = bytesOf("x-out");
  set_header_value(1, changetype<usize>(key), key.byteLength, out, outLength);
}

// Each request begins with an empty heap.
const start: usize = heap.alloc(16);

export function handle_request(): u64 {
  heap.reset();
  heap.alloc(start + 16 - __heap_base);
  outLength = 0;
  result = 1;
  runAll("x-script");
  if ((result & 1) == 0) report();
  return result;
}

export function handle_response(context: u32, isError: u32): void {
  seenContext = context;
  seenError = isError;
  runAll("x-then");
  report();
}
