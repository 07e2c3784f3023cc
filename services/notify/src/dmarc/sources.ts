// Aggregate reports by source: the hosts that send in the name of the domains.
import { z } from "zod";
import type { NotifyDatabase } from "../database/schema.ts";

const checks = z.object({ pass: z.int(), fail: z.int() });

/** Figures of a source in a period, for the API. */
export const dmarcSource = z.object({
  source_ip: z.string(),
  total_messages: z.int(),
  aligned: z.int().describe("Messages for which SPF or DKIM passed and was aligned"),
  spf: checks,
  dkim: checks,
  dispositions: z.object({ none: z.int(), quarantine: z.int(), reject: z.int() }),
  domains: z.array(z.string()).describe("Domains in whose name it sent, at most 20"),
  reporters: z.array(z.string()).describe("Receivers that reported it, at most 20"),
});

/** Figures of a source in a period. */
export type DmarcSource = z.infer<typeof dmarcSource>;

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

const passOrFail = z.enum(["pass", "fail"]);

/** A source of a stored report, for the API. */
export const storedRecord = z.object({
  source_ip: z.string(),
  count: z.int(),
  disposition: z.enum(["none", "quarantine", "reject"]),
  spf: passOrFail,
  dkim: passOrFail,
});

/** A source of a stored report. */
export type StoredRecord = z.infer<typeof storedRecord>;

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
