// The profile page: name and email address.
import { button, field, hidden } from "../form.ts";
import { html } from "../html.ts";
import { attempt, carryCsrf, showAccountPage, type PageServices } from "../page-services.ts";
import type { Problem } from "../problem.ts";
import { withQuery, type PageResponse, type PageRoute, type SignedInRequest } from "../route.ts";
import { section, showTime } from "./section.ts";

const NAME_CHARS_MAX = 256;

export function createProfileRoutes(services: PageServices): PageRoute[] {
  return [
    {
      method: "GET",
      path: "/account",
      access: "signed-in",
      handle: (request) => show(services, request),
    },
    {
      method: "POST",
      path: "/account/profile",
      access: "signed-in",
      handle: async (request, form) => {
        const name = (form.get("name") ?? "").trim().slice(0, NAME_CHARS_MAX);
        await services.users.change(request.user.account.id, { name: name === "" ? null : name });
        return back("saved");
      },
    },
    {
      method: "POST",
      path: "/account/email/change",
      access: "fresh",
      handle: (request, form) => changeEmail(services, request, (form.get("email") ?? "").trim()),
    },
    {
      method: "POST",
      path: "/account/email",
      access: "signed-in",
      handle: async (request) => {
        const { account } = request.user;
        const sent = await attempt(request, () => services.credentials.beginVerification(account));
        return "problem" in sent ? show(services, request, sent.problem) : back("link-sent");
      },
    },
  ];
}

// A user who has to confirm their identity first returns to this page.
async function changeEmail(
  services: PageServices,
  request: SignedInRequest,
  email: string,
): Promise<PageResponse> {
  const { account } = request.user;
  const changed = await attempt(
    request,
    () => services.credentials.change(account, { email: email === "" ? null : email }),
    { conflict: request.language.messages.problems.addressTaken },
  );
  if ("problem" in changed) return show(services, request, changed.problem, email);
  if (email === "" || !services.canSend) return back("saved");
  const sent = await attempt(request, () => services.credentials.beginVerification(changed.value));
  return back("problem" in sent ? "saved" : "link-sent");
}

function back(done: string): PageResponse {
  return { kind: "redirect", to: withQuery("/account", { done }) };
}

function show(
  services: PageServices,
  request: SignedInRequest,
  problem?: Problem,
  email = request.user.account.email,
): PageResponse {
  const { messages } = request.language;
  const { account: words, fields } = messages;
  const { account } = request.user;
  const created = new Date(account.created_at).toISOString();
  const canVerify = services.canSend && account.email !== undefined && !account.email_verified;
  const facts = html`<dl class="facts">
    <dt>${fields.username}</dt>
    <dd>${account.username}</dd>
    <dt>${words.created}</dt>
    <dd>${showTime(request.language, created)}</dd>
  </dl>`;
  const name = html`<form method="post" action="/account/profile">
    ${carryCsrf(request)}${hidden({ back: "/account" })}${field(
      messages,
      {
        name: "name",
        label: fields.name,
        autocomplete: "name",
        value: account.name,
        isOptional: true,
        maxLength: NAME_CHARS_MAX,
      },
      problem,
    )}${button(words.save, { kind: "quiet" })}
  </form>`;
  const address =
    account.email === undefined
      ? words.noEmail
      : `${account.email} (${account.email_verified ? words.verified : words.unverified})`;
  const change = html`<details${problem?.fields["email"] !== undefined && html` open`}>
    <summary>${words.changeEmail}</summary>
    <form method="post" action="/account/email/change">
      ${carryCsrf(request)}${hidden({ back: "/account" })}${field(
        messages,
        {
          name: "email",
          label: fields.email,
          type: "email",
          autocomplete: "email",
          value: email,
          isOptional: true,
          maxLength: 254,
        },
        problem,
      )}${button(words.save, { kind: "quiet" })}
    </form>
  </details>`;
  const verify = html`<form method="post" action="/account/email">
    ${carryCsrf(request)}${hidden({ back: "/account" })}${button(words.verify, { kind: "quiet" })}
  </form>`;
  const body = html`${section(words.profile, undefined, html`${facts}${name}`)}${section(
    fields.email,
    fields.emailHint,
    html`<p>${address}</p>
      ${canVerify && verify}${change}`,
  )}`;
  return showAccountPage(services, request, "profile", { title: words.profile, problem, body });
}
