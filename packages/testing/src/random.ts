// Random numbers that are the same in each run.

/** Returns numbers from 0 (inclusive) to 1: a linear congruential generator. */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
