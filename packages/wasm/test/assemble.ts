// Modules for the tests, from their text form.
import { assemble } from "@platform/testing/guests";

/** A `transform` guest with a bump allocator; `body` is that of `transform` with `$at` and `$length`. */
export function assembleTransform(body: string, memory = "1"): Uint8Array {
  return assemble(`(module
    (memory (export "memory") ${memory})
    (global $next (mut i32) (i32.const 1024))
    (func (export "alloc") (param $length i32) (result i32)
      (local $at i32)
      (local.set $at (global.get $next))
      (global.set $next (i32.add (global.get $next) (local.get $length)))
      (block $fits
        (br_if $fits (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
        (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable)))
      (local.get $at))
    (func (export "transform") (param $at i32) (param $length i32) (result i64)
      ${body}))`);
}

/** Packs a place and a length as `transform` returns them. */
export function pack(at: string, length: string): string {
  return `(i64.or (i64.shl (i64.extend_i32_u ${at}) (i64.const 32)) (i64.extend_i32_u ${length}))`;
}

/** A `transform` guest that returns its input with each byte's lowest bit of case set: ASCII letters in lower case. */
export const lowerCase = assembleTransform(`
  (local $index i32)
  (block $done
    (loop $next
      (br_if $done (i32.ge_u (local.get $index) (local.get $length)))
      (i32.store8 (i32.add (local.get $at) (local.get $index))
        (i32.or (i32.load8_u (i32.add (local.get $at) (local.get $index))) (i32.const 32)))
      (local.set $index (i32.add (local.get $index) (i32.const 1)))
      (br $next)))
  ${pack("(local.get $at)", "(local.get $length)")}`);

/** A WASI command; `body` is that of `_start`. Standard input is read to 1024, vectors are at 0, counts at 8. */
export function assembleCommand(body: string): Uint8Array {
  return assemble(`(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open" (func $open
      (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 2)
    (func (export "_start") ${body}))`);
}

/** Reads what there is, at most 60 000 bytes, and writes it to the stream `file`. */
export function copyInputTo(file: number): string {
  return `
    (i32.store (i32.const 0) (i32.const 1024))
    (i32.store (i32.const 4) (i32.const 60000))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 4) (i32.load (i32.const 8)))
    (drop (call $write (i32.const ${file}) (i32.const 0) (i32.const 1) (i32.const 8)))`;
}
