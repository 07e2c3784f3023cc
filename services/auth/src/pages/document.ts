// The frame of every page: head, brand, navigation, messages.
import type { Assets, ScriptName } from "./assets.ts";
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
  /** Scripts that improve the page; it works without them, except for passkeys. */
  scripts?: readonly ScriptName[];
  /** Forwards the browser to this URL; the page has a link as well. */
  forwardTo?: string;
}

/** Tabs of the account pages in order. */
export type AccountTab = "profile" | "security" | "activity" | "sessions" | "applications";

/** Beside the template: in it, a character beyond Latin-1 stays as it is in the built form, and doubles the memory of its module. */
const DASH = "–";

const TABS: readonly (readonly [AccountTab, string])[] = [
  ["profile", "/account"],
  ["security", "/account/security"],
  ["activity", "/account/activity"],
  ["sessions", "/account/sessions"],
  ["applications", "/account/applications"],
];

/** The identity of the service on its pages. */
export interface Brand {
  /** Public name of the service. */
  readonly name: string;
  /** Its host name, shown so that users can compare it with the address bar. */
  readonly host: string;
  /** Names of the service, which passwords must not resemble. */
  readonly words: readonly string[];
}

/** Renders pages in their frame. */
export class PageFrame {
  /** Assets that pages load. */
  readonly assets: Assets;
  readonly brand: Brand;

  constructor(assets: Assets, brand: Brand) {
    this.assets = assets;
    this.brand = brand;
  }

  /** A page with one question. */
  frame(language: Language, content: PageContent): Html {
    return this.#document(
      language,
      content,
      "ask",
      html`<div class="art" aria-hidden="true"></div>
        <div class="sheet">
          <div class="box">
            <header>
              <span class="brand">${this.#mark()}</span><span class="tag">${this.brand.host}</span>
            </header>
            <main id="content" tabindex="-1">
              <h1>${content.title}</h1>
              ${this.#announce(language, content)}${content.body}
            </main>
          </div>
        </div>`,
    );
  }

  /** A page of the user's account. `signOut` is the link that signs out. */
  frameAccount(
    language: Language,
    content: PageContent,
    account: { tab: AccountTab; username: string; signOut: Html },
  ): Html {
    const { account: words, signedInAs } = language.messages;
    return this.#document(
      language,
      content,
      "account",
      html`<header class="rail">
          <a class="brand" href="/account">${this.#mark()}</a>
          <div class="who">${signedInAs(account.username)} · ${account.signOut}</div>
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
        </header>
        <main id="content" tabindex="-1">
          <h1>${account.tab === "profile" ? words.title : content.title}</h1>
          ${this.#announce(language, content)}${content.body}
        </main>`,
    );
  }

  #document(language: Language, content: PageContent, frame: "ask" | "account", body: Html): Html {
    const { tag, messages } = language;
    const { title, problem, forwardTo, scripts = [] } = content;
    return html`<!doctype html>
      <html lang="${tag}">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="robots" content="noindex" />
          ${forwardTo !== undefined && html`<meta http-equiv="refresh" content="0; url=${forwardTo}" />`}
          <title>
            ${problem !== undefined && `${messages.errorPrefix} `}${title} ${DASH}
            ${this.brand.name}
          </title>
          <link rel="icon" href="${this.assets.icon.path}" type="image/svg+xml" />
          <link rel="stylesheet" href="${this.assets.style.path}" />
          ${scripts.map((name) => html`<script type="module" src="${this.assets.scripts[name].path}"></script>`)}
        </head>
        <body class="${frame}" ${scripts.includes("password") && this.#describePasswords(language)}>
          <a class="skip" href="#content">${messages.skipToContent}</a>
          ${body}
        </body>
      </html> `;
  }

  // Texts and rules for the script of password fields.
  #describePasswords({ messages }: Language): Html {
    const { name, host } = this.brand;
    const serviceWords = JSON.stringify([name, host.replace(/:\d+$/, "")]);
    return html` data-password-texts="${JSON.stringify(messages.strength)}"
    data-service-words="${serviceWords}" data-common-passwords="${this.assets.commonPasswords.path}"`;
  }

  #mark(): Html {
    const { name } = this.brand;
    const { logo } = this.assets;
    // The name is beside the picture, which therefore needs no text of its own.
    if (logo !== undefined) return html`<img src="${logo.path}" alt="" />${name}`;
    return html`<svg viewBox="0 0 20 20" aria-hidden="true">
        <rect width="20" height="20" rx="3" />
        <path d="M4.5 8.6v2.8M7.25 6v8M10 3.8v12.4M12.75 7v6M15.5 8.9v2.2" /></svg
      >${name}`;
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
