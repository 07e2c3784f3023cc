// Findings of the checks of a mail in the language of the console.
import { t } from "../words/words.ts";

/** A finding as the service reports it. */
export interface Finding {
  code: string;
  params: Readonly<Record<string, string | number>>;
  /** In English. */
  detail: string;
}

/** The sentence of a finding; the service's own for codes that this console does not have. */
export function wordFinding({ code, params, detail }: Finding): string {
  const words: Readonly<Record<string, () => string>> = {
    domain_not_public: () => t("{domain} is not a public domain: set `from_domain`.", params),
    spf_missing: () => t("{domain} has no SPF record.", params),
    spf_open: () => t("The record of {domain} allows every host to send.", params),
    spf_invalid: () => t("The record of {domain} is invalid.", params),
    spf_unanswered: () => t("DNS did not answer for {domain}.", params),
    spf_present: () =>
      t("{domain} has a record; receivers compare it with the address of the relay.", params),
    dkim_missing: () => t("Not signed: {domain} has no active key.", params),
    dkim_valid: () => t("The signature agrees with {name}.", params),
    dkim_unanswered: () => t("DNS did not answer for {name}.", params),
    dkim_invalid: () => t("The signature does not agree with {name} ({result}).", params),
    dmarc_unanswered: () => t("DNS did not answer.", params),
    dmarc_invalid: () => t("The record of {domain} is invalid.", params),
    dmarc_missing: () => t("{domain} has no DMARC record.", params),
    dmarc_aligned: () => t("Aligned by DKIM; p={policy} of {domain}.", params),
    dmarc_unaligned: () =>
      t(
        "Not aligned: neither DKIM nor the sender of the envelope is of {domain}; p={policy} of {domain}.",
        params,
      ),
    dmarc_unaligned_monitored: () =>
      t(
        "Not aligned: neither DKIM nor the sender of the envelope is of {domain}; p={policy} of {domain}.",
        params,
      ),
    dmarc_relay: () =>
      t(
        "Aligned only if the SPF record of {envelope} allows the relay; p={policy} of {domain}.",
        params,
      ),
    unsubscribe_not_required: () =>
      t("Not required: the message is not of the stream `bulk`.", params),
    unsubscribe_present: () => t("One click unsubscribes (RFC 8058).", params),
    unsubscribe_missing: () => t("Missing: receivers refuse bulk mail without it.", params),
    size_refused: () => t("{kib} KiB in all: many receivers refuse more than 25 MiB.", params),
    size_clipped: () => t("HTML of {kib} KiB: Gmail cuts it at 102 KiB.", params),
    size_heavy: () => t("{kib} KiB in all.", params),
    size_fine: () => t("{kib} KiB in all.", params),
    subject_empty: () => t("Empty.", params),
    subject_fine: () => t("{n} characters.", params),
    subject_long: () => t("{n} characters: most programs cut it.", params),
    text_present: () => t("Present.", params),
    text_empty: () => t("The mail has no text.", params),
    text_missing: () => t("Missing: spam filters count that, and some read only it.", params),
    html_cut: () => t("Only the first MiB was read.", params),
    images_none: () => t("None.", params),
    images_without_alt: () => t("{n} of {all} images without `alt`.", params),
    images_remote: () =>
      t("{n} of {all} images on other hosts: many programs block them at first.", params),
    images_embedded: () => t("Images: {all}, all in the mail.", params),
    links_run_code: () => t("{n} of {all} links with a scheme that runs code.", params),
    links_empty: () => t("{n} of {all} links without a target.", params),
    links_insecure: () => t("{n} of {all} links without TLS (http).", params),
    links_none: () => t("None.", params),
    links_fine: () => t("Links: {all}, none without TLS.", params),
    active_none: () => t("None.", params),
    active_removed: () => t("Mail programs remove {names}.", params),
    variables_empty: () => t("{warnings}.", params),
    variables_empty_more: () => t("{warnings}; and {n} more.", params),
    variables_placeholder: () => t("The text contains the placeholder {placeholder}.", params),
    variables_no_template: () => t("The mail has no template.", params),
    variables_set: () => t("All are set.", params),
  };
  return Object.hasOwn(words, code) ? words[code]!() : detail;
}
