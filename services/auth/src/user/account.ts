// A user as other modules see it.
import type { UserRow } from "../database/user.ts";

/** A user without secrets. */
export interface Account {
  readonly id: string;
  readonly username: string;
  readonly email: string | undefined;
  readonly email_verified: boolean;
  readonly name: string | undefined;
  readonly picture: string | undefined;
  readonly tenant: string | undefined;
  readonly disabled: boolean;
  /** Tokens and grants issued under a lower epoch are void. */
  readonly epoch: number;
  readonly created_at: number;
}

/** Converts a row, without its secrets. */
export function toAccount(row: UserRow): Account {
  return {
    id: row.id,
    username: row.username,
    email: row.email ?? undefined,
    email_verified: row.email_verified === 1,
    name: row.name ?? undefined,
    picture: row.picture ?? undefined,
    tenant: row.tenant ?? undefined,
    disabled: row.disabled === 1,
    epoch: row.epoch,
    created_at: row.created_at,
  };
}
