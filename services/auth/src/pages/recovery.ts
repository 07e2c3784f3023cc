// Links that come by mail: to set a new password, and to confirm an address.
import { DEVICE_MARK_MS } from "../web/cookies.ts";
import { button, field, hidden } from "./form.ts";
import { html } from "./html.ts";
import { attempt, carryCsrf, showPage, type PageParts } from "./page-parts.ts";
import { createFieldProblem, type Problem } from "./problem.ts";
import { withQuery, type Answer, type Form, type PageRoute } from "./route.ts";
import type { Visit } from "./visit.ts";

/** The routes. */
export function createRecoveryRoutes(parts: PageParts): PageRoute[] {
  return [
    {
      method: "GET",
      path: "/recover",
      access: "public",
      handle: (visit) => {
        const token = visit.query.get("token")?.slice(0, 256);
        return token === undefined ? showBegin(parts, visit) : showFinish(parts, visit, token);
      },
    },
    {
      method: "POST",
      path: "/recover",
      access: "public",
      handle: (visit, form) => begin(parts, visit, form),
    },
    {
      method: "POST",
      path: "/recover/password",
      access: "public",
      handle: (visit, form) => finish(parts, visit, form),
    },
    {
      method: "GET",
      path: "/verify-email",
      access: "public",
      handle: (visit) => {
        const token = visit.query.get("token")?.slice(0, 256);
        if (token === undefined) return parts.errors.showBadLink(visit.language);
        return showVerify(parts, visit, token);
      },
    },
    {
      method: "POST",
      path: "/verify-email",
      access: "public",
      handle: (visit, form) => verify(parts, visit, form),
    },
  ];
}

function showBegin(parts: PageParts, visit: Visit, problem?: Problem, email?: string): Answer {
  const { messages } = visit.language;
  const { recovery: words, fields } = messages;
  const body = html`<p>${words.text}</p>
    <form method="post" action="/recover">
      ${carryCsrf(visit)}
      ${field(
        messages,
        {
          name: "email",
          label: fields.email,
          type: "email",
          autocomplete: "email",
          value: email,
          isFirst: true,
          maxLength: 254,
        },
        problem,
      )}
      <div class="full">${button(words.submit, { isFull: true })}</div>
    </form>
    <div class="below">
      <p><a href="/sign-in">${messages.signIn.submit}</a></p>
    </div>`;
  return showPage(parts, visit, { title: words.title, problem, body });
}

async function begin(parts: PageParts, visit: Visit, form: Form): Promise<Answer> {
  const { messages } = visit.language;
  const { recovery: words, problems } = messages;
  const email = (form.get("email") ?? "").slice(0, 255);
  if (!email.includes("@")) {
    const problem = createFieldProblem({ email: problems.email }, messages);
    return showBegin(parts, visit, problem, email);
  }
  const mark = parts.cookies.read(visit.headers, "platform_device");
  const sent = await attempt(visit, () =>
    parts.credentials.beginRecovery(email, visit.origin, mark),
  );
  if ("problem" in sent) return showBegin(parts, visit, sent.problem, email);
  const body = html`<p>${words.sent}</p>
    <p><a href="/sign-in">${messages.signIn.submit}</a></p>`;
  return showPage(parts, visit, { title: words.sentTitle, body });
}

function showFinish(parts: PageParts, visit: Visit, token: string, problem?: Problem): Answer {
  const { messages } = visit.language;
  const { recovery: words, fields } = messages;
  const body = html`<p>${words.finishText}</p>
    <form method="post" action="/recover/password">
      ${carryCsrf(visit)}${hidden({ token })}
      ${field(
        messages,
        {
          name: "password",
          label: fields.newPassword,
          type: "password",
          autocomplete: "new-password",
          hint: fields.passwordRule,
          isFirst: true,
          maxLength: 1024,
        },
        problem,
      )}
      <div class="full">${button(words.finish, { isFull: true })}</div>
    </form>`;
  return showPage(parts, visit, { title: words.finishTitle, problem, body });
}

async function finish(parts: PageParts, visit: Visit, form: Form): Promise<Answer> {
  const { messages } = visit.language;
  const token = form.get("token") ?? "";
  const password = (form.get("password") ?? "").slice(0, 1024);
  const set = await attempt(
    visit,
    () => parts.credentials.finishRecovery(token, password, visit.origin),
    { forbidden: messages.errors.linkText },
  );
  if ("value" in set) {
    visit.cookies.push(
      parts.cookies.format("platform_device", set.value.deviceMark, DEVICE_MARK_MS),
    );
    return { kind: "redirect", to: withQuery("/sign-in", { done: "password-changed" }) };
  }
  const { problem } = set;
  if (problem.status === 403) return parts.errors.showBadLink(visit.language);
  const { new_password: reason } = problem.fields;
  const shown = reason === undefined ? problem : { ...problem, fields: { password: reason } };
  return showFinish(parts, visit, token, shown);
}

function showVerify(parts: PageParts, visit: Visit, token: string): Answer {
  const { verify: words } = visit.language.messages;
  // A form, not the link itself: what scans mail opens links as well.
  const body = html`<p>${words.text}</p>
    <form method="post" action="/verify-email">
      ${carryCsrf(visit)}${hidden({ token })}
      <div class="full">${button(words.submit, { isFull: true })}</div>
    </form>`;
  return showPage(parts, visit, { title: words.title, body });
}

async function verify(parts: PageParts, visit: Visit, form: Form): Promise<Answer> {
  const { messages } = visit.language;
  const { verify: words, errors } = messages;
  const done = await attempt(
    visit,
    () => parts.credentials.finishVerification(form.get("token") ?? "", visit.origin),
    { forbidden: errors.linkText, conflict: messages.problems.addressTaken },
  );
  if ("problem" in done) {
    if (done.problem.status === 403) return parts.errors.showBadLink(visit.language);
    return showPage(parts, visit, { title: words.title, problem: done.problem, body: undefined });
  }
  const body = html`<p>${words.done}</p>
    <p><a class="button" href="/account">${errors.toAccount}</a></p>`;
  return showPage(parts, visit, { title: words.doneTitle, body });
}
