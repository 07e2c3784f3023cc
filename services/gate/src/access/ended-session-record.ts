// The stored form of ended sessions, and their merging.
import { z } from "zod";
import type { EndedSessions, EndedSessionSet } from "../shared-state/index.ts";

const NAME_CHARACTERS_MAX = 1_024;

export const endedSessionsSchema = z.array(
  z.strictObject({
    client: z.string(),
    sid: z.string().optional(),
    sub: z.string().optional(),
    endedAt: z.number(),
  }),
);

/** The entries of other gateways that end sessions which the own ones do not end. */
export function listNewEnds(
  own: Pick<EndedSessionSet, "isNews">,
  entries: readonly EndedSessions[],
): EndedSessions[] {
  return entries.filter((ended) => isEndedSession(ended) && own.isNews(ended));
}

function isEndedSession({ client, sid, sub, endedAt }: EndedSessions): boolean {
  const names = [client, sid ?? "", sub ?? ""];
  if (sid === undefined && sub === undefined) return false;
  return Number.isSafeInteger(endedAt) && names.every((name) => name.length <= NAME_CHARACTERS_MAX);
}
