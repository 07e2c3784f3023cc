// Policies that require a second factor.
import type { Clock } from "@platform/kernel/time";
import type { PolicyScope } from "../database/factor.ts";
import type { AuthDatabase } from "../database/schema.ts";
import type { Grantor, PolicyTransaction } from "../rbac/grant.ts";
import type { PolicyStore } from "../rbac/policy-store.ts";
import type { Rbac } from "../rbac/rights.ts";
import { requireConcernedGrantable } from "../rbac/second-factor-duty.ts";

/** A policy as the API shows it. */
export interface MfaPolicy {
  scope: PolicyScope;
  /** The id of a group, the name of a role, or the id of a client. */
  subject: string;
  required: boolean;
}

/** Policies in the database. */
export class MfaPolicies {
  readonly #database: AuthDatabase;
  readonly #rbac: Rbac;
  readonly #policy: PolicyStore;
  readonly #clock: Clock;

  constructor(options: { database: AuthDatabase; rbac: Rbac; policy: PolicyStore; clock: Clock }) {
    this.#database = options.database;
    this.#rbac = options.rbac;
    this.#policy = options.policy;
    this.#clock = options.clock;
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

  /** Creates or replaces a policy. Throws 403 unless the grantor holds all permissions of the affected users. */
  put(policy: MfaPolicy, grantor: Grantor): Promise<void> {
    const required = policy.required ? 1 : 0;
    return this.#policy.change(async (trx) => {
      await requireManageable(trx, policy.scope, policy.subject, grantor);
      await trx
        .insertInto("auth_mfa_policies")
        .values({ ...policy, required, created_at: this.#clock.now() })
        .onConflict((conflict) => conflict.columns(["scope", "subject"]).doUpdateSet({ required }))
        .execute();
    });
  }

  /** Removes a policy under the same condition; false if there was none. */
  delete(scope: PolicyScope, subject: string, grantor: Grantor): Promise<boolean> {
    return this.#policy.change(async (trx) => {
      await requireManageable(trx, scope, subject, grantor);
      const { numDeletedRows } = await trx
        .deleteFrom("auth_mfa_policies")
        .where("scope", "=", scope)
        .where("subject", "=", subject)
        .executeTakeFirst();
      return numDeletedRows > 0n;
    });
  }

  /** True if the user needs a second factor to sign in to the client. */
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
    // Checked first because few installations have such a policy and reading roles takes several queries.
    if (named.size === 0) return false;
    const { roles } = await this.#rbac.findRights({ kind: "user", id: userId });
    return roles.some((role) => named.has(role));
  }
}

// Policies of clients are checked by the OAuth core, which the API asks before.
async function requireManageable(
  trx: PolicyTransaction,
  scope: PolicyScope,
  subject: string,
  grantor: Grantor,
): Promise<void> {
  if (scope !== "client")
    await requireConcernedGrantable(trx, { kind: scope, id: subject }, grantor);
}
