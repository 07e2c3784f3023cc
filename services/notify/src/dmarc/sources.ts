// Aggregate reports by source: the hosts that send in the name of the domains.
import type { NotifyDatabase } from "../database/schema.ts";

/** Figures of a source in a period. */
export interface DmarcSource {
  source_ip: string;
  total_messages: number;
  /** Messages for which SPF or DKIM passed and was aligned. */
  aligned: number;
  spf: { pass: number; fail: number };
  dkim: { pass: number; fail: number };
  dispositions: { none: number; quarantine: number; reject: number };
  /** Domains in whose name it sent, and receivers that reported it; each at most 20. */
  domains: string[];
  reporters: string[];
}

/** Filter of sources. */
export interface SourceQuery {
  fromMs: number;
  toMs: number;
  source?: string | undefined;
  domain?: string | undefined;
}

/** Sources of a period, those with most messages first. */
export interface DmarcSources {
  sources: DmarcSource[];
  /** True if the period has more reports or sources than are summed. */
  isCut: boolean;
}

interface StoredRecord {
  source_ip: string;
  count: number;
  disposition: "none" | "quarantine" | "reject";
  spf: "pass" | "fail";
  dkim: "pass" | "fail";
}

const REPORTS_MAX = 10_000;
const REPORTS_READ = 100;
const SOURCES_MAX = 10_000;
const NAMES_MAX = 20;

/** Sums the reports of a period by source. A report keeps its 500 largest sources. */
export async function sumSources(
  database: NotifyDatabase,
  { fromMs, toMs, source, domain }: SourceQuery,
): Promise<DmarcSources> {
  const found = new Map<string, DmarcSource>();
  let isCut = false;
  for (let offset = 0; ; offset += REPORTS_READ) {
    if (offset >= REPORTS_MAX) {
      isCut = true;
      break;
    }
    let query = database.db
      .selectFrom("notify_dmarc_reports")
      .select(["domain", "org_name", "records"])
      .where("begins_at", ">=", fromMs)
      .where("begins_at", "<", toMs);
    if (domain !== undefined) query = query.where("domain", "=", domain);
    const rows = await query
      .orderBy("begins_at", "desc")
      .orderBy("org_name")
      .orderBy("report_id")
      .orderBy("domain")
      .offset(offset)
      .limit(REPORTS_READ)
      .execute();
    for (const row of rows) {
      for (const record of JSON.parse(row.records) as StoredRecord[]) {
        if (source !== undefined && record.source_ip !== source) continue;
        const known = found.get(record.source_ip);
        if (known === undefined && found.size >= SOURCES_MAX) {
          isCut = true;
          continue;
        }
        const sum = known ?? createSource(record.source_ip);
        if (known === undefined) found.set(record.source_ip, sum);
        add(sum, record, row);
      }
    }
    if (rows.length < REPORTS_READ) break;
  }
  const sources = [...found.values()].sort(compareSources);
  return { sources, isCut };
}

/** Order of sources: most messages first, then by address. */
export function compareSources(
  a: Pick<DmarcSource, "source_ip" | "total_messages">,
  b: Pick<DmarcSource, "source_ip" | "total_messages">,
): number {
  if (a.total_messages !== b.total_messages) return b.total_messages - a.total_messages;
  return a.source_ip < b.source_ip ? -1 : a.source_ip > b.source_ip ? 1 : 0;
}

function createSource(address: string): DmarcSource {
  return {
    source_ip: address,
    total_messages: 0,
    aligned: 0,
    spf: { pass: 0, fail: 0 },
    dkim: { pass: 0, fail: 0 },
    dispositions: { none: 0, quarantine: 0, reject: 0 },
    domains: [],
    reporters: [],
  };
}

function add(
  sum: DmarcSource,
  { count, disposition, spf, dkim }: StoredRecord,
  report: { domain: string; org_name: string },
): void {
  sum.total_messages += count;
  if (spf === "pass" || dkim === "pass") sum.aligned += count;
  sum.spf[spf] += count;
  sum.dkim[dkim] += count;
  sum.dispositions[disposition] += count;
  for (const [names, name] of [
    [sum.domains, report.domain],
    [sum.reporters, report.org_name],
  ] as const) {
    if (!names.includes(name) && names.length < NAMES_MAX) names.push(name);
  }
}
