// Events that may happen once per delivery, however many requests report them at the same time.
import { createHash } from "node:crypto";
import type { Transaction } from "kysely";
import type { NotifyTables } from "./schema.ts";

/** An event of a delivery. */
export interface SingleEvent {
  message_id: string;
  position: number;
  type: string;
  at: number;
  detail: string | null;
}

/** Adds an event in a transaction; false if it was recorded before. `identity` tells events of one type apart. */
export async function addEventOnce(
  trx: Transaction<NotifyTables>,
  event: SingleEvent,
  identity = "",
): Promise<boolean> {
  const hash = createHash("sha256").update(identity).digest("base64url");
  const added = await trx
    .insertInto("notify_events")
    .values({ ...event, event_key: `${event.position}/${event.type}/${hash}` })
    .onConflict((conflict) =>
      conflict.columns(["message_id", "event_key"]).where("event_key", "is not", null).doNothing(),
    )
    .returning("id")
    .execute();
  return added.length > 0;
}
