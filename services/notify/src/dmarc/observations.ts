// Received mail of a day by policy domain: what aggregate reports are made of.
import { sql } from "kysely";
import type { InboundKind, InboundStatus } from "../database/inbound.ts";
import type { NotifyDatabase } from "../database/schema.ts";

/** A range of time in ms: from `beginsAt` to before `endsAt`. */
export interface ReportPeriod {
  beginsAt: number;
  endsAt: number;
}

/** Mail from one source with the same results. */
export interface Observation {
  clientAddress: string;
  count: number;
  status: InboundStatus;
  kind: InboundKind;
  dmarc: string;
  /** The policy that applied. */
  policy: string;
  isSpfAligned: boolean;
  isDkimAligned: boolean;
  fromDomain: string;
  /** True if the sender of the envelope was empty: SPF then checked the name in HELO. */
  hasNullSender: boolean;
  spf: string;
  spfDomain: string;
  signatures: { domain: string; selector: string; result: string }[];
}

/** Groups of a report; those with the fewest messages are left out. */
const OBSERVATIONS_MAX = 1_000;
const DOMAINS_MAX = 100;

/** Reads what was received. Reports about reports would never end, so mail to `dmarc-reports@` does not count. */
export class Observations {
  readonly #database: NotifyDatabase;

  constructor(database: NotifyDatabase) {
    this.#database = database;
  }

  /** Returns policy domains of a period whose report is due, at most {@link DOMAINS_MAX}. */
  async listDueDomains(period: ReportPeriod, nowMs: number): Promise<string[]> {
    const rows = await this.#select(period)
      .select("policy_domain")
      .distinct()
      .where(
        sql<boolean>`not exists (select 1 from notify_dmarc_sent s where s.begins_at = ${period.beginsAt}
          and s.domain = notify_inbound.policy_domain and (s.due_at is null or s.due_at > ${nowMs}))`,
      )
      .orderBy("policy_domain")
      .limit(DOMAINS_MAX)
      .execute();
    return rows.map(({ policy_domain: domain }) => domain);
  }

  /** Returns the mail of a policy domain in groups, the largest first. */
  async read(domain: string, period: ReportPeriod): Promise<Observation[]> {
    const columns = [
      "client_address",
      "status",
      "kind",
      "dmarc",
      "policy",
      "spf_aligned",
      "dkim_aligned",
      "from_domain",
      "spf",
      "spf_domain",
      "dkim_results",
    ] as const;
    const isNull = sql<number>`case when sender = '' then 1 else 0 end`;
    const rows = await this.#select(period)
      .select([...columns, isNull.as("null_sender"), (eb) => eb.fn.countAll<number>().as("count")])
      .where("policy_domain", "=", domain)
      .groupBy([...columns, isNull])
      .orderBy("count", "desc")
      .orderBy("client_address")
      .limit(OBSERVATIONS_MAX)
      .execute();
    return rows.map((row) => ({
      clientAddress: row.client_address,
      count: row.count,
      status: row.status,
      kind: row.kind,
      dmarc: row.dmarc,
      policy: row.policy,
      isSpfAligned: row.spf_aligned === 1,
      isDkimAligned: row.dkim_aligned === 1,
      fromDomain: row.from_domain,
      hasNullSender: row.null_sender === 1,
      spf: row.spf,
      spfDomain: row.spf_domain,
      signatures: JSON.parse(row.dkim_results) as Observation["signatures"],
    }));
  }

  #select({ beginsAt, endsAt }: ReportPeriod) {
    return this.#database.db
      .selectFrom("notify_inbound")
      .where("received_at", ">=", beginsAt)
      .where("received_at", "<", endsAt)
      .where("policy_domain", "!=", "")
      .where("from_domain", "!=", "")
      .where("dmarc", "in", ["pass", "fail"])
      .where("kind", "!=", "dmarc_report");
  }
}
