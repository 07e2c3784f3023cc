// Findings of the checks: stable codes with their status and English sentence.
import type { CheckStatus, Finding, FindingParams } from "./result.ts";

/** Each code with its status and sentence; `{name}` is a parameter. Programs translate by code: codes are never reused. */
export const FINDINGS = {
  domain_not_public: ["unknown", "{domain} is not a public domain: set `from_domain`."],
  spf_missing: ["warning", "{domain} has no SPF record."],
  spf_open: ["problem", "The record of {domain} allows every host to send."],
  spf_invalid: ["problem", "The record of {domain} is invalid."],
  spf_unanswered: ["unknown", "DNS did not answer for {domain}."],
  spf_present: ["ok", "{domain} has a record; receivers compare it with the address of the relay."],
  dkim_missing: ["warning", "Not signed: {domain} has no active key."],
  dkim_valid: ["ok", "The signature agrees with {name}."],
  dkim_unanswered: ["unknown", "DNS did not answer for {name}."],
  dkim_invalid: ["problem", "The signature does not agree with {name} ({result})."],
  dmarc_unanswered: ["unknown", "DNS did not answer."],
  dmarc_invalid: ["problem", "The record of {domain} is invalid."],
  dmarc_missing: ["warning", "{domain} has no DMARC record."],
  dmarc_aligned: ["ok", "Aligned by DKIM; p={policy} of {domain}."],
  dmarc_unaligned: [
    "problem",
    "Not aligned: neither DKIM nor the sender of the envelope is of {domain}; p={policy} of {domain}.",
  ],
  dmarc_unaligned_monitored: [
    "warning",
    "Not aligned: neither DKIM nor the sender of the envelope is of {domain}; p={policy} of {domain}.",
  ],
  dmarc_relay: [
    "warning",
    "Aligned only if the SPF record of {envelope} allows the relay; p={policy} of {domain}.",
  ],
  unsubscribe_not_required: ["ok", "Not required: the message is not of the stream `bulk`."],
  unsubscribe_present: ["ok", "One click unsubscribes (RFC 8058)."],
  unsubscribe_missing: ["problem", "Missing: receivers refuse bulk mail without it."],
  size_refused: ["problem", "{kib} KiB in all: many receivers refuse more than 25 MiB."],
  size_clipped: ["warning", "HTML of {kib} KiB: Gmail cuts it at 102 KiB."],
  size_heavy: ["warning", "{kib} KiB in all."],
  size_fine: ["ok", "{kib} KiB in all."],
  subject_empty: ["warning", "Empty."],
  subject_fine: ["ok", "{n} characters."],
  subject_long: ["warning", "{n} characters: most programs cut it."],
  text_present: ["ok", "Present."],
  text_empty: ["problem", "The mail has no text."],
  text_missing: ["warning", "Missing: spam filters count that, and some read only it."],
  html_cut: ["unknown", "Only the first MiB was read."],
  images_none: ["ok", "None."],
  images_without_alt: ["warning", "{n} of {all} images without `alt`."],
  images_remote: ["ok", "{n} of {all} images on other hosts: many programs block them at first."],
  images_embedded: ["ok", "Images: {all}, all in the mail."],
  links_run_code: ["problem", "{n} of {all} links with a scheme that runs code."],
  links_empty: ["warning", "{n} of {all} links without a target."],
  links_insecure: ["warning", "{n} of {all} links without TLS (http)."],
  links_none: ["ok", "None."],
  links_fine: ["ok", "Links: {all}, none without TLS."],
  active_none: ["ok", "None."],
  active_removed: ["warning", "Mail programs remove {names}."],
  variables_empty: ["warning", "{warnings}."],
  variables_empty_more: ["warning", "{warnings}; and {n} more."],
  variables_placeholder: ["warning", "The text contains the placeholder {placeholder}."],
  variables_no_template: ["ok", "The mail has no template."],
  variables_set: ["ok", "All are set."],
} as const satisfies Record<string, readonly [CheckStatus, string]>;

/** A code of {@link FINDINGS}. */
export type FindingCode = keyof typeof FINDINGS;

/** A finding with its sentence. */
export function makeFinding(code: FindingCode, params: FindingParams = {}): Finding {
  const [status, text] = FINDINGS[code];
  const detail = text.replace(/\{(\w+)\}/g, (_whole, name: string) => String(params[name]));
  return { status, code, params, detail };
}
