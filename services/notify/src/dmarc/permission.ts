// Permission of targets in other domains (RFC 7489 section 7.1): without it, a record could have reports sent to anybody.
import { parsePermission, isOrganization, type ReportTarget } from "./policy-record.ts";

/** Returns TXT records; empty if there are none. Rejects if DNS fails. */
export type ReadTexts = (name: string) => Promise<string[]>;

/** Levels above a target that are looked at to find a common organization. */
const LEVELS_MAX = 5;

/**
 * Returns the targets that may receive reports about a domain: those of the same organization, and those whose domain
 * publishes `<domain>._report._dmarc.<host>`. Such a record may name another address at the same host. Rejects if DNS fails.
 */
export async function findPermitted(
  domain: string,
  targets: readonly ReportTarget[],
  readTexts: ReadTexts,
): Promise<ReportTarget[]> {
  const permitted: ReportTarget[] = [];
  for (const target of targets) {
    if (await isSameOrganization(domain, target.host, readTexts)) {
      permitted.push(target);
      continue;
    }
    const found = parsePermission(await readTexts(`${domain}._report._dmarc.${target.host}`));
    if (found === undefined) continue;
    permitted.push(found.find(({ host }) => host === target.host) ?? target);
  }
  return permitted;
}

// Both belong to one organization if a domain above both has a DMARC record of its own (tree walk, RFC 9989 section 4.10).
async function isSameOrganization(
  domain: string,
  host: string,
  readTexts: ReadTexts,
): Promise<boolean> {
  if (isWithin(host, domain)) return true;
  const labels = host.split(".");
  const above = labels.map((_, index) => labels.slice(index).join("."));
  const common = above.filter((name) => isWithin(domain, name) && name.includes("."));
  for (const name of common.slice(0, LEVELS_MAX)) {
    if (isOrganization(await readTexts(`_dmarc.${name}`))) return true;
  }
  return false;
}

function isWithin(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`);
}
