// The frame of every page: head, brand, navigation, messages.
import type { Assets } from "./assets.ts";
import { html, type Html, type Part } from "./html.ts";
import type { Language } from "./language/language.ts";
import type { Problem } from "./problem.ts";

/** Content of a page. */
export interface PageContent {
  title: string;
  /** The content below the heading. */
  body: Part;
  /** Shown above the content, and mentioned in the title. */
  problem?: Problem | undefined;
  /** The result of the last action, announced politely. */
  done?: string | undefined;
  /** Includes the passkey script. */
  hasPasskeys?: boolean;
  /** Forwards the browser to this URL; the page has a link as well. */
  forwardTo?: string;
}

/** Tabs of the account pages in order. */
export type AccountTab = "profile" | "security" | "sessions" | "applications";

const TABS: readonly (readonly [AccountTab, string])[] = [
  ["profile", "/account"],
  ["security", "/account/security"],
  ["sessions", "/account/sessions"],
  ["applications", "/account/applications"],
];

/** Renders pages in their frame. */
export class PageFrame {
  /** Assets that pages load. */
  readonly assets: Assets;
  readonly #brand: string;

  /** `brand` is the public name of the service. */
  constructor(assets: Assets, brand: string) {
    this.assets = assets;
    this.#brand = brand;
  }

  /** A page with one card. */
  frame(language: Language, content: PageContent): Html {
    return this.#document(
      language,
      content,
      html`<header class="narrow">
          <span class="brand">${this.#mark()}</span>
        </header>
        <main id="content" tabindex="-1">
          <div class="card">
            <h1>${content.title}</h1>
            ${this.#announce(language, content)}${content.body}
          </div>
        </main>`,
    );
  }

  /** A page of the user's account. `signOut` is the form that signs out. */
  frameAccount(
    language: Language,
    content: PageContent,
    account: { tab: AccountTab; username: string; signOut: Html },
  ): Html {
    const { account: words, signedInAs } = language.messages;
    return this.#document(
      language,
      content,
      html`<header>
          <a class="brand" href="/account">${this.#mark()}</a>
          <div class="who">${signedInAs(account.username)} · ${account.signOut}</div>
        </header>
        <main id="content" class="wide" tabindex="-1">
          <h1>${words.title}</h1>
          <nav aria-label="${words.navigation}">
            <ul>
              ${TABS.map(
                ([tab, path]) =>
                  html`<li>
                    <a href="${path}" ${tab === account.tab && html` aria-current="page"`}
                      >${words[tab]}</a
                    >
                  </li>`,
              )}
            </ul>
          </nav>
          ${this.#announce(language, content)}${content.body}
        </main>`,
    );
  }

  #document(language: Language, content: PageContent, body: Html): Html {
    const { tag, messages } = language;
    const { title, problem, forwardTo } = content;
    return html`<!doctype html>
      <html lang="${tag}">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="robots" content="noindex" />
          ${forwardTo !== undefined && html`<meta http-equiv="refresh" content="0; url=${forwardTo}" />`}
          <title>
            ${problem !== undefined && `${messages.errorPrefix} `}${title} – ${this.#brand}
          </title>
          <link rel="stylesheet" href="${this.assets.style.path}" />
          ${content.hasPasskeys === true && html`<script type="module" src="${this.assets.passkeyScript.path}"></script>`}
        </head>
        <body>
          <a class="skip" href="#content">${messages.skipToContent}</a>
          ${body}
        </body>
      </html> `;
  }

  #mark(): Html {
    return html`<svg viewBox="0 0 24 24" aria-hidden="true">
        <path
          d="M12 2 4 5v6c0 5 3.4 9.2 8 11 4.6-1.8 8-6 8-11V5l-8-3Zm0 5.2a2.8 2.8 0 0 1 1.3 5.3l.7 4h-4l.7-4A2.8 2.8 0 0 1 12 7.2Z"
        /></svg
      >${this.#brand}`;
  }

  #announce(language: Language, { problem, done }: PageContent): Part {
    if (problem !== undefined) {
      const fields = Object.entries(problem.fields);
      return html`<div class="notice bad" role="alert">
        <h2>${language.messages.problemTitle}</h2>
        ${
          fields.length === 0
            ? html`<p>${problem.text}</p>`
            : html`<ul>
                ${fields.map(([name, text]) => html`<li><a href="#${name}">${text}</a></li>`)}
              </ul>`
        }
      </div> `;
    }
    return done !== undefined && html`<div class="notice good" role="status"><p>${done}</p></div> `;
  }
}
