// SPF, DKIM and DMARC of a mail that this service sends, as far as they can be known before a receiver sees its relay.
import type { AuthenticationResults, CheckAuthentication } from "../inbound/authentication.ts";
import type { SentMail } from "../send/stored-content.ts";
import { makeFinding } from "./findings.ts";
import type { CheckResult, Finding } from "./result.ts";

/** An address for documentation (RFC 5737): SPF passes for it only if it passes for every address. */
const FOREIGN_ADDRESS = "192.0.2.1";

/** Checks a mail. DNS failures are `unknown`. */
export async function checkAuthenticity(
  mail: SentMail,
  check: CheckAuthentication,
): Promise<CheckResult[]> {
  const domain = domainOf(mail.message.sender);
  const isPublic = domain.includes(".");
  const results = isPublic
    ? await check(mail.bytes, {
        clientAddress: FOREIGN_ADDRESS,
        helo: domain,
        sender: mail.envelopeSender,
      })
    : undefined;
  const judge = (judgeResults: (found: AuthenticationResults) => Finding): Finding =>
    results === undefined ? makeFinding("domain_not_public", { domain }) : judgeResults(results);
  const envelope = domainOf(mail.envelopeSender);
  return [
    { id: "spf", title: "SPF", ...judge((found) => judgeSpf(found, envelope)) },
    { id: "dkim", title: "DKIM", ...judge((found) => judgeDkim(found, domain)) },
    { id: "dmarc", title: "DMARC", ...judge((found) => judgeDmarc(found, domain, envelope)) },
  ];
}

function judgeSpf({ spf }: AuthenticationResults, envelope: string): Finding {
  switch (spf) {
    case "none":
      return makeFinding("spf_missing", { domain: envelope });
    case "pass":
      return makeFinding("spf_open", { domain: envelope });
    case "permerror":
      return makeFinding("spf_invalid", { domain: envelope });
    case "temperror":
      return makeFinding("spf_unanswered", { domain: envelope });
    default:
      return makeFinding("spf_present", { domain: envelope });
  }
}

function judgeDkim({ signatures, dkim }: AuthenticationResults, domain: string): Finding {
  const [first] = signatures;
  if (first === undefined || first.domain === "") {
    return makeFinding("dkim_missing", { domain });
  }
  const name = `${first.selector}._domainkey.${first.domain}`;
  if (dkim === "pass") return makeFinding("dkim_valid", { name });
  if (dkim === "temperror") return makeFinding("dkim_unanswered", { name });
  return makeFinding("dkim_invalid", { name, result: dkim });
}

function judgeDmarc(
  { dmarc, dkimAligned, policy, policyDomain }: AuthenticationResults,
  domain: string,
  envelope: string,
): Finding {
  if (dmarc === "temperror") return makeFinding("dmarc_unanswered");
  if (dmarc === "permerror") {
    return makeFinding("dmarc_invalid", { domain });
  }
  if (policyDomain === "" || policy === "") {
    return makeFinding("dmarc_missing", { domain });
  }
  const record = { policy, domain: policyDomain };
  if (dkimAligned) return makeFinding("dmarc_aligned", record);
  const isSpfAligned = isWithin(envelope, policyDomain);
  if (!isSpfAligned) {
    return makeFinding(policy === "none" ? "dmarc_unaligned_monitored" : "dmarc_unaligned", record);
  }
  return makeFinding("dmarc_relay", { ...record, envelope });
}

function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`);
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf("@") + 1).toLowerCase();
}
