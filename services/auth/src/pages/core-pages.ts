// Pages of the OAuth core, in the same frame as all others.
import type { IncomingMessage } from "node:http";
import type { CoreForm, CoreProblem, OAuthPages } from "../oauth/provider/pages.ts";
import type { PageContent, PageFrame } from "./document.ts";
import { button, field, hidden } from "./form.ts";
import { html } from "./html.ts";
import type { Messages } from "./language/en.ts";
import { chooseLanguage, findLanguage, LANGUAGE_TAGS, type Language } from "./language/language.ts";
import { createFieldProblem } from "./problem.ts";

/** Creates the core's pages. */
export function createCorePages(frame: PageFrame): OAuthPages {
  const show = (request: IncomingMessage, build: (messages: Messages) => PageContent): string => {
    const language = readLanguage(request);
    return frame.frame(language, build(language.messages)).text;
  };
  return {
    languages: LANGUAGE_TAGS,
    signOut: (request, form) => show(request, (messages) => askSignOut(messages, form)),
    signedOut: (request) =>
      show(request, ({ signOut }) => ({
        title: signOut.doneTitle,
        body: html`<p>${signOut.done}</p>`,
      })),
    deviceCode: (request, form, entered) =>
      show(request, (messages) => askDeviceCode(messages, form, entered)),
    confirmDevice: (request, form, device) =>
      show(request, (messages) => askDeviceConfirmation(messages, form, device)),
    deviceDone: (request, client) =>
      show(request, ({ device }) => ({
        title: device.doneTitle,
        body: html`<p>${device.done(client)}</p>`,
      })),
    error: (request, problem) => show(request, (messages) => explainProblem(messages, problem)),
  };
}

function readLanguage({ url = "/", headers }: IncomingMessage): Language {
  const query = url.indexOf("?");
  const wanted = query === -1 ? null : new URLSearchParams(url.slice(query)).get("ui_locales");
  return findLanguage(wanted ?? "") ?? chooseLanguage(headers["accept-language"]);
}

function explainProblem({ errors }: Messages, { kind, code, detail }: CoreProblem): PageContent {
  const texts = {
    expired: errors.interactionText,
    refused: errors.refusedText,
    failed: errors.failedText,
  };
  return {
    title: errors.failedTitle,
    body: html`<p role="alert">${texts[kind]}</p>
      <p class="hint">${errors.technical} <code>${code}</code> ${detail}</p>`,
  };
}

function askSignOut({ signOut: words }: Messages, { action, xsrf }: CoreForm): PageContent {
  return {
    title: words.title,
    body: html`<p>${words.text}</p>
      <form method="post" action="${action}">
        ${hidden({ xsrf })}
        <div class="row">
          ${button(words.submit, { name: "logout", value: "yes" })}${button(words.stay, { kind: "quiet" })}
        </div>
      </form>`,
  };
}

function askDeviceCode(
  messages: Messages,
  { action, xsrf }: CoreForm,
  { code, isWrong }: { code: string | undefined; isWrong: boolean },
): PageContent {
  const { device: words, fields } = messages;
  const problem = isWrong ? createFieldProblem({ user_code: words.wrong }, messages) : undefined;
  const input = {
    name: "user_code",
    label: fields.code,
    autocomplete: "off",
    value: code?.slice(0, 32),
    isFirst: true,
    maxLength: 32,
    isCode: "text",
  } as const;
  return {
    title: words.title,
    problem,
    body: html`<p>${words.text}</p>
      <form method="post" action="${action}">
        ${hidden({ xsrf })}${field(messages, input, problem)}
        <div class="full">${button(messages.continue, { isFull: true })}</div>
      </form>`,
  };
}

function askDeviceConfirmation(
  { device: words, continue: goOn }: Messages,
  { action, xsrf }: CoreForm,
  { client, code, entered }: { client: string; code: string; entered: string },
): PageContent {
  return {
    title: words.title,
    body: html`<p>${words.confirmText(client)}</p>
      <code class="secret">${code}</code>
      <p>${words.confirmWarning}</p>
      <form method="post" action="${action}">
        ${hidden({ xsrf, user_code: entered, confirm: "yes" })}
        <div class="row">
          ${button(goOn)}${button(words.stop, { kind: "quiet", name: "abort", value: "yes" })}
        </div>
      </form>`,
  };
}
