// Choices of moments in recorded runs, and the program that records them.
import type { Effect } from "./recording.ts";

/** The system calls that are recorded. */
export const CALLS = "openat,close,write,pwrite64,pwritev,ftruncate,fsync,fdatasync,rename,unlink";

/** The effect that says that the store is open. */
export function findReady(effects: readonly Effect[]): number {
  return effects.findIndex(({ type }) => type === "said");
}

/** A random moment after that. */
export function chooseEnd(effects: readonly Effect[], random: () => number): number {
  const ready = findReady(effects);
  return ready + 1 + Math.floor(random() * (effects.length - ready - 1));
}

/** Numbers from 0 up to 1 that a seed determines. */
export function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
