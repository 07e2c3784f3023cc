// Throttle keys of wrong passwords.
import type { AuthDatabase } from "../database/schema.ts";
import { networkOf } from "../guard/network.ts";
import type { ThrottleKey } from "../guard/throttle.ts";
import { foldUsername } from "../user/username.ts";

/** Failures without a delay, from one network and from all networks together. */
const FREE_PER_NETWORK = 10;
const FREE_IN_ALL = 100;

/**
 * The keys of an attempt. Attackers in one network delay only that network. The limit of all networks together is
 * against distributed guessing; known devices, passkeys and recovery links bypass it.
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

/** Forgets all wrong passwords for an account after its owner has proved their identity by other means. */
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

// Usernames contain no spaces.
function formatPairPrefix(name: string): string {
  return `password:network:${name} `;
}
