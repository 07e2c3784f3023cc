// Aggregate reports (RFC 7489 appendix C): the XML document.
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { z } from "zod";

/** Mail from one source with the same results. */
interface AggregateRecord {
  sourceIp: string;
  count: number;
  disposition: "none" | "quarantine" | "reject";
  /** Aligned results. */
  dkim: "pass" | "fail";
  spf: "pass" | "fail";
}

/** An aggregate report. Times are in ms. */
export interface AggregateReport {
  orgName: string;
  reportId: string;
  beginsAt: number;
  endsAt: number;
  domain: string;
  records: AggregateRecord[];
}

const RECORDS_MAX = 10_000;
const DEPTH_MAX = 20;
const COUNT_MAX = 1_000_000_000;

const text = z.string().trim().max(255).default("");
const oneOrMany = <T extends z.ZodType>(item: T) =>
  z
    .union([z.array(item), item.transform((one) => [one])])
    .optional()
    .transform((items) => items ?? []);
const seconds = z.coerce.number().int().min(0).max(100_000_000_000);
const verdict = z
  .string()
  .optional()
  .transform((value): "pass" | "fail" => (value?.trim() === "pass" ? "pass" : "fail"));
const disposition = z
  .string()
  .trim()
  .pipe(z.enum(["none", "quarantine", "reject"]))
  .catch("none");

const feedback = z.object({
  report_metadata: z.object({
    org_name: text,
    report_id: text,
    date_range: z.object({ begin: seconds, end: seconds }),
  }),
  policy_published: z.object({ domain: z.string().trim().min(1).max(253) }),
  record: oneOrMany(
    z.object({
      row: z.object({
        source_ip: text,
        count: z.coerce.number().int().min(0).max(COUNT_MAX),
        policy_evaluated: z.object({ disposition, dkim: verdict, spf: verdict }),
      }),
    }),
  ),
});

const PARSER = new XMLParser({
  ignoreAttributes: true,
  parseTagValue: false,
  processEntities: false,
  maxNestedTags: DEPTH_MAX,
});

/** Parses a report. Throws if it is not XML, contains a document type, or lacks what a report must contain. */
export function parseAggregate(xml: string): AggregateReport {
  // Entities are not needed, and expanding them can cost any amount of memory.
  if (/<!DOCTYPE|<!ENTITY/i.test(xml)) throw new Error("the report contains a document type");
  const valid = XMLValidator.validate(xml);
  if (valid !== true) throw new Error(`not XML: ${valid.err.msg}`);
  const document = PARSER.parse(xml) as { feedback?: unknown };
  const {
    report_metadata: metadata,
    policy_published: policy,
    record,
  } = feedback.parse(document.feedback);
  if (record.length > RECORDS_MAX) throw new Error(`more than ${RECORDS_MAX} records`);
  return {
    orgName: metadata.org_name,
    reportId: metadata.report_id,
    beginsAt: metadata.date_range.begin * 1_000,
    endsAt: metadata.date_range.end * 1_000,
    domain: policy.domain.toLowerCase(),
    records: record.map(({ row }) => ({
      sourceIp: row.source_ip,
      count: row.count,
      disposition: row.policy_evaluated.disposition,
      dkim: row.policy_evaluated.dkim,
      spf: row.policy_evaluated.spf,
    })),
  };
}
