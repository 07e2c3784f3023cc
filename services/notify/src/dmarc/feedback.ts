// Aggregate reports about other domains: the XML document (RFC 7489 appendix C), its file name and subject.
import { createHash } from "node:crypto";
import type { Observation, ReportPeriod } from "./observations.ts";
import type { PolicyRecord } from "./policy-record.ts";

/** Facts of a report. */
export interface FeedbackOptions extends ReportPeriod {
  /** Domain of this service, and its address for questions. */
  orgName: string;
  email: string;
  /** Domain that the report is about. */
  domain: string;
  record: PolicyRecord;
  observations: readonly Observation[];
}

/** A report. */
export interface Feedback {
  reportId: string;
  xml: string;
  filename: string;
  subject: string;
}

const ID_CHARACTERS = 24;
const DKIM_RESULTS = new Set([
  "none",
  "pass",
  "fail",
  "policy",
  "neutral",
  "temperror",
  "permerror",
]);
const SPF_RESULTS = new Set([
  "none",
  "neutral",
  "pass",
  "fail",
  "softfail",
  "temperror",
  "permerror",
]);
const DISPOSITIONS = { accepted: "none", quarantined: "quarantine", rejected: "reject" } as const;

/** Creates the report. The same facts have the same report id. */
export function createFeedback(options: FeedbackOptions): Feedback {
  const { orgName, domain, beginsAt, endsAt } = options;
  const [begin, end] = [Math.floor(beginsAt / 1_000), Math.floor(endsAt / 1_000) - 1];
  const hash = createHash("sha256").update(`${orgName}\n${domain}\n${begin}`).digest("hex");
  const reportId = hash.slice(0, ID_CHARACTERS);
  return {
    reportId,
    xml: formatDocument(options, reportId, begin, end),
    // RFC 7489 section 7.2.1.1.
    filename: `${orgName}!${domain}!${begin}!${end}.xml.gz`,
    subject: `Report Domain: ${domain} Submitter: ${orgName} Report-ID: <${reportId}@${orgName}>`,
  };
}

function formatDocument(
  { orgName, email, domain, record, observations }: FeedbackOptions,
  reportId: string,
  begin: number,
  end: number,
): string {
  const range = tag("date_range", field("begin", begin) + field("end", end));
  const metadata =
    field("org_name", orgName) + field("email", email) + field("report_id", reportId) + range;
  const { adkim, aspf, p, sp, pct, fo } = record;
  const policy =
    field("domain", domain) +
    field("adkim", adkim) +
    field("aspf", aspf) +
    field("p", p) +
    field("sp", sp) +
    field("pct", pct) +
    field("fo", fo);
  const records = observations.map((one) => `${formatRecord(one)}\n`).join("");
  return `<?xml version="1.0" encoding="UTF-8"?>\n<feedback>\n${field("version", "1.0")}\n${tag("report_metadata", metadata)}\n${tag("policy_published", policy)}\n${records}</feedback>\n`;
}

function formatRecord(one: Observation): string {
  const { clientAddress, count, status, isDkimAligned, isSpfAligned, fromDomain } = one;
  const evaluated =
    field("disposition", DISPOSITIONS[status]) +
    field("dkim", isDkimAligned ? "pass" : "fail") +
    field("spf", isSpfAligned ? "pass" : "fail") +
    formatReason(one);
  const row =
    field("source_ip", clientAddress) + field("count", count) + tag("policy_evaluated", evaluated);
  const envelopeFrom = one.hasNullSender ? "" : one.spfDomain;
  const identifiers = field("envelope_from", envelopeFrom) + field("header_from", fromDomain);
  return tag(
    "record",
    tag("row", row) + tag("identifiers", identifiers) + tag("auth_results", formatResults(one)),
  );
}

// The policy asked for more than was done with the message.
function formatReason({ status, dmarc, policy, kind }: Observation): string {
  if (status !== "accepted" || dmarc !== "fail" || policy === "none" || policy === "") return "";
  const comment = kind === "bounce" ? "report to a signed bounce address" : "";
  return tag("reason", field("type", "local_policy") + field("comment", comment));
}

function formatResults({ signatures, spf, spfDomain, hasNullSender }: Observation): string {
  // A message without signatures has a result without a domain.
  const signed = signatures.filter(({ domain }) => domain !== "");
  const dkim = signed.map(({ domain, selector, result }) =>
    tag(
      "dkim",
      field("domain", domain) +
        field("selector", selector) +
        field("result", DKIM_RESULTS.has(result) ? result : "neutral"),
    ),
  );
  const checked =
    field("domain", spfDomain) +
    field("scope", hasNullSender ? "helo" : "mfrom") +
    field("result", SPF_RESULTS.has(spf) ? spf : "none");
  return dkim.join("") + tag("spf", checked);
}

function tag(name: string, content: string): string {
  return `<${name}>${content}</${name}>`;
}

function field(name: string, value: string | number): string {
  return tag(name, escapeXml(String(value)));
}

// XML 1.0 has no control characters, not even escaped.
function escapeXml(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\p{Cs}\uFFFE\uFFFF]/gu, "?")
    .replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
