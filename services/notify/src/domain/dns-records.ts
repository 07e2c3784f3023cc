// DNS records of a sending domain: those to set, and what DNS has.
import { z } from "zod";
import type { DkimKeyRow } from "../database/domain.ts";
import type { DnsLookup } from "../dns/resolver.ts";

const dnsRecord = z.object({
  purpose: z.enum(["dkim", "spf", "dmarc", "mx"]),
  type: z.enum(["TXT", "MX"]),
  name: z.string(),
  value: z.string(),
  selector: z.string().exactOptional().describe("Selector of a DKIM record"),
});

/** A record to set. */
export type DnsRecord = z.infer<typeof dnsRecord>;

/** A record with the result of its check, for the API. */
export const checkedRecord = dnsRecord.extend({
  status: z
    .enum(["ok", "missing", "wrong", "unknown"])
    .describe("unknown: DNS did not answer. wrong: there is another record, or several"),
  found: z.array(z.string()).exactOptional().describe("Records that were found, if they are wrong"),
});

/** A record with the result of its check. */
export type CheckedRecord = z.infer<typeof checkedRecord>;

/** Settings that records depend on. */
export interface RecordOptions {
  /** Host that receives mail; undefined without an inbound port. */
  mailHost: string | undefined;
}

const FOUND_MAX = 5;
const FOUND_CHARACTERS_MAX = 500;

/** Returns the records to set for a domain. Retired keys stay published while their mail is in transit. */
export function listRecords(
  domain: string,
  keys: readonly Pick<DkimKeyRow, "selector" | "public_key">[],
  { mailHost }: RecordOptions,
): DnsRecord[] {
  const rua = mailHost === undefined ? "" : `; rua=mailto:dmarc-reports@${domain}`;
  return [
    ...keys.map(({ selector, public_key: publicKey }): DnsRecord => ({
      purpose: "dkim",
      type: "TXT",
      name: `${selector}._domainkey.${domain}`,
      value: `v=DKIM1; k=rsa; p=${publicKey}`,
      selector,
    })),
    { purpose: "spf", type: "TXT", name: domain, value: "v=spf1 mx ~all" },
    { purpose: "dmarc", type: "TXT", name: `_dmarc.${domain}`, value: `v=DMARC1; p=none${rua}` },
    ...(mailHost === undefined
      ? []
      : [{ purpose: "mx", type: "MX", name: domain, value: `10 ${mailHost}` } as const]),
  ];
}

/** Looks a record up. SPF and DMARC records may have other policies than the proposed one. */
export async function checkRecord(record: DnsRecord, lookup: DnsLookup): Promise<CheckedRecord> {
  let texts: string[];
  try {
    texts = toTexts(await lookup(record.name, record.type));
  } catch (error) {
    const { code } = error as { code?: unknown };
    const isAbsent = code === "ENOTFOUND" || code === "ENODATA";
    return { ...record, status: isAbsent ? "missing" : "unknown" };
  }
  const found = texts.filter((text) => concerns(record, text));
  if (found.length === 0) return { ...record, status: "missing" };
  if (isRight(record, found)) return { ...record, status: "ok" };
  const shown = found.slice(0, FOUND_MAX).map((text) => text.slice(0, FOUND_CHARACTERS_MAX));
  return { ...record, status: "wrong", found: shown };
}

function concerns({ purpose }: DnsRecord, text: string): boolean {
  switch (purpose) {
    case "dkim":
    case "mx":
      return true;
    case "spf":
      return /^v=spf1(?: |$)/i.test(text);
    case "dmarc":
      return /^v=DMARC1\s*(?:;|$)/i.test(text);
    default:
      return purpose satisfies never;
  }
}

// More than one SPF or DMARC record is an error of the domain (RFC 7208 section 4.5, RFC 7489 section 6.6.3).
function isRight({ purpose, value }: DnsRecord, found: readonly string[]): boolean {
  switch (purpose) {
    case "dkim":
      return found.length === 1 && readTag(found[0]!, "p") === readTag(value, "p");
    case "spf":
    case "dmarc":
      return found.length === 1;
    case "mx":
      return found.includes(value.split(" ")[1]!.toLowerCase());
    default:
      return purpose satisfies never;
  }
}

function readTag(text: string, tag: string): string | undefined {
  const parts = text.split(";").map((part) => part.trim());
  return parts
    .find((part) => part.startsWith(`${tag}=`))
    ?.slice(tag.length + 1)
    .replaceAll(/\s/g, "");
}

// TXT records are lists of strings to join; MX records are objects with the name of the host.
function toTexts(records: readonly unknown[]): string[] {
  return records.map((record) => {
    if (Array.isArray(record)) return record.join("");
    const { exchange } = record as { exchange?: string };
    return (exchange ?? String(record)).toLowerCase();
  });
}
