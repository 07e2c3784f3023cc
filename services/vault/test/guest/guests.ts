// Modules for tests, and their registration.
import assert from "node:assert/strict";
import {
  assemble,
  assembleCommand as command,
  loopOverInput as copyLoop,
  WRITE_OUTPUT as writeOut,
} from "@platform/testing/guests";
import type { Serving } from "../serving/serving.ts";

/** Copies its input. */
export const identity = command(copyLoop(writeOut));
/** As `identity`, with other bytes. */
export const otherIdentity = command(`(nop) ${copyLoop(writeOut)}`);
/** Copies its input, then fails. */
export const failsLate = command(`${copyLoop(writeOut)} (call $exit (i32.const 4))`);
/** Writes its input to standard error, and fails. */
export const complains = command(
  `${copyLoop("(drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))")} (call $exit (i32.const 1))`,
);
/** Writes its environment: variables with a NUL behind each. */
export const environment = Buffer.from(
  assemble(`(module
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get" (func $get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 2)
    (func (export "_start")
      (drop (call $sizes (i32.const 0) (i32.const 4)))
      (drop (call $get (i32.const 16) (i32.const 16384)))
      (i32.store (i32.const 8) (i32.const 16384))
      (i32.store (i32.const 12) (i32.load (i32.const 4)))
      (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 65536)))))`),
);
/** Never ends. */
export const endless = command("(loop $forever (br $forever))");
/** Sets each byte's lowest bit of case: ASCII letters in lower case. */
export const lowerCase = Buffer.from(
  assemble(`(module
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 1024))
    (func (export "alloc") (param $length i32) (result i32)
      (local $at i32)
      (local.set $at (global.get $next))
      (global.set $next (i32.add (global.get $next) (local.get $length)))
      (local.get $at))
    (func (export "transform") (param $at i32) (param $length i32) (result i64)
      (local $index i32)
      (block $done
        (loop $next
          (br_if $done (i32.ge_u (local.get $index) (local.get $length)))
          (i32.store8 (i32.add (local.get $at) (local.get $index))
            (i32.or (i32.load8_u (i32.add (local.get $at) (local.get $index))) (i32.const 32)))
          (local.set $index (i32.add (local.get $index) (i32.const 1)))
          (br $next)))
      (i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32))
        (i64.extend_i32_u (local.get $length)))))`),
);

/** Registers a module as root. */
export async function putModule(
  { admin }: Pick<Serving, "admin">,
  name: string,
  bytes: Buffer,
): Promise<{ sha256: string; abi: string; bytes: number }> {
  const headers = { "content-type": "application/wasm" };
  const answer = await admin.send("PUT", `/admin/modules/${name}`, { body: bytes, headers });
  assert.equal(answer.status, 201, answer.text);
  return JSON.parse(answer.text) as { sha256: string; abi: string; bytes: number };
}
