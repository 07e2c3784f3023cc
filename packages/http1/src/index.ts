// The package's door: what users of the engine may import.
export * from "./parse/index.ts";
export * from "./write/index.ts";
