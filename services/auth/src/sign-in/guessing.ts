// The keys that wrong passwords for an account are counted by.
import type { AuthDatabase } from "../database/schema.ts";
import type { ThrottleKey } from "../guard/throttle.ts";
import { networkOf } from "../guard/network.ts";
import { foldUsername } from "../user/username.ts";

/** Failures that cost nothing, from one network and from all of them. */
const FREE_PER_NETWORK = 10;
const FREE_IN_ALL = 100;

/**
 * The keys of an attempt. Those who guess from one network keep nobody else waiting. The bound for all networks together
 * is against guesses from many; a known device, a passkey and an emailed recovery link pass it.
 */
export function formatAccountKeys(
  username: string,
  address: string,
): { pair: ThrottleKey; account: ThrottleKey } {
  const name = foldUsername(username);
  return {
    pair: { key: `${formatPairPrefix(name)}${networkOf(address)}`, free: FREE_PER_NETWORK },
    account: { key: formatAccountKey(name), free: FREE_IN_ALL },
  };
}

/** Forgets all wrong passwords for an account: its owner has proved by other means who they are. */
export async function clearGuesses({ db }: AuthDatabase, username: string): Promise<void> {
  const name = foldUsername(username);
  const prefix = formatPairPrefix(name);
  await db
    .deleteFrom("auth_throttles")
    .where((row) =>
      row.or([
        row("key", "=", formatAccountKey(name)),
        row.and([row("key", ">", prefix), row("key", "<", `${prefix}\u{10ffff}`)]),
      ]),
    )
    .execute();
}

function formatAccountKey(name: string): string {
  return `password:account:${name}`;
}

// Usernames have no spaces.
function formatPairPrefix(name: string): string {
  return `password:network:${name} `;
}
