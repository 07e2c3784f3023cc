// Alternates the rounds of all contenders, so that disturbances of the machine affect all of them.
import type { BenchContext } from "./case.ts";
import type { Row } from "./report.ts";

/** The figures of a round by column key, or a message why the round is invalid. */
export type RoundResult = Record<string, number> | string;

/**
 * Runs all rounds, each with one measurement per entrant, and records them in the entrants' rows. `describe` formats the
 * progress line of a valid round.
 */
export async function runRounds<Entrant extends { row: Row }>(
  context: BenchContext,
  entrants: readonly Entrant[],
  measure: (entrant: Entrant) => Promise<RoundResult>,
  describe: (figures: Record<string, number>) => string,
): Promise<void> {
  for (let round = 1; round <= context.rounds; round += 1) {
    // Every other round is in reverse order, so that no entrant always follows the same one.
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
