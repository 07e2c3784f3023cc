// DMARC records (RFC 7489 section 6.3): the policy, and the addresses that aggregate reports go to.
import { parseMailbox } from "../address/mailbox.ts";

/** A published record. */
export interface PolicyRecord {
  adkim: "r" | "s";
  aspf: "r" | "s";
  p: Policy;
  sp: Policy;
  pct: number;
  fo: string;
  rua: ReportTarget[];
}

/** A requested policy. */
type Policy = "none" | "quarantine" | "reject";

/** An address for aggregate reports. */
export interface ReportTarget {
  address: string;
  /** Domain of the address. */
  host: string;
  /** Maximum size of a report in bytes (`!10m`). */
  bytesMax: number;
}

/** Addresses of a record to which reports are sent; receivers must support two (RFC 7489 section 6.2). */
const TARGETS_MAX = 5;
const TARGET = /^mailto:([^?!]+)(?:\?[^!]*)?(?:!(\d{1,9})([kmgt]?))?$/i;
const UNIT_BYTES: Readonly<Record<string, number>> = {
  "": 1,
  k: 1024,
  m: 1024 ** 2,
  g: 1024 ** 3,
  t: 1024 ** 4,
};

/** Parses the TXT records of a name; undefined unless exactly one is a DMARC record. */
export function parsePolicyRecord(texts: readonly string[]): PolicyRecord | undefined {
  const tags = findTags(texts);
  if (tags === undefined) return undefined;
  const p = readPolicy(tags.get("p")) ?? "none";
  const pct = Number(tags.get("pct") ?? 100);
  return {
    adkim: tags.get("adkim")?.toLowerCase() === "s" ? "s" : "r",
    aspf: tags.get("aspf")?.toLowerCase() === "s" ? "s" : "r",
    p,
    sp: readPolicy(tags.get("sp")) ?? p,
    pct: Number.isInteger(pct) && pct >= 0 && pct <= 100 ? pct : 100,
    fo: /^[01ds](?::[01ds])*$/i.exec(tags.get("fo") ?? "")?.[0] ?? "0",
    rua: parseTargets(tags.get("rua") ?? ""),
  };
}

/** True if TXT records of a name contain a DMARC record that is not of a public suffix. */
export function isOrganization(texts: readonly string[]): boolean {
  const tags = findTags(texts);
  return tags !== undefined && tags.get("psd")?.toLowerCase() !== "y";
}

/** Returns the targets in TXT records that allow reports (RFC 7489 section 7.1); undefined without such a record. */
export function parsePermission(texts: readonly string[]): ReportTarget[] | undefined {
  const tags = findTags(texts);
  return tags === undefined ? undefined : parseTargets(tags.get("rua") ?? "");
}

function findTags(texts: readonly string[]): Map<string, string> | undefined {
  const records = texts.filter((text) => /^v\s*=\s*DMARC1\s*(?:;|$)/i.test(text));
  if (records.length !== 1) return undefined;
  const pairs = records[0]!.split(";").map((part) => part.split("="));
  return new Map(
    pairs.map(([name = "", ...value]) => [name.trim().toLowerCase(), value.join("=").trim()]),
  );
}

function parseTargets(text: string): ReportTarget[] {
  const targets = text.split(",").flatMap((uri) => parseTarget(uri.trim()) ?? []);
  return targets.slice(0, TARGETS_MAX);
}

function parseTarget(uri: string): ReportTarget | undefined {
  const [, encoded = "", count, unit = ""] = TARGET.exec(uri) ?? [];
  const found = parseMailbox(decode(encoded));
  if (!found.ok) return undefined;
  const { address, domain: host } = found.mailbox;
  const limit = count === undefined ? Number.POSITIVE_INFINITY : Number(count);
  return { address, host, bytesMax: limit * UNIT_BYTES[unit.toLowerCase()]! };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function readPolicy(text: string | undefined): Policy | undefined {
  const policy = text?.toLowerCase();
  return policy === "none" || policy === "quarantine" || policy === "reject" ? policy : undefined;
}
