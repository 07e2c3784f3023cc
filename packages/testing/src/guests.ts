// WebAssembly modules from their text form, and HTTP guests that import all functions of their host.
import createWabt from "wabt";

const wabt = await createWabt();

/** Extensions of the text format, also those that guests may not use. */
const FEATURES = {
  memory64: true,
  tail_call: true,
  threads: true,
  exceptions: true,
  gc: true,
  function_references: true,
  relaxed_simd: true,
};

/** The binary form of a module in the text format. */
export function assemble(text: string): Uint8Array {
  const module = wabt.parseWat("test.wat", text, FEATURES);
  try {
    return module.toBinary({}).buffer;
  } finally {
    module.destroy();
  }
}

/** A WASI command with `$read`, `$write` and `$exit`; `body` is that of `_start`. */
export function assembleCommand(body: string): Buffer {
  return Buffer.from(
    assemble(`(module
      (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 2)
      (func (export "_start") ${body}))`),
  );
}

/** Reads the input of a command in pieces, and runs `each` for each of them. */
export const loopOverInput = (each: string): string => `
  (i32.store (i32.const 0) (i32.const 1024))
  (block $end
    (loop $next
      (i32.store (i32.const 4) (i32.const 65536))
      (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (br_if $end (i32.eqz (i32.load (i32.const 8))))
      (i32.store (i32.const 4) (i32.load (i32.const 8)))
      ${each}
      (br $next)))`;

/** Writes the piece of {@link loopOverInput} to the output. */
export const WRITE_OUTPUT =
  "(drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))";

/** The imports of every function of the ABI, each under its own name. */
const HANDLER_IMPORTS = [
  ["enable_features", "(param i32) (result i32)"],
  ["get_config", "(param i32 i32) (result i32)"],
  ["log", "(param i32 i32 i32)"],
  ["log_enabled", "(param i32) (result i32)"],
  ["get_method", "(param i32 i32) (result i32)"],
  ["set_method", "(param i32 i32)"],
  ["get_uri", "(param i32 i32) (result i32)"],
  ["set_uri", "(param i32 i32)"],
  ["get_protocol_version", "(param i32 i32) (result i32)"],
  ["get_source_addr", "(param i32 i32) (result i32)"],
  ["get_header_names", "(param i32 i32 i32) (result i64)"],
  ["get_header_values", "(param i32 i32 i32 i32 i32) (result i64)"],
  ["set_header_value", "(param i32 i32 i32 i32 i32)"],
  ["add_header_value", "(param i32 i32 i32 i32 i32)"],
  ["remove_header", "(param i32 i32 i32)"],
  ["write_body", "(param i32 i32 i32)"],
  ["get_status_code", "(result i32)"],
  ["set_status_code", "(param i32)"],
] as const;

const READ_BODY = `(import "http_handler" "read_body" (func $read_body (param i32 i32 i32) (result i64)))`;

/** Parts of a guest in the text format. */
export interface GuestText {
  /** Body of `handle_request`; it leaves an i64. Default: continue. */
  request?: string;
  /** Body of `handle_response` with `$context` and `$is_error`. */
  response?: string;
  /** Further definitions. */
  more?: string;
  /** Texts that are placed in memory at these addresses, with the escapes of the text format. */
  data?: Readonly<Record<number, string>>;
  readsBody?: boolean;
  memory?: string;
}

/** A guest that imports every function but `read_body`. */
export function writeGuest(text: GuestText = {}): string {
  const { request = "(i64.const 1)", response = "", more = "", data = {}, memory = "1" } = text;
  const imports = HANDLER_IMPORTS.map(
    ([name, type]) => `(import "http_handler" "${name}" (func $${name} ${type}))`,
  );
  const texts = Object.entries(data).map(
    ([at, content]) => `(data (i32.const ${at}) "${content}")`,
  );
  return `(module
    ${imports.join("\n")}
    ${text.readsBody === true ? READ_BODY : ""}
    (memory (export "memory") ${memory})
    ${texts.join("\n")}
    ${more}
    (func (export "handle_request") (result i64) ${request})
    (func (export "handle_response") (param $context i32) (param $is_error i32) ${response}))`;
}
