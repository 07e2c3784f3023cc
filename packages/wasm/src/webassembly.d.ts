// The part of the WebAssembly JavaScript interface that guests need; its types come with a browser's otherwise.
// (WebAssembly JavaScript Interface, section 5)
declare namespace WebAssembly {
  type Module = { readonly [Symbol.toStringTag]: "WebAssembly.Module" };
  const Module: new (bytes: Uint8Array<ArrayBuffer>) => Module;
  type Exports = Record<string, unknown>;
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, unknown>>);
    readonly exports: Exports;
  }
  class Memory {
    readonly buffer: ArrayBuffer;
  }
  class LinkError extends Error {}
}
