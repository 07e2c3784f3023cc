// Revoked users: on disk, bounded, and merged with those of other gateways.
import type { Logger } from "@platform/kernel/log";
import { z } from "zod";
import { REVOKED_USERS_MAX, type UserRevocation } from "../shared-state/index.ts";
import type { StateFile } from "./state-file.ts";

const USER_CHARACTERS_MAX = 1_024;

export const revokedUsersSchema = z.array(
  z.strictObject({ user: z.string(), revokedAt: z.number() }),
);

/** The revoked users of a gateway. A revocation is never undone, only replaced by a later one. */
export class RevokedUsers {
  readonly #file: StateFile<UserRevocation[]>;
  readonly #log: Pick<Logger, "warn">;
  /** Seconds since 1970 by user, oldest first. */
  #times = new Map<string, number>();

  constructor(file: StateFile<UserRevocation[]>, log: Pick<Logger, "warn">) {
    this.#file = file;
    this.#log = log;
  }

  /** Seconds since 1970 by user. */
  get times(): ReadonlyMap<string, number> {
    return this.#times;
  }

  async load(): Promise<void> {
    this.#times = toMap((await this.#file.read()) ?? []);
  }

  list(): UserRevocation[] {
    return toList(this.#times);
  }

  /** Adds revocations once they are stored. */
  async add(entries: readonly UserRevocation[]): Promise<void> {
    const next = this.#extend(entries);
    await this.#file.write(toList(next));
    this.#times = next;
  }

  /** Adds revocations that apply even if they cannot be stored. */
  takeOver(entries: readonly UserRevocation[]): void {
    this.#times = this.#extend(entries);
  }

  store(): Promise<void> {
    return this.#file.write(this.list());
  }

  #extend(entries: readonly UserRevocation[]): Map<string, number> {
    const next = new Map(this.#times);
    for (const { user, revokedAt } of entries) {
      const known = next.get(user) ?? 0;
      // Deleted first: the order of a map is that of insertion, and dropping begins with the oldest.
      next.delete(user);
      next.set(user, Math.max(known, revokedAt));
    }
    for (const user of next.keys()) {
      if (next.size <= REVOKED_USERS_MAX) break;
      next.delete(user);
      this.#log.warn("there are too many revoked users: the oldest was dropped", { user });
    }
    return next;
  }
}

/** The revocations of other gateways that are later than the own ones. */
export function listNewRevocations(
  own: ReadonlyMap<string, number>,
  entries: readonly UserRevocation[],
): UserRevocation[] {
  return entries.filter(
    ({ user, revokedAt }) =>
      user.length <= USER_CHARACTERS_MAX &&
      Number.isSafeInteger(revokedAt) &&
      revokedAt > (own.get(user) ?? 0),
  );
}

function toMap(entries: readonly UserRevocation[]): Map<string, number> {
  return new Map(entries.map(({ user, revokedAt }) => [user, revokedAt]));
}

function toList(times: ReadonlyMap<string, number>): UserRevocation[] {
  return Array.from(times, ([user, revokedAt]) => ({ user, revokedAt }));
}
