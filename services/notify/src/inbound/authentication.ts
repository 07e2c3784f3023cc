// SPF, DKIM and DMARC of received mail (RFC 7208, RFC 6376, RFC 7489), checked by mailauth.
import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import type {
  ARCData,
  ARCResult,
  DKIMResult,
  DKIMVerifyResult,
  DMARCResult,
  SPFResult,
} from "mailauth";
import { limitLookups } from "../dns/budget.ts";
import type { DnsLookup } from "../dns/resolver.ts";
import { formatRawField } from "../message/header.ts";

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
    const mailauth = await import("mailauth");
    const resolver = limitLookups(lookup, BUDGET_MS);
    const dkim = await mailauth.dkimVerify(content, { resolver, sender });
    for (const one of dkim.results) rejectUnsigned(one);
    const source = { ip: clientAddress, helo: isIP(helo) === 0 ? helo : `[${helo}]`, sender };
    const spf = await mailauth.spf({ ...source, mta: hostname, resolver, strict: true });
    // Without a chain its member is false, contrary to the types.
    const arc = await mailauth.arc(dkim.arc as ARCData, {
      resolver,
      strict: true,
      ip: clientAddress,
    });
    const dmarc = await evaluate(dkim, spf, arc, resolver);
    const headers = formatResults(hostname, [...dkim.results, spf, arc, dmarc], spf.header);
    const seal = arc.signature;
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
    const spfDomain = spf.domain;
    const spfResult = spf.status.result;
    return {
      spf: spfResult,
      spfDomain,
      dkim: summarize(signatures.map(({ result }) => result)),
      signatures,
      dmarc: found.status?.result ?? "none",
      arc: arc.status.result,
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

/**
 * Bytes behind the signed length can be appended by anyone, and programs show them in place of the signed ones: the signature
 * does not cover the message that the reader sees (RFC 6376 section 8.2). `policy` is a valid signature that is not acceptable
 * here (RFC 8601 section 2.7.1).
 */
function rejectUnsigned(one: DKIMResult): void {
  if (one.status.result !== "pass" || (one.status.underSized ?? 0) === 0) return;
  one.status.result = "policy";
  one.info = one.info?.replace("dkim=pass", "dkim=policy");
}

async function evaluate(
  dkim: DKIMVerifyResult,
  spf: SPFResult,
  arcResult: ARCResult,
  resolver: DnsLookup,
): Promise<DMARCResult | false> {
  const { evaluateDmarc } = await import("mailauth/lib/dmarc/index.js");
  const passed = dkim.results.filter(({ status }) => status.result === "pass");
  const { response, dkimAligned } = await evaluateDmarc({
    headerFrom: dkim.headerFrom,
    fromFields: dkim.fromFields,
    spfDomains: spf.status.result === "pass" ? [spf.domain] : [],
    dkimDomains: passed.map(({ signingDomain }) => ({ domain: signingDomain ?? "" })),
    arcResult,
    resolver,
  });
  // The verifier of signatures does not know the record yet: DMARC decides which are aligned.
  if (response !== false && dkimAligned !== undefined) {
    for (const { status, signingDomain = "" } of passed) {
      const isAligned = dkimAligned.has(toLabels(signingDomain));
      status.aligned = isAligned ? signingDomain : false;
    }
  }
  return response;
}

// Each method is a line of its own (RFC 8601 section 2.2).
function formatResults(
  hostname: string,
  methods: readonly (false | { info?: string | undefined })[],
  receivedSpf: string,
): string {
  const infos = methods.flatMap((one) => (one === false ? [] : (one.info ?? [])));
  const value = [hostname, ...infos.map((info) => info.replaceAll(/\s+/g, " "))].join("; ");
  return `${receivedSpf}\r\n${formatRawField("Authentication-Results", value)}`;
}

// As the alignment is computed: lower case, A-labels, no dot at the end.
function toLabels(domain: string): string {
  const plain = domain.replace(/\.$/, "").toLowerCase();
  return domainToASCII(plain) || plain;
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
