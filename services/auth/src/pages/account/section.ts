// Elements of the account pages: sections, and times within sentences.
import { html, type Html, type Part } from "../html.ts";
import type { Language } from "../language/language.ts";

/** A section: its heading and an explanation beside its content. */
export function section(title: string, text: string | undefined, body: Part): Html {
  return html`<section class="part">
    <div class="head">
      <h2>${title}</h2>
      ${text !== undefined && html`<p class="soft">${text}</p>`}
    </div>
    <div class="body">${body}</div>
  </section> `;
}

/** A time in UTC, which the script `times` shows in the reader's zone. */
export function showTime({ formatTime }: Language, iso: string): Html {
  return html`<time datetime="${iso}">${formatTime(iso)}</time>`;
}

/** A sentence of the messages with its time. */
export function showWhen(
  sentence: (time: string) => string,
  language: Language,
  iso: string,
): Html {
  // Messages are text. U+0000 cannot occur in them.
  const [before = "", after = ""] = sentence("\0").split("\0");
  return html`${before}${showTime(language, iso)}${after}`;
}
