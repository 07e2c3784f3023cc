// Policies: who must have a second factor.
import type { Clock } from "@platform/kernel/time";
import type { Rbac } from "../rbac/rights.ts";
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
  readonly #rbac: Rbac;
  readonly #clock: Clock;

  constructor(database: AuthDatabase, rbac: Rbac, clock: Clock) {
    this.#database = database;
    this.#rbac = rbac;
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

  /** Whether the user must have a second factor to sign in to the client. */
  async requires(userId: string, clientId: string | undefined): Promise<boolean> {
    const { db } = this.#database;
    const rows = await db
      .selectFrom("auth_mfa_policies")
      .select(["scope", "subject"])
      .where("required", "=", 1)
      .where((where) =>
        where.or([
          where("scope", "=", "role"),
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
      .execute();
    const named = new Set(rows.filter(({ scope }) => scope === "role").map((row) => row.subject));
    if (rows.length > named.size) return true;
    // Few have such a policy, and roles take several reads.
    if (named.size === 0) return false;
    const { roles } = await this.#rbac.findRights({ kind: "user", id: userId });
    return roles.some((role) => named.has(role));
  }
}
