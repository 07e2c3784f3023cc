// Types of the WebAssembly JavaScript interface, which otherwise come only with the DOM types.
// (WebAssembly JavaScript Interface, section 5)
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
  class LinkError extends Error {}
}
