// The text part of a message that has only HTML.
import { compile } from "html-to-text";

const INPUT_CHARACTERS_MAX = 1024 * 1024;

const convert = compile({
  wordwrap: 78,
  limits: { maxInputLength: INPUT_CHARACTERS_MAX, maxDepth: 200, ellipsis: "…" },
  selectors: [
    { selector: "img", format: "skip" },
    { selector: "a", options: { hideLinkHrefIfSameAsText: true } },
    { selector: "h1", options: { uppercase: false } },
    { selector: "h2", options: { uppercase: false } },
    { selector: "h3", options: { uppercase: false } },
  ],
});

/** Converts HTML to readable text. */
export function toPlainText(html: string): string {
  return convert(html.slice(0, INPUT_CHARACTERS_MAX));
}
