// Medians and spreads of a handful of rounds.

/** What several rounds of one figure come to. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

/** The middle value (the mean of the two middle ones of an even count); NaN for none. */
export function takeMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The value that a fraction (0–1) of the values do not exceed (nearest rank); NaN for none. */
export function takePercentile(values: readonly number[], fraction: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? Number.NaN;
}

/** Median, least and greatest of the rounds. */
export function takeSpread(values: readonly number[]): Spread {
  return { median: takeMedian(values), min: Math.min(...values), max: Math.max(...values) };
}

/** The spread of the ratios of rounds that ran next to each other: noise that both saw cancels. */
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
