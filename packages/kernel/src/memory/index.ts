// Memory that is used again, and that of a process that is idle.
export { BufferPool } from "./buffer-pool.ts";
export { returnMemory } from "./memory-return.ts";
