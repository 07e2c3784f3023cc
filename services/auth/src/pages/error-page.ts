// Error pages.
import type { PlatformError } from "@platform/kernel/errors";
import type { PageFrame } from "./document.ts";
import { html } from "./html.ts";
import type { Language } from "./language/language.ts";
import { explainError } from "./problem.ts";
import type { PageResponse } from "./route.ts";

/** Shows errors that do not belong to a form. */
export class ErrorPage {
  readonly #frame: PageFrame;

  constructor(frame: PageFrame) {
    this.#frame = frame;
  }

  /** The page of an error. */
  show(language: Language, error: PlatformError): PageResponse {
    const { errors } = language.messages;
    if (error.name === "ForeignFormError") {
      return this.#page(language, 403, errors.expiredTitle, errors.expiredText);
    }
    switch (error.code) {
      case "payload_too_large":
        return this.#page(language, 413, errors.failedTitle, errors.tooLargeText);
      case "method_not_allowed":
        return this.#page(language, 405, errors.notFoundTitle, errors.notFoundText);
      default: {
        const problem = explainError(error, language.messages);
        return problem === undefined
          ? this.#page(language, 500, errors.failedTitle, errors.failedText)
          : {
              ...this.#page(language, problem.status, errors.failedTitle, problem.text),
              retryAfter: problem.retryAfter,
            };
      }
    }
  }

  /** The page of an unknown path. */
  showMissing(language: Language): PageResponse {
    const { errors } = language.messages;
    return this.#page(language, 404, errors.notFoundTitle, errors.notFoundText);
  }

  /** The page of an interaction that is unknown to this browser or has expired. */
  showExpired(language: Language): PageResponse {
    const { errors } = language.messages;
    return this.#page(language, 400, errors.expiredTitle, errors.interactionText);
  }

  /** The page of an invalid link. */
  showBadLink(language: Language): PageResponse {
    const { errors } = language.messages;
    return this.#page(language, 403, errors.linkTitle, errors.linkText);
  }

  #page(language: Language, status: number, title: string, text: string) {
    const { errors } = language.messages;
    const body = html`<p role="alert">${text}</p>
      <p><a href="/account">${errors.toAccount}</a></p>`;
    return { kind: "page", status, page: this.#frame.frame(language, { title, body }) } as const;
  }
}
