// Pages of unsubscribe links: one button, no scripts, nothing from elsewhere. English and German.
import { createHash } from "node:crypto";

/** State that a page shows. */
export type PageState = "question" | "done" | "invalid" | "busy";

/** Options of {@link renderPage}. */
export interface PageOptions {
  state: PageState;
  /** The address of the link; undefined if the link is invalid. */
  address?: string | undefined;
  acceptLanguage: string | null;
}

/** Body of the request that unsubscribes (RFC 8058 section 3.2). */
export const ONE_CLICK = { name: "List-Unsubscribe", value: "One-Click" } as const;

const STYLE =
  "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem;color:#1a1a1a;background:#fff}button{font:inherit;padding:.6rem 1.2rem;border:0;border-radius:.4rem;background:#0b57d0;color:#fff;cursor:pointer}button:focus-visible{outline:3px solid #1a1a1a;outline-offset:2px}strong{overflow-wrap:anywhere}@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}button{background:#8ab4f8;color:#111}button:focus-visible{outline-color:#eee}}";

/** Policy of the pages: their own style and a form that returns to its page. */
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`;

interface Words {
  title: string;
  text: string;
  button?: string;
}

const WORDS: Readonly<Record<"en" | "de", Record<PageState, Words>>> = {
  en: {
    question: {
      title: "Unsubscribe",
      text: "{address} will receive no more newsletters and announcements from this sender. Messages about your account and your orders are still sent.",
      button: "Unsubscribe",
    },
    done: {
      title: "You are unsubscribed",
      text: "{address} will receive no more newsletters and announcements from this sender.",
    },
    invalid: {
      title: "This link is not valid",
      text: "It may be incomplete. Copy the whole link from the message, or use the unsubscribe button of your mail program.",
    },
    busy: {
      title: "Too many attempts",
      text: "Too many invalid links were opened. Try again in a minute.",
    },
  },
  de: {
    question: {
      title: "Abmelden",
      text: "{address} erhält von diesem Absender keine Newsletter und Ankündigungen mehr. Nachrichten zu Ihrem Konto und Ihren Bestellungen kommen weiterhin an.",
      button: "Abmelden",
    },
    done: {
      title: "Sie sind abgemeldet",
      text: "{address} erhält von diesem Absender keine Newsletter und Ankündigungen mehr.",
    },
    invalid: {
      title: "Dieser Link ist ungültig",
      text: "Vielleicht ist er unvollständig. Kopieren Sie den ganzen Link aus der Nachricht, oder nutzen Sie die Abmeldung Ihres Mailprogramms.",
    },
    busy: {
      title: "Zu viele Versuche",
      text: "Es wurden zu viele ungültige Links geöffnet. Versuchen Sie es in einer Minute noch einmal.",
    },
  },
};

/** Renders a page. */
export function renderPage({ state, address = "", acceptLanguage }: PageOptions): string {
  const language = chooseLanguage(acceptLanguage);
  const { title, text, button } = WORDS[language][state];
  const shown = text.replace("{address}", () => `<strong>${escapeHtml(address)}</strong>`);
  const form =
    button === undefined
      ? ""
      : `<form method="post"><input type="hidden" name="${ONE_CLICK.name}" value="${ONE_CLICK.value}"><button>${button}</button></form>`;
  return `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${title}</title><style>${STYLE}</style></head><body><main><h1>${title}</h1><p>${shown}</p>${form}</main></body></html>`;
}

// The first language of Accept-Language decides: mail programs and browsers send the preferred one first.
function chooseLanguage(acceptLanguage: string | null): "en" | "de" {
  return /^\s*de\b/i.test(acceptLanguage ?? "") ? "de" : "en";
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
