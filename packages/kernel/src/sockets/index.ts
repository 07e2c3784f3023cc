// Sockets below the protocols.
export { createReadShortener } from "./short-reads.ts";
export type { ReadShortener, ReadTaker } from "./short-reads.ts";
