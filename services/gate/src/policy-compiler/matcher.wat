;; The fixed part of compiled policies: decides about requests by rules that follow it as data, as `filter/identity/policy.ts`
;; does. The compiler appends the data; its layout is that of `rule-data.ts`.
;;
;;   0x01000  method           0x20000  head of the data:
;;   0x02000  URI              +0 rules, +4 first rule, +8 names, +12 first name,
;;   0x0a000  path without     +16 problem, +20 its length, +24 "content-type", +28 its length,
;;            parameters       +32 media type, +36 its length
;;   0x12000  field values
;;
;;   name  +0 text, +4 length, +8 separator, +12 state (1 absent, 2 present), +16 value, +20 length
;;   rule  +0 size, +4 effect (1 deny), +5 methods, +6 pieces of the path, +8 name + 1, +12 value, +16 length,
;;         +20 methods (length, bytes), pieces (length of 2 bytes, bytes)
(module
  (import "http_handler" "get_method" (func $get_method (param i32 i32) (result i32)))
  (import "http_handler" "get_uri" (func $get_uri (param i32 i32) (result i32)))
  (import "http_handler" "get_header_values"
    (func $get_header_values (param i32 i32 i32 i32 i32) (result i64)))
  (import "http_handler" "set_header_value" (func $set_header_value (param i32 i32 i32 i32 i32)))
  (import "http_handler" "set_status_code" (func $set_status_code (param i32)))
  (import "http_handler" "write_body" (func $write_body (param i32 i32 i32)))
  (memory (export "memory") 4)
  (global $method_length (mut i32) (i32.const 0))
  ;; The end of the values that have been read.
  (global $values (mut i32) (i32.const 0x12000))

  (func $equal (param $a i32) (param $b i32) (param $length i32) (result i32)
    (block $different
      ;; Four bytes at a time.
      (block $short
        (loop $word
          (br_if $short (i32.lt_s (local.get $length) (i32.const 4)))
          (br_if $different (i32.ne (i32.load (local.get $a)) (i32.load (local.get $b))))
          (local.set $a (i32.add (local.get $a) (i32.const 4)))
          (local.set $b (i32.add (local.get $b) (i32.const 4)))
          (local.set $length (i32.sub (local.get $length) (i32.const 4)))
          (br $word)))
      (loop $next
        (if (i32.eqz (local.get $length)) (then (return (i32.const 1))))
        (br_if $different (i32.ne (i32.load8_u (local.get $a)) (i32.load8_u (local.get $b))))
        (local.set $a (i32.add (local.get $a) (i32.const 1)))
        (local.set $b (i32.add (local.get $b) (i32.const 1)))
        (local.set $length (i32.sub (local.get $length) (i32.const 1)))
        (br $next)))
    (i32.const 0))

  ;; The first address from $at on at which the piece is before $end; -1 if there is none.
  (func $find (param $at i32) (param $end i32) (param $piece i32) (param $length i32) (result i32)
    (block $absent
      (loop $next
        (br_if $absent (i32.gt_s (i32.add (local.get $at) (local.get $length)) (local.get $end)))
        (if (call $equal (local.get $at) (local.get $piece) (local.get $length))
          (then (return (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (i32.const -1))

  (func $matches_method (param $at i32) (param $count i32) (result i32)
    (local $length i32)
    (if (i32.eqz (local.get $count)) (then (return (i32.const 1))))
    (loop $next
      (local.set $length (i32.load8_u (local.get $at)))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (if (i32.eq (local.get $length) (global.get $method_length))
        (then (if (call $equal (local.get $at) (i32.const 0x1000) (local.get $length))
          (then (return (i32.const 1))))))
      ;; A rule for GET is one for HEAD as well.
      (if (i32.and
            (i32.and (i32.eq (local.get $length) (i32.const 3)) (i32.eq (global.get $method_length) (i32.const 4)))
            (i32.and
              (i32.eq (i32.load16_u (local.get $at)) (i32.const 0x4547))
              (i32.eq (i32.load (i32.const 0x1000)) (i32.const 0x44414548))))
        (then (if (i32.eq (i32.load8_u offset=2 (local.get $at)) (i32.const 0x54))
          (then (return (i32.const 1))))))
      (local.set $at (i32.add (local.get $at) (local.get $length)))
      (br_if $next (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
    (i32.const 0))

  (func $matches_path (param $piece i32) (param $count i32) (param $path i32) (param $end i32)
    (result i32)
    (local $length i32)
    (if (i32.eqz (local.get $count)) (then (return (i32.const 1))))
    (local.set $length (i32.load16_u (local.get $piece)))
    (local.set $piece (i32.add (local.get $piece) (i32.const 2)))
    (if (i32.gt_s (local.get $length) (i32.sub (local.get $end) (local.get $path)))
      (then (return (i32.const 0))))
    (if (i32.eqz (call $equal (local.get $path) (local.get $piece) (local.get $length)))
      (then (return (i32.const 0))))
    (local.set $path (i32.add (local.get $path) (local.get $length)))
    (if (i32.eq (local.get $count) (i32.const 1))
      (then (return (i32.eq (local.get $path) (local.get $end)))))
    (loop $next
      (local.set $piece (i32.add (local.get $piece) (local.get $length)))
      (local.set $length (i32.load16_u (local.get $piece)))
      (local.set $piece (i32.add (local.get $piece) (i32.const 2)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (if (i32.gt_s (local.get $count) (i32.const 1))
        (then
          (local.set $path
            (call $find (local.get $path) (local.get $end) (local.get $piece) (local.get $length)))
          (if (i32.eq (local.get $path) (i32.const -1)) (then (return (i32.const 0))))
          (local.set $path (i32.add (local.get $path) (local.get $length)))
          (br $next))))
    (if (i32.gt_s (local.get $length) (i32.sub (local.get $end) (local.get $path)))
      (then (return (i32.const 0))))
    (call $equal (i32.sub (local.get $end) (local.get $length)) (local.get $piece) (local.get $length)))

  ;; Reads the lines of a field, joined as one value. Traps if there is more than fits: a policy never fails open.
  (func $read_values (param $name i32)
    (local $got i64) (local $count i32) (local $from i32) (local $to i32) (local $at i32) (local $byte i32)
    (local.set $at (global.get $values))
    (local.set $got (call $get_header_values (i32.const 0) (i32.load (local.get $name))
      (i32.load offset=4 (local.get $name)) (local.get $at)
      (i32.sub (i32.const 0x20000) (local.get $at))))
    (local.set $count (i32.wrap_i64 (i64.shr_u (local.get $got) (i64.const 32))))
    (i32.store offset=12 (local.get $name) (i32.const 1))
    (if (i32.eqz (local.get $count)) (then (return)))
    ;; Each value ends with NUL, which becomes a separator and a space; the last one goes.
    (local.set $from (i32.add (local.get $at) (i32.sub (i32.wrap_i64 (local.get $got)) (i32.const 2))))
    (local.set $to (i32.add (local.get $from) (i32.sub (local.get $count) (i32.const 1))))
    (if (i32.ge_u (i32.add (local.get $to) (i32.const 2)) (i32.const 0x20000)) (then unreachable))
    (i32.store offset=12 (local.get $name) (i32.const 2))
    (i32.store offset=16 (local.get $name) (local.get $at))
    (i32.store offset=20 (local.get $name)
      (i32.sub (i32.add (local.get $to) (i32.const 1)) (local.get $at)))
    (global.set $values (i32.add (local.get $to) (i32.const 1)))
    (block $done
      (loop $next
        (br_if $done (i32.lt_s (local.get $from) (local.get $at)))
        (local.set $byte (i32.load8_u (local.get $from)))
        (if (local.get $byte)
          (then (i32.store8 (local.get $to) (local.get $byte)))
          (else
            (i32.store8 (local.get $to) (i32.const 0x20))
            (local.set $to (i32.sub (local.get $to) (i32.const 1)))
            (i32.store8 (local.get $to) (i32.load8_u offset=8 (local.get $name)))))
        (local.set $to (i32.sub (local.get $to) (i32.const 1)))
        (local.set $from (i32.sub (local.get $from) (i32.const 1)))
        (br $next))))

  (func $is_space (param $byte i32) (result i32)
    (i32.or
      (i32.or (i32.eq (local.get $byte) (i32.const 0x20)) (i32.eq (local.get $byte) (i32.const 0x09)))
      (i32.eq (local.get $byte) (i32.const 0xa0))))

  ;; True if one of the parts between commas, without spaces around it, is the value.
  (func $has_part (param $at i32) (param $end i32) (param $value i32) (param $length i32) (result i32)
    (local $comma i32) (local $from i32) (local $to i32)
    (loop $next
      (local.set $comma (local.get $at))
      (block $found
        (loop $scan
          (br_if $found (i32.ge_u (local.get $comma) (local.get $end)))
          (br_if $found (i32.eq (i32.load8_u (local.get $comma)) (i32.const 0x2c)))
          (local.set $comma (i32.add (local.get $comma) (i32.const 1)))
          (br $scan)))
      (local.set $from (local.get $at))
      (local.set $to (local.get $comma))
      (block $trimmed
        (loop $trim
          (br_if $trimmed (i32.ge_u (local.get $from) (local.get $to)))
          (br_if $trimmed (i32.eqz (call $is_space (i32.load8_u (local.get $from)))))
          (local.set $from (i32.add (local.get $from) (i32.const 1)))
          (br $trim)))
      (block $trimmed
        (loop $trim
          (br_if $trimmed (i32.ge_u (local.get $from) (local.get $to)))
          (br_if $trimmed
            (i32.eqz (call $is_space (i32.load8_u (i32.sub (local.get $to) (i32.const 1))))))
          (local.set $to (i32.sub (local.get $to) (i32.const 1)))
          (br $trim)))
      (if (i32.eq (i32.sub (local.get $to) (local.get $from)) (local.get $length))
        (then (if (call $equal (local.get $from) (local.get $value) (local.get $length))
          (then (return (i32.const 1))))))
      (local.set $at (i32.add (local.get $comma) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $comma) (local.get $end))))
    (i32.const 0))

  (func $matches_field (param $rule i32) (result i32)
    (local $name i32) (local $at i32) (local $length i32)
    (local.set $name (i32.load offset=8 (local.get $rule)))
    (if (i32.eqz (local.get $name)) (then (return (i32.const 1))))
    (local.set $name (i32.add (i32.load (i32.const 0x2000c))
      (i32.mul (i32.sub (local.get $name) (i32.const 1)) (i32.const 24))))
    (if (i32.eqz (i32.load offset=12 (local.get $name))) (then (call $read_values (local.get $name))))
    (if (i32.eq (i32.load offset=12 (local.get $name)) (i32.const 1)) (then (return (i32.const 0))))
    (local.set $at (i32.load offset=16 (local.get $name)))
    (local.set $length (i32.load offset=20 (local.get $name)))
    (if (i32.eq (local.get $length) (i32.load offset=16 (local.get $rule)))
      (then (if (call $equal (local.get $at) (i32.load offset=12 (local.get $rule)) (local.get $length))
        (then (return (i32.const 1))))))
    (if (i32.eqz (i32.load8_u offset=4 (local.get $rule))) (then (return (i32.const 0))))
    (call $has_part (local.get $at) (i32.add (local.get $at) (local.get $length))
      (i32.load offset=12 (local.get $rule)) (i32.load offset=16 (local.get $rule))))

  ;; True if the first rule that matches denies the path.
  (func $denies (param $path i32) (param $end i32) (result i32)
    (local $rule i32) (local $left i32) (local $at i32) (local $methods i32)
    (local.set $rule (i32.load (i32.const 0x20004)))
    (local.set $left (i32.load (i32.const 0x20000)))
    (block $none
      (loop $next
        (br_if $none (i32.eqz (local.get $left)))
        (local.set $at (i32.add (local.get $rule) (i32.const 20)))
        (local.set $methods (i32.load8_u offset=5 (local.get $rule)))
        (block $differs
          (br_if $differs
            (i32.eqz (call $matches_method (local.get $at) (local.get $methods))))
          (block $passed
            (loop $pass
              (br_if $passed (i32.eqz (local.get $methods)))
              (local.set $at
                (i32.add (local.get $at) (i32.add (i32.load8_u (local.get $at)) (i32.const 1))))
              (local.set $methods (i32.sub (local.get $methods) (i32.const 1)))
              (br $pass)))
          (br_if $differs
            (i32.eqz (call $matches_path (local.get $at) (i32.load16_u offset=6 (local.get $rule))
              (local.get $path) (local.get $end))))
          (br_if $differs (i32.eqz (call $matches_field (local.get $rule))))
          (return (i32.load8_u offset=4 (local.get $rule))))
        (local.set $rule (i32.add (local.get $rule) (i32.load (local.get $rule))))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br $next)))
    (i32.const 0))

  ;; Writes the path without segment parameters and the empty segments that they leave. The result is its end.
  (func $strip (param $at i32) (param $end i32) (result i32)
    (local $to i32) (local $byte i32) (local $skips i32)
    (local.set $to (i32.const 0xa000))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (if (i32.eq (local.get $byte) (i32.const 0x3b)) (then (local.set $skips (i32.const 1))))
        (if (i32.eq (local.get $byte) (i32.const 0x2f))
          (then
            (local.set $skips (i32.const 0))
            (if (i32.gt_u (local.get $to) (i32.const 0xa000))
              (then (br_if $next
                (i32.eq (i32.load8_u (i32.sub (local.get $to) (i32.const 1))) (i32.const 0x2f)))))))
        (br_if $next (local.get $skips))
        (i32.store8 (local.get $to) (local.get $byte))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br $next)))
    (local.get $to))

  (func $read_request (result i32)
    (local $length i32) (local $at i32) (local $byte i32)
    (global.set $method_length (call $get_method (i32.const 0x1000) (i32.const 0x1000)))
    (if (i32.gt_u (global.get $method_length) (i32.const 0x1000)) (then unreachable))
    (local.set $at (i32.const 0x1000))
    (block $upper
      (loop $next
        (br_if $upper
          (i32.ge_u (local.get $at) (i32.add (i32.const 0x1000) (global.get $method_length))))
        (local.set $byte (i32.load8_u (local.get $at)))
        (if (i32.lt_u (i32.sub (local.get $byte) (i32.const 0x61)) (i32.const 26))
          (then (i32.store8 (local.get $at) (i32.sub (local.get $byte) (i32.const 0x20)))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (local.set $length (call $get_uri (i32.const 0x2000) (i32.const 0x8000)))
    (if (i32.gt_u (local.get $length) (i32.const 0x8000)) (then unreachable))
    ;; The path ends before the query.
    (local.set $at (i32.const 0x2000))
    (block $ended
      (loop $next
        (br_if $ended (i32.ge_u (local.get $at) (i32.add (i32.const 0x2000) (local.get $length))))
        (br_if $ended (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x3f)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (local.get $at))

  (func $forget_values
    (local $name i32) (local $left i32)
    (global.set $values (i32.const 0x12000))
    (local.set $name (i32.load (i32.const 0x2000c)))
    (local.set $left (i32.load (i32.const 0x20008)))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $left)))
        (i32.store offset=12 (local.get $name) (i32.const 0))
        (local.set $name (i32.add (local.get $name) (i32.const 24)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br $next))))

  (func $refuse (result i64)
    (call $set_status_code (i32.const 403))
    (call $set_header_value (i32.const 1) (i32.load (i32.const 0x20018)) (i32.load (i32.const 0x2001c))
      (i32.load (i32.const 0x20020)) (i32.load (i32.const 0x20024)))
    (call $write_body (i32.const 1) (i32.load (i32.const 0x20010)) (i32.load (i32.const 0x20014)))
    (i64.const 0))

  (func (export "handle_request") (result i64)
    (local $end i32)
    (call $forget_values)
    (local.set $end (call $read_request))
    (if (call $denies (i32.const 0x2000) (local.get $end)) (then (return (call $refuse))))
    (if (i32.ne (call $find (i32.const 0x2000) (local.get $end) (i32.const 0x20028) (i32.const 1)) (i32.const -1))
      (then
        (if (call $denies (i32.const 0xa000) (call $strip (i32.const 0x2000) (local.get $end)))
          (then (return (call $refuse))))))
    (i64.const 1))

  (func (export "handle_response") (param i32 i32)))
