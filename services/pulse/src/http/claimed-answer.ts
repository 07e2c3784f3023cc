// Answers made of what is read from the log: claimed before they are read, and counted until the client has them.
import type { ServerResponse } from "node:http";
import { createRetryLaterError } from "@platform/kernel/errors";
import { findOutflow, JsonText } from "@platform/kernel/http";
import type { Outflow } from "@platform/kernel/sockets";

/** Answers below this are not counted between reading and writing. */
const smallBytes = 64 * 1024;

/** Result of a read: the JSON text of the answer, or how many bytes it takes to read all of it. */
export type ClaimedRead = { body: string } | { neededBytes: number };

/**
 * Answers with JSON that `read` makes of records. What it may read, `bytesMax` at most, is claimed first, in turn where clients
 * have too much to read already: throws `overloaded` when there was no room for 30 s. `read` gets the bytes that were claimed,
 * up to a quarter of the budget at first; where it tells that they are too few, it is called once more with enough.
 */
export async function answerWithClaim(
  response: ServerResponse | undefined,
  bytesMax: number,
  read: (claimedBytes: number) => Promise<ClaimedRead>,
): Promise<JsonText> {
  const outflow = findOutflow(response?.socket);
  const first = await readOnce(
    outflow,
    Math.min(bytesMax, outflow?.guessBytesMax ?? bytesMax),
    read,
  );
  const last = "body" in first ? first : await readOnce(outflow, first.neededBytes, read);
  if (!("body" in last)) throw new Error("An answer needs more than it said");
  return new JsonText(last.body);
}

async function readOnce(
  outflow: Outflow | undefined,
  claimedBytes: number,
  read: (claimedBytes: number) => Promise<ClaimedRead>,
): Promise<ClaimedRead> {
  if (outflow === undefined) return read(claimedBytes);
  if (!outflow.claim(claimedBytes)) await claimInTurn(outflow, claimedBytes);
  let keptBytes = 0;
  try {
    const found = await read(claimedBytes);
    if ("body" in found && found.body.length >= smallBytes) keptBytes = found.body.length;
    return found;
  } finally {
    outflow.unclaim(claimedBytes);
    outflow.addClaim(keptBytes);
    // It counts until it is written, which is next.
    outflow.unclaim(keptBytes);
  }
}

async function claimInTurn(outflow: Outflow, bytes: number): Promise<void> {
  const isClaimed = await new Promise<boolean>((resolve) => {
    outflow.claimWhenRoom(bytes, resolve);
  });
  if (isClaimed) return;
  throw createRetryLaterError("overloaded", "Too many clients read their answers too slowly.", 1);
}
