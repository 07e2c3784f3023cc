// Rounds in turn, so that what disturbs the machine disturbs everybody.
import type { BenchContext } from "./case.ts";
import type { Row } from "./report.ts";

/** The figures of a round by their column's key, or why it does not count. */
export type RoundResult = Record<string, number> | string;

/**
 * Gives each entrant one round in turn until all rounds are done, and notes them in its row. `describe` says what is
 * reported of a round that counts.
 */
export async function runRounds<Entrant extends { row: Row }>(
  context: BenchContext,
  entrants: readonly Entrant[],
  measure: (entrant: Entrant) => Promise<RoundResult>,
  describe: (figures: Record<string, number>) => string,
): Promise<void> {
  for (let round = 1; round <= context.rounds; round += 1) {
    // Every other round goes backwards, so that nobody always follows the same neighbour.
    for (const entrant of round % 2 === 0 ? entrants.toReversed() : entrants) {
      const { row } = entrant;
      const result = await measure(entrant);
      const isFault = typeof result === "string";
      if (isFault) row.note = result;
      row.rounds.push(isFault ? undefined : result);
      const said = isFault ? `INVALID, ${result}` : describe(result);
      context.say(`  ${round}/${context.rounds} ${row.name}: ${said}`);
    }
  }
}
