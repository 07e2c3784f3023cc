// Deliveries from the database whose addresses were suppressed after their messages were accepted.
import { toAddressKey } from "../address/mailbox.ts";
import { STREAMS } from "../database/message.ts";
import type { Delivery } from "../delivery.ts";
import type { Suppressions } from "../suppression/suppressions.ts";

/** Returns the deliveries whose addresses are suppressed for their stream. */
export async function findSuppressed(
  suppressions: Suppressions,
  deliveries: readonly Delivery[],
): Promise<ReadonlySet<Delivery>> {
  const found = new Set<Delivery>();
  for (const stream of STREAMS) {
    const some = deliveries.filter(({ message }) => message.stream === stream);
    if (some.length === 0) continue;
    const addresses = some.map(({ address }) => address);
    const blocked = await suppressions.find(addresses, stream);
    for (const delivery of some) {
      if (blocked.has(toAddressKey(delivery.address))) found.add(delivery);
    }
  }
  return found;
}
