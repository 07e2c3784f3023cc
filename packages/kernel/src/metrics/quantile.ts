// Quantiles of histograms.

/**
 * Estimates a quantile by linear interpolation between the bounds of its bucket, in the unit of the bounds; NaN without
 * observations. `counts` are not cumulative; values above the last bound count as that bound.
 */
export function estimateQuantile(
  bounds: readonly number[],
  counts: readonly number[],
  quantile: number,
): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= 0) return Number.NaN;
  const wanted = quantile * total;
  let below = 0;
  for (const [index, count] of counts.entries()) {
    const upper = bounds[index];
    if (upper === undefined) break;
    if (below + count >= wanted && count > 0) {
      const lower = bounds[index - 1] ?? 0;
      return lower + (upper - lower) * ((wanted - below) / count);
    }
    below += count;
  }
  return bounds.at(-1) ?? Number.NaN;
}
