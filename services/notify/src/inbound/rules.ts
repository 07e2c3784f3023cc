// Rules for inbound mail, with a copy in memory for the recipient check.
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import type { InboundRuleRow } from "../database/inbound.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import type { SigningSecrets } from "../webhook/signing-secrets.ts";
import { matchesPattern } from "./pattern.ts";

/** Options of {@link InboundRules}. */
export interface InboundRulesOptions {
  database: NotifyDatabase;
  clock: Clock;
  ids: IdSource;
  secrets: SigningSecrets;
}

/** Fields of a rule that its creator chooses. */
export type RuleFields = Pick<InboundRuleRow, "name" | "pattern" | "forward_to" | "priority">;

/** Maximum number of rules; each recipient is compared with all of them. */
const RULES_MAX = 1_000;

export class InboundRules {
  readonly #options: InboundRulesOptions;
  #rules: readonly InboundRuleRow[] = [];

  constructor(options: InboundRulesOptions) {
    this.#options = options;
  }

  /** All rules, in the order in which they are tried. */
  get all(): readonly InboundRuleRow[] {
    return this.#rules;
  }

  /** Reads the rules, which other nodes may have changed. */
  async load(): Promise<void> {
    this.#rules = await this.#options.database.db
      .selectFrom("notify_inbound_rules")
      .selectAll()
      .orderBy("priority", "desc")
      .orderBy("created_at")
      .orderBy("id")
      .execute();
  }

  /** Returns all rules that match an address in lower case, in their order. */
  matchAll(address: string): InboundRuleRow[] {
    return this.#rules.filter(({ pattern }) => matchesPattern(pattern, address));
  }

  /** Returns the first rule that matches an address in lower case. */
  match(address: string): InboundRuleRow | undefined {
    return this.#rules.find(({ pattern }) => matchesPattern(pattern, address));
  }

  /** Returns a rule; throws `not_found`. */
  get(id: string): InboundRuleRow {
    const rule = this.#rules.find((one) => one.id === id);
    if (rule === undefined) throw new PlatformError("not_found", "There is no such rule.");
    return rule;
  }

  /** Returns the secrets that sign requests of a rule now. */
  listSecrets(rule: InboundRuleRow): string[] {
    return this.#options.secrets.list(rule);
  }

  /** Creates a rule; its secret is shown only now. Throws `conflict` if there are too many. */
  async create(fields: RuleFields): Promise<{ id: string; secret: string }> {
    const { database, clock, ids, secrets } = this.#options;
    if (this.#rules.length >= RULES_MAX) {
      throw new PlatformError("conflict", `At most ${RULES_MAX} inbound rules are allowed.`);
    }
    const id = ids.uuid();
    const { secret, columns } = secrets.create(id);
    const rule: InboundRuleRow = { ...fields, id, ...columns, created_at: clock.now() };
    await database.db.insertInto("notify_inbound_rules").values(rule).execute();
    await this.load();
    return { id, secret };
  }

  /**
   * Replaces the fields of a rule; throws `not_found`, and `precondition_failed` if they are not those of `expected` any
   * more.
   */
  async update(id: string, fields: RuleFields, expected?: RuleFields): Promise<InboundRuleRow> {
    await this.#set(id, fields, expected);
    return this.get(id);
  }

  /** Replaces the secret of a rule; the previous one also signs for 24 h. Throws `not_found`. */
  async rotateSecret(id: string): Promise<{ id: string; secret: string }> {
    const { secret, columns } = this.#options.secrets.rotate(this.get(id));
    await this.#set(id, columns);
    return { id, secret };
  }

  /** Deletes a rule and fails its pending forwards; throws `not_found`. */
  async remove(id: string): Promise<void> {
    const { database, clock } = this.#options;
    await this.load();
    this.get(id);
    await database.transaction(async (trx) => {
      await trx.deleteFrom("notify_inbound_rules").where("id", "=", id).execute();
      await trx
        .updateTable("notify_inbound_forwards")
        .set({
          status: "failed",
          due_at: null,
          detail: "the rule was deleted",
          updated_at: clock.now(),
        })
        .where("rule_id", "=", id)
        .where("due_at", "is not", null)
        .execute();
    });
    await this.load();
  }

  async #set(id: string, values: Partial<InboundRuleRow>, expected?: RuleFields): Promise<void> {
    let query = this.#options.database.db
      .updateTable("notify_inbound_rules")
      .set(values)
      .where("id", "=", id);
    if (expected !== undefined) {
      query = query
        .where("name", "=", expected.name)
        .where("pattern", "=", expected.pattern)
        .where("forward_to", "=", expected.forward_to)
        .where("priority", "=", expected.priority);
    }
    const { numUpdatedRows } = await query.executeTakeFirst();
    await this.load();
    if (numUpdatedRows > 0n) return;
    this.get(id);
    throw new PlatformError("precondition_failed", "The rule has changed; read it again.");
  }
}
