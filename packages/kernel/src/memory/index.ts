// Memory of a process that is idle.
export { returnMemory } from "./memory-return.ts";
