// Types of the WebAssembly JavaScript interface, which otherwise come only with the DOM types.
// (WebAssembly JavaScript Interface, section 5; JavaScript Promise Integration)
declare namespace WebAssembly {
  interface Module {
    readonly [Symbol.toStringTag]: "WebAssembly.Module";
  }
  const Module: new (bytes: Uint8Array<ArrayBuffer>) => Module;
  type Exports = Record<string, unknown>;
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, unknown>>);
    readonly exports: Exports;
  }
  class Memory<Bytes extends ArrayBufferLike = ArrayBuffer> {
    /** Sizes in pages of 64 KiB. */
    constructor(descriptor: { initial: number; maximum: number; shared: true });
    readonly buffer: Bytes;
  }
  /** A global of type i32. */
  class Global {
    private constructor();
    value: number;
  }
  class LinkError extends Error {}
  class RuntimeError extends Error {}
  /** An imported function whose promise suspends the guest that called it. */
  const Suspending: new (work: (...args: never[]) => unknown) => object;
  /** An exported function that may be suspended. */
  function promising<Args extends unknown[], Result>(
    work: (...args: Args) => Result,
  ): (...args: Args) => Promise<Result>;
}
