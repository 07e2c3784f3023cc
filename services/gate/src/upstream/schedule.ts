// Precomputes the order of weighted targets so that a turn is one array read.

/** Maximum length of a schedule; larger weights are scaled down. */
export const TURNS_MAX = 4_096;

/**
 * Computes the turns of smooth weighted round robin: each target appears in proportion to its weight, spread evenly.
 * Entries are indices into `weights` (non-negative integers, sum above 0); targets of weight 0 do not appear.
 */
export function layOutTurns(weights: readonly number[]): Uint16Array {
  const shares = scaleWeights(weights);
  const total = shares.reduce((sum, share) => sum + share, 0);
  const credit = shares.map(() => 0);
  const turns = new Uint16Array(total);
  for (let turn = 0; turn < total; turn++) {
    let best = -1;
    for (let index = 0; index < shares.length; index++) {
      credit[index] = credit[index]! + shares[index]!;
      if (shares[index]! > 0 && (best < 0 || credit[index]! > credit[best]!)) best = index;
    }
    credit[best] = credit[best]! - total;
    turns[turn] = best;
  }
  return turns;
}

// The smallest integers in (almost) the same proportions whose sum is at most TURNS_MAX.
function scaleWeights(weights: readonly number[]): number[] {
  const divisor = weights.reduce(findCommonDivisor, 0);
  const shares = weights.map((weight) => weight / divisor);
  const total = shares.reduce((sum, share) => sum + share, 0);
  if (total <= TURNS_MAX) return shares;
  const room = TURNS_MAX - shares.length;
  return shares.map((share) => (share === 0 ? 0 : Math.max(1, Math.floor((share / total) * room))));
}

function findCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : findCommonDivisor(b, a % b);
}
