// SPF, DKIM and DMARC of received mail (RFC 7208, RFC 6376, RFC 7489), checked by mailauth.
import type { DMARCResult } from "mailauth";
import { limitLookups } from "../dns/budget.ts";
import type { DnsLookup } from "../dns/resolver.ts";

/** Source of a message. */
export interface MailSource {
  clientAddress: string;
  helo: string;
  /** Sender of the envelope; "" for bounces. */
  sender: string;
}

/** Results of the checks. */
export interface AuthenticationResults {
  spf: string;
  spfDomain: string;
  /** `pass` if one signature passes. */
  dkim: string;
  signatures: { domain: string; selector: string; result: string; aligned: boolean }[];
  dmarc: string;
  /** Result of the ARC chain (RFC 8617); it changes no decision. */
  arc: string;
  /** Domain of the last server that sealed the message; "" without a chain. */
  arcDomain: string;
  spfAligned: boolean;
  dkimAligned: boolean;
  /** Domain and policy of the DMARC record; "" without one. */
  policyDomain: string;
  policy: string;
  /** Domain of the From field; "" if there is not exactly one. */
  fromDomain: string;
  /** True if addresses in From have several domains, so that DMARC cannot decide which one is responsible. */
  hasSeveralAuthors: boolean;
  /** `Received-SPF` and `Authentication-Results`, with CRLF. */
  headers: string;
}

/** Checks a message. */
export type CheckAuthentication = (
  content: Buffer,
  source: MailSource,
) => Promise<AuthenticationResults>;

/** Time for the DNS lookups of a message. */
const BUDGET_MS = 3_000;
const SIGNATURES_MAX = 10;

/** Creates the checks. DNS failures are results (`temperror`), never errors. */
export function createAuthentication(lookup: DnsLookup, hostname: string): CheckAuthentication {
  return async (content, { clientAddress, helo, sender }) => {
    // Its certificate parsers are a third of the time of a start, and most installations receive no mail.
    const { authenticate } = await import("mailauth");
    const checked = await authenticate(content, {
      ip: clientAddress,
      helo,
      sender,
      mta: hostname,
      resolver: limitLookups(lookup, BUDGET_MS),
      disableBimi: true,
    });
    const { dkim, spf, dmarc, arc, headers } = checked;
    const seal = arc === false ? undefined : arc.signature;
    const signatures = dkim.results.slice(0, SIGNATURES_MAX).map((one) => ({
      domain: one.signingDomain ?? "",
      selector: one.selector ?? "",
      result: one.status.result,
      aligned: one.status.aligned !== undefined && one.status.aligned !== false,
    }));
    // Members are absent if the record could not be read, contrary to the types.
    const found: Partial<DMARCResult> = dmarc === false ? {} : dmarc;
    const authors = new Set(dkim.headerFrom.map(toDomain));
    const fromDomain = authors.size === 1 ? [...authors][0]! : "";
    const spfDomain = spf === false ? "" : spf.domain;
    const spfResult = spf === false ? "none" : spf.status.result;
    return {
      spf: spfResult,
      spfDomain,
      dkim: summarize(signatures.map(({ result }) => result)),
      signatures,
      dmarc: found.status?.result ?? "none",
      arc: arc === false ? "none" : arc.status.result,
      arcDomain: seal === undefined || seal === false ? "" : (seal.signingDomain ?? ""),
      // Without a DMARC record there is no relaxed alignment: the domains must be equal.
      spfAligned:
        found.alignment === undefined
          ? spfResult === "pass" && isSame(spfDomain, fromDomain)
          : Boolean(found.alignment.spf.result),
      dkimAligned:
        found.alignment === undefined
          ? signatures.some(({ result, domain }) => result === "pass" && isSame(domain, fromDomain))
          : Boolean(found.alignment.dkim.result),
      policyDomain: found.policyDomain ?? found.domain ?? "",
      policy: found.policy ?? "",
      fromDomain,
      hasSeveralAuthors: authors.size > 1,
      headers,
    };
  };
}

function toDomain(address: string): string {
  return address.slice(address.lastIndexOf("@") + 1).toLowerCase();
}

function isSame(domain: string, fromDomain: string): boolean {
  return fromDomain !== "" && domain.toLowerCase() === fromDomain;
}

function summarize(results: readonly string[]): string {
  if (results.includes("pass")) return "pass";
  if (results.includes("temperror")) return "temperror";
  return results[0] ?? "none";
}
