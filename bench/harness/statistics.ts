// Medians and ranges of a few rounds.

/** Summary of one figure over several rounds. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

/** The middle value (for an even count, the mean of the two middle ones); NaN for an empty list. */
export function takeMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The value that a fraction (0–1) of the values do not exceed (nearest rank); NaN for an empty list. */
export function takePercentile(values: readonly number[], fraction: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? Number.NaN;
}

/** Median, minimum and maximum of the rounds. */
export function takeSpread(values: readonly number[]): Spread {
  return { median: takeMedian(values), min: Math.min(...values), max: Math.max(...values) };
}

/** Summary of the ratios of adjacent rounds, in which noise that affected both cancels out. */
export function takeRatioSpread(
  ours: readonly (number | undefined)[],
  theirs: readonly (number | undefined)[],
): Spread {
  const ratios: number[] = [];
  for (const [round, mine] of ours.entries()) {
    const other = theirs[round];
    if (mine !== undefined && other !== undefined && other > 0) ratios.push(mine / other);
  }
  return takeSpread(ratios);
}
