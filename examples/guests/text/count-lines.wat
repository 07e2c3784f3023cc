;; Counts the newlines of standard input, and writes the number as decimal text.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "_start")
    (local $lines i64) (local $at i32) (local $end i32)
    (i32.store (i32.const 0) (i32.const 1024))
    (block $done
      (loop $more
        (i32.store (i32.const 4) (i32.const 65536))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (br_if $done (i32.eqz (i32.load (i32.const 8))))
        (local.set $at (i32.const 1024))
        (local.set $end (i32.add (i32.const 1024) (i32.load (i32.const 8))))
        (loop $next
          (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 10))
            (then (local.set $lines (i64.add (local.get $lines) (i64.const 1)))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
        (br $more)))
    ;; The digits, from the last one on, before a newline.
    (local.set $at (i32.const 1000))
    (i32.store8 (local.get $at) (i32.const 10))
    (loop $digit
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at)
        (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $lines) (i64.const 10)))))
      (local.set $lines (i64.div_u (local.get $lines) (i64.const 10)))
      (br_if $digit (i64.ne (local.get $lines) (i64.const 0))))
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (i32.sub (i32.const 1001) (local.get $at)))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
