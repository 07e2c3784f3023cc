// Policies: who must have a second factor.
import type { Clock } from "@platform/kernel/time";
import type { AuthDatabase } from "../schema.ts";
import type { PolicyScope } from "./schema.ts";

/** A policy as the API shows it. */
export interface MfaPolicy {
  scope: PolicyScope;
  /** A group's id, a role's name, a client's id. */
  subject: string;
  required: boolean;
}

/** Policies in the database. */
export class MfaPolicies {
  readonly #database: AuthDatabase;
  readonly #clock: Clock;

  constructor(database: AuthDatabase, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  async list(): Promise<MfaPolicy[]> {
    const rows = await this.#database.db
      .selectFrom("auth_mfa_policies")
      .selectAll()
      .orderBy("scope")
      .orderBy("subject")
      .limit(1000)
      .execute();
    return rows.map(({ scope, subject, required }) => ({
      scope,
      subject,
      required: required === 1,
    }));
  }

  async put(policy: MfaPolicy): Promise<void> {
    const required = policy.required ? 1 : 0;
    await this.#database.db
      .insertInto("auth_mfa_policies")
      .values({ ...policy, required, created_at: this.#clock.now() })
      .onConflict((conflict) => conflict.columns(["scope", "subject"]).doUpdateSet({ required }))
      .execute();
  }

  /** Whether there was one. */
  async delete(scope: PolicyScope, subject: string): Promise<boolean> {
    const { numDeletedRows } = await this.#database.db
      .deleteFrom("auth_mfa_policies")
      .where("scope", "=", scope)
      .where("subject", "=", subject)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Whether the user with these roles must have a second factor to sign in to the client. */
  async requires(
    userId: string,
    roles: readonly string[],
    clientId: string | undefined,
  ): Promise<boolean> {
    const { db } = this.#database;
    const row = await db
      .selectFrom("auth_mfa_policies")
      .select("subject")
      .where("required", "=", 1)
      .where((where) =>
        where.or([
          ...(roles.length === 0
            ? []
            : [where.and([where("scope", "=", "role"), where("subject", "in", roles)])]),
          where.and([where("scope", "=", "client"), where("subject", "=", clientId ?? "")]),
          where.and([
            where("scope", "=", "group"),
            where("subject", "in", (groups) =>
              groups
                .selectFrom("auth_group_members")
                .select("group_id")
                .where("user_id", "=", userId),
            ),
          ]),
        ]),
      )
      .executeTakeFirst();
    return row !== undefined;
  }
}
