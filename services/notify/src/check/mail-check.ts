// Checks of a mail before its recipients see it: authentication, form and content. No link or image is fetched.
import { parseMail, type ParsedMail } from "../inbox/view.ts";
import type { CheckAuthentication } from "../inbound/authentication.ts";
import type { SentMail } from "../send/stored-content.ts";
import { checkAuthenticity } from "./authentication-check.ts";
import { makeFinding } from "./findings.ts";
import { readHtmlFacts, type HtmlFacts } from "./html-facts.ts";
import type { CheckResult, Finding } from "./result.ts";

/** Checks a mail. */
export type CheckMail = (mail: SentMail) => Promise<CheckResult[]>;

/** Gmail shows the rest of longer HTML only on request. */
const CLIPPED_BYTES = 102 * 1024;
/** Many receivers refuse larger messages. */
const REFUSED_BYTES = 25 * 1024 * 1024;
const HEAVY_BYTES = 5 * 1024 * 1024;
const SUBJECT_CHARACTERS_MAX = 78;
const NAMES_MAX = 5;
const PLACEHOLDER = /\{\{[^{}]{1,200}\}\}|\{%[^{}%]{1,200}%\}/;

export function createMailCheck(authentication: CheckAuthentication): CheckMail {
  return async (mail) => {
    const [authenticity, parsed] = await Promise.all([
      checkAuthenticity(mail, authentication),
      parseMail(mail.bytes),
    ]);
    const facts = parsed.html === undefined ? undefined : readHtmlFacts(parsed.html);
    return [
      ...authenticity,
      { id: "unsubscribe", title: "List-Unsubscribe", ...judgeUnsubscribe(mail, parsed) },
      { id: "size", title: "Size", ...judgeSize(mail, parsed) },
      { id: "subject", title: "Subject", ...judgeSubject(parsed.subject) },
      { id: "text", title: "Plain text part", ...judgeText(parsed) },
      ...(facts === undefined ? [] : judgeHtml(facts)),
      { id: "variables", title: "Variables", ...judgeVariables(mail, parsed) },
    ];
  };
}

function judgeUnsubscribe({ message }: SentMail, { headers }: ParsedMail): Finding {
  if (message.stream !== "bulk") return makeFinding("unsubscribe_not_required");
  const names = new Set(headers.map(({ name }) => name.toLowerCase()));
  const isOffered = names.has("list-unsubscribe") && names.has("list-unsubscribe-post");
  return makeFinding(isOffered ? "unsubscribe_present" : "unsubscribe_missing");
}

function judgeSize({ bytes }: SentMail, { html }: ParsedMail): Finding {
  const htmlBytes = Buffer.byteLength(html ?? "");
  const all = { kib: toKib(bytes.length) };
  if (bytes.length > REFUSED_BYTES) return makeFinding("size_refused", all);
  if (htmlBytes > CLIPPED_BYTES) return makeFinding("size_clipped", { kib: toKib(htmlBytes) });
  return makeFinding(bytes.length > HEAVY_BYTES ? "size_heavy" : "size_fine", all);
}

function judgeSubject(subject: string): Finding {
  if (subject.trim() === "") return makeFinding("subject_empty");
  const isLong = subject.length > SUBJECT_CHARACTERS_MAX;
  return makeFinding(isLong ? "subject_long" : "subject_fine", { n: subject.length });
}

function judgeText({ text, html }: ParsedMail): Finding {
  if ((text ?? "").trim() !== "") return makeFinding("text_present");
  return makeFinding(html === undefined ? "text_empty" : "text_missing");
}

function judgeHtml(facts: HtmlFacts): CheckResult[] {
  return [
    ...(facts.isCut ? [{ id: "html", title: "HTML", ...makeFinding("html_cut") }] : []),
    { id: "images", title: "Images", ...judgeImages(facts) },
    { id: "links", title: "Links", ...judgeLinks(facts) },
    { id: "active_content", title: "Active content", ...judgeActive(facts) },
  ];
}

function judgeImages({ images: all, imagesWithoutAlt, remoteImages }: HtmlFacts): Finding {
  if (all === 0) return makeFinding("images_none");
  if (imagesWithoutAlt > 0) return makeFinding("images_without_alt", { n: imagesWithoutAlt, all });
  if (remoteImages > 0) return makeFinding("images_remote", { n: remoteImages, all });
  return makeFinding("images_embedded", { all });
}

function judgeLinks({ links: all, scriptLinks, emptyLinks, insecureLinks }: HtmlFacts): Finding {
  if (scriptLinks > 0) return makeFinding("links_run_code", { n: scriptLinks, all });
  if (emptyLinks > 0) return makeFinding("links_empty", { n: emptyLinks, all });
  if (insecureLinks > 0) return makeFinding("links_insecure", { n: insecureLinks, all });
  return all === 0 ? makeFinding("links_none") : makeFinding("links_fine", { all });
}

function judgeActive({ active }: HtmlFacts): Finding {
  if (active.length === 0) return makeFinding("active_none");
  return makeFinding("active_removed", { names: active.join(", ") });
}

function judgeVariables({ message, warnings }: SentMail, parsed: ParsedMail): Finding {
  if (warnings.length > 0) {
    const shown = { warnings: warnings.slice(0, NAMES_MAX).join("; ") };
    const n = warnings.length - NAMES_MAX;
    return n > 0
      ? makeFinding("variables_empty_more", { ...shown, n })
      : makeFinding("variables_empty", shown);
  }
  const placeholder = [parsed.subject, parsed.text ?? "", parsed.html ?? ""]
    .map((part) => PLACEHOLDER.exec(part)?.[0])
    .find((found) => found !== undefined);
  if (placeholder !== undefined) return makeFinding("variables_placeholder", { placeholder });
  return makeFinding(message.template === null ? "variables_no_template" : "variables_set");
}

function toKib(bytes: number): number {
  return Math.max(1, Math.round(bytes / 1024));
}
