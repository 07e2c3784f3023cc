// Amounts of money.
import { formatNumber } from "../format/format.ts";

/** An amount of money: `$1.25`, with more digits below a dollar. */
export function formatUsd(usd: number): string {
  return `$${formatNumber(usd, usd !== 0 && Math.abs(usd) < 1 ? 4 : 2)}`;
}
