// Links sent by email: set a new password, verify an address.
import { DEVICE_MARK_MS } from "../web/cookies.ts";
import { button, field, hidden } from "./form.ts";
import { html } from "./html.ts";
import type { PageRequest } from "./page-request.ts";
import { attempt, carryCsrf, showPage, type PageServices } from "./page-services.ts";
import { createFieldProblem, type Problem } from "./problem.ts";
import { withQuery, type PageResponse, type Form, type PageRoute } from "./route.ts";

export function createRecoveryRoutes(services: PageServices): PageRoute[] {
  return [
    {
      method: "GET",
      path: "/recover",
      access: "public",
      handle: (request) => {
        const token = request.query.get("token")?.slice(0, 256);
        return token === undefined
          ? showBegin(services, request)
          : showFinish(services, request, token);
      },
    },
    {
      method: "POST",
      path: "/recover",
      access: "public",
      handle: (request, form) => begin(services, request, form),
    },
    {
      method: "POST",
      path: "/recover/password",
      access: "public",
      handle: (request, form) => finish(services, request, form),
    },
    {
      method: "GET",
      path: "/verify-email",
      access: "public",
      handle: (request) => {
        const token = request.query.get("token")?.slice(0, 256);
        if (token === undefined) return services.errors.showBadLink(request.language);
        return showVerify(services, request, token);
      },
    },
    {
      method: "POST",
      path: "/verify-email",
      access: "public",
      handle: (request, form) => verify(services, request, form),
    },
  ];
}

function showBegin(
  services: PageServices,
  request: PageRequest,
  problem?: Problem,
  email?: string,
): PageResponse {
  const { messages } = request.language;
  const { recovery: words, fields } = messages;
  const body = html`<p>${words.text}</p>
    <form method="post" action="/recover">
      ${carryCsrf(request)}
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
  return showPage(services, request, { title: words.title, problem, body });
}

async function begin(
  services: PageServices,
  request: PageRequest,
  form: Form,
): Promise<PageResponse> {
  const { messages } = request.language;
  const { recovery: words, problems } = messages;
  const email = (form.get("email") ?? "").slice(0, 255);
  if (!email.includes("@")) {
    const problem = createFieldProblem({ email: problems.email }, messages);
    return showBegin(services, request, problem, email);
  }
  const mark = services.cookies.read(request.headers, "platform_device");
  const sent = await attempt(request, () =>
    services.credentials.beginRecovery(email, request.origin, mark),
  );
  if ("problem" in sent) return showBegin(services, request, sent.problem, email);
  const body = html`<p>${words.sent}</p>
    <p><a href="/sign-in">${messages.signIn.submit}</a></p>`;
  return showPage(services, request, { title: words.sentTitle, body });
}

function showFinish(
  services: PageServices,
  request: PageRequest,
  token: string,
  problem?: Problem,
): PageResponse {
  const { messages } = request.language;
  const { recovery: words, fields } = messages;
  const body = html`<p>${words.finishText}</p>
    <form method="post" action="/recover/password">
      ${carryCsrf(request)}${hidden({ token })}
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
  const scripts = ["password"] as const;
  return showPage(services, request, { title: words.finishTitle, problem, scripts, body });
}

async function finish(
  services: PageServices,
  request: PageRequest,
  form: Form,
): Promise<PageResponse> {
  const { messages } = request.language;
  const token = form.get("token") ?? "";
  const password = (form.get("password") ?? "").slice(0, 1024);
  const set = await attempt(
    request,
    () => services.credentials.finishRecovery(token, password, request.origin),
    { forbidden: messages.errors.linkText },
  );
  if ("value" in set) {
    request.cookies.push(
      services.cookies.format("platform_device", set.value.deviceMark, DEVICE_MARK_MS),
    );
    return { kind: "redirect", to: withQuery("/sign-in", { done: "password-changed" }) };
  }
  const { problem } = set;
  if (problem.status === 403) return services.errors.showBadLink(request.language);
  const { new_password: reason } = problem.fields;
  const shown = reason === undefined ? problem : { ...problem, fields: { password: reason } };
  return showFinish(services, request, token, shown);
}

function showVerify(services: PageServices, request: PageRequest, token: string): PageResponse {
  const { verify: words } = request.language.messages;
  // A form instead of the link alone, because mail scanners open links.
  const body = html`<p>${words.text}</p>
    <form method="post" action="/verify-email">
      ${carryCsrf(request)}${hidden({ token })}
      <div class="full">${button(words.submit, { isFull: true })}</div>
    </form>`;
  return showPage(services, request, { title: words.title, body });
}

async function verify(
  services: PageServices,
  request: PageRequest,
  form: Form,
): Promise<PageResponse> {
  const { messages } = request.language;
  const { verify: words, errors } = messages;
  const done = await attempt(
    request,
    () => services.credentials.finishVerification(form.get("token") ?? "", request.origin),
    { forbidden: errors.linkText, conflict: messages.problems.addressTaken },
  );
  if ("problem" in done) {
    if (done.problem.status === 403) return services.errors.showBadLink(request.language);
    return showPage(services, request, {
      title: words.title,
      problem: done.problem,
      body: undefined,
    });
  }
  const body = html`<p>${words.done}</p>
    <p><a class="button" href="/account">${errors.toAccount}</a></p>`;
  return showPage(services, request, { title: words.doneTitle, body });
}
