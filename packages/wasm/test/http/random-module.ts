// Random valid modules from a seed, in the text format.

const I32_UNARY = "clz ctz popcnt eqz extend8_s extend16_s".split(" ");
const BINARY = "add sub mul and or xor shl shr_s shr_u rotl rotr div_u rem_s".split(" ");
const COMPARE = "eq ne lt_s gt_u le_s ge_u".split(" ");
const FLOAT_BINARY = "add sub mul min max".split(" ");
const DEPTH_MAX = 4;
const FUNCTIONS = 4;
/** 16 MiB: guests have no more, and one that grows beyond would have another result. */
const PAGES_MAX = 256;

/** Numbers from a seed (xorshift32). */
function createRandom(seed: number): (below: number) => number {
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state % below;
  };
}

/**
 * A module that exports `run(i32, i32) → i64` over four functions, of which each calls only later ones. Without `wild` each
 * loop ends after a few rounds; with it, loops may have no end.
 */
export function writeRandomModule(seed: number, wild: boolean): string {
  return new RandomModule(seed, wild).write();
}

class RandomModule {
  readonly #random: (below: number) => number;
  readonly #wild: boolean;
  #index = 0;

  constructor(seed: number, wild: boolean) {
    this.#random = createRandom(seed);
    this.#wild = wild;
  }

  write(): string {
    const functions: string[] = [];
    for (; this.#index < FUNCTIONS; this.#index++) functions.push(this.#function());
    return `(module
      (memory (export "memory") 2 ${PAGES_MAX})
      (global $g (mut i32) (i32.const 1))
      ${functions.join("\n")}
      (func (export "run") (param i32 i32) (result i64) (call $f0 (local.get 0) (local.get 1)))
      (func (export "handle_request") (result i64) (i64.const 1))
      (func (export "handle_response") (param i32 i32)))`;
  }

  #function(): string {
    const repeats = this.#wild && this.#random(4) === 0;
    const again = `(if ${this.#integer(1)} (then (return_call $f0 (local.get $b) (local.get $a))))`;
    return `(func $f${this.#index} (param $a i32) (param $b i32) (result i64)
      (local $c i32) (local $l i64) (local $rounds i32)
      (local.set $rounds (i32.const 7))
      ${this.#block(0)}
      ${repeats ? again : ""}
      (i64.xor (local.get $l) (i64.extend_i32_u (i32.xor (local.get $c) (global.get $g)))))`;
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#random(items.length)]!;
  }

  #integer(depth: number): string {
    const leaf = depth >= DEPTH_MAX;
    switch (this.#random(leaf ? 2 : 12)) {
      case 0:
        return `(i32.const ${this.#random(2) === 0 ? this.#random(16) : this.#random(0xffffffff)})`;
      case 1:
        return `(local.get ${this.#pick(["$a", "$b", "$c"])})`;
      case 2:
        return `(i32.${this.#pick(I32_UNARY)} ${this.#integer(depth + 1)})`;
      case 3:
      case 4:
        return `(i32.${this.#pick(BINARY)} ${this.#integer(depth + 1)} ${this.#integer(depth + 1)})`;
      case 5:
        return `(i64.${this.#pick(COMPARE)} ${this.#long(depth + 1)} ${this.#long(depth + 1)})`;
      case 6:
        return `(i32.wrap_i64 ${this.#long(depth + 1)})`;
      case 7:
        return `(i32.trunc_sat_f64_s ${this.#float(depth + 1)})`;
      case 8:
        return `(i32.load${this.#pick(["", "8_u", "16_s"])} offset=${this.#random(64)} (i32.and ${this.#integer(depth + 1)} (i32.const 0xffff)))`;
      case 9:
        return `(select ${this.#integer(depth + 1)} ${this.#integer(depth + 1)} ${this.#integer(depth + 1)})`;
      case 10:
        return `(if (result i32) ${this.#integer(depth + 1)} (then ${this.#integer(depth + 1)}) (else ${this.#integer(depth + 1)}))`;
      default:
        return this.#index + 1 < FUNCTIONS && this.#random(2) === 0
          ? `(i32.wrap_i64 (call $f${this.#index + 1 + this.#random(FUNCTIONS - this.#index - 1)} ${this.#integer(depth + 1)} ${this.#integer(depth + 1)}))`
          : `(i32x4.extract_lane ${this.#random(4)} (i32x4.add (i32x4.splat ${this.#integer(depth + 1)}) (i32x4.splat ${this.#integer(depth + 1)})))`;
    }
  }

  #long(depth: number): string {
    switch (this.#random(depth >= DEPTH_MAX ? 2 : 5)) {
      case 0:
        return `(i64.const ${this.#random(0xffffffff)})`;
      case 1:
        return `(local.get $l)`;
      case 2:
        return `(i64.extend_i32_s ${this.#integer(depth + 1)})`;
      case 3:
        return `(i64.${this.#pick(BINARY)} ${this.#long(depth + 1)} ${this.#long(depth + 1)})`;
      default:
        return `(i64.trunc_sat_f64_u ${this.#float(depth + 1)})`;
    }
  }

  #float(depth: number): string {
    switch (this.#random(depth >= DEPTH_MAX ? 1 : 3)) {
      case 0:
        return `(f64.const ${this.#random(1000)}.5)`;
      case 1:
        return `(f64.convert_i32_s ${this.#integer(depth + 1)})`;
      default:
        return `(f64.${this.#pick(FLOAT_BINARY)} ${this.#float(depth + 1)} ${this.#float(depth + 1)})`;
    }
  }

  #statement(depth: number): string {
    switch (this.#random(depth >= DEPTH_MAX ? 2 : 10)) {
      case 0:
        return `(local.set ${this.#pick(["$a", "$b", "$c"])} ${this.#integer(depth)})`;
      case 1:
        return `(local.set $l ${this.#long(depth)})`;
      case 2:
        return `(i32.store${this.#pick(["", "8", "16"])} (i32.and ${this.#integer(depth)} (i32.const 0xffff)) ${this.#integer(depth)})`;
      case 3:
        return `(if ${this.#integer(depth)} (then ${this.#block(depth + 1)}) (else ${this.#block(depth + 1)}))`;
      case 4:
        return `(block $out ${this.#block(depth + 1)} (br_if $out ${this.#integer(depth)}) ${this.#block(depth + 1)})`;
      case 5:
        return this.#loop(depth);
      case 6:
        return `(block $x (block $y (block $z (br_table $x $y $z ${this.#integer(depth)})) ${this.#block(depth + 1)}) ${this.#block(depth + 1)})`;
      case 7:
        return `(memory.${this.#pick(["fill", "copy"])} (i32.and ${this.#integer(depth)} (i32.const 0xfff)) (i32.and ${this.#integer(depth)} (i32.const 0xfff)) (i32.const ${this.#random(4_000)}))`;
      case 8:
        return `(global.set $g (i32.add (global.get $g) ${this.#integer(depth)}))`;
      default:
        return this.#random(8) === 0
          ? `(drop (memory.grow (i32.const ${this.#random(2)})))`
          : "(nop)";
    }
  }

  #loop(depth: number): string {
    const again = this.#wild
      ? `(br_if $again (i32.and ${this.#integer(depth)} (i32.const 7)))`
      : `(br_if $again (local.tee $rounds (i32.shr_u (local.get $rounds) (i32.const 1))))`;
    // All loops of a call share one counter.
    return `(loop $again ${this.#block(depth + 1)} ${again})`;
  }

  #block(depth: number): string {
    return Array.from({ length: 1 + this.#random(3) }, () => this.#statement(depth)).join("\n");
  }
}
