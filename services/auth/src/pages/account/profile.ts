// The profile: name, address, and whether it is confirmed.
import { button, field, hidden } from "../form.ts";
import { html } from "../html.ts";
import { attempt, carryCsrf, showAccountPage, type PageParts } from "../page-parts.ts";
import type { Problem } from "../problem.ts";
import { withQuery, type Answer, type PageRoute, type SignedInVisit } from "../route.ts";

const NAME_CHARS_MAX = 256;

/** The routes. */
export function createProfileRoutes(parts: PageParts): PageRoute[] {
  return [
    {
      method: "GET",
      path: "/account",
      access: "signed-in",
      handle: (visit) => show(parts, visit),
    },
    {
      method: "POST",
      path: "/account/profile",
      access: "signed-in",
      handle: async (visit, form) => {
        const name = (form.get("name") ?? "").trim().slice(0, NAME_CHARS_MAX);
        await parts.users.change(visit.visitor.account.id, { name: name === "" ? null : name });
        return back("saved");
      },
    },
    {
      method: "POST",
      path: "/account/email/change",
      access: "fresh",
      handle: (visit, form) => changeEmail(parts, visit, (form.get("email") ?? "").trim()),
    },
    {
      method: "POST",
      path: "/account/email",
      access: "signed-in",
      handle: async (visit) => {
        const { account } = visit.visitor;
        const sent = await attempt(visit, () => parts.credentials.beginVerification(account));
        return "problem" in sent ? show(parts, visit, sent.problem) : back("link-sent");
      },
    },
  ];
}

// Whoever is asked to prove who they are comes back here.
async function changeEmail(parts: PageParts, visit: SignedInVisit, email: string): Promise<Answer> {
  const { account } = visit.visitor;
  const changed = await attempt(
    visit,
    () => parts.credentials.change(account, { email: email === "" ? null : email }),
    { conflict: visit.language.messages.problems.addressTaken },
  );
  if ("problem" in changed) return show(parts, visit, changed.problem, email);
  if (email === "" || !parts.canSend) return back("saved");
  const sent = await attempt(visit, () => parts.credentials.beginVerification(changed.value));
  return back("problem" in sent ? "saved" : "link-sent");
}

function back(done: string): Answer {
  return { kind: "redirect", to: withQuery("/account", { done }) };
}

function show(
  parts: PageParts,
  visit: SignedInVisit,
  problem?: Problem,
  email = visit.visitor.account.email,
): Answer {
  const { messages, formatTime } = visit.language;
  const { account: words, fields } = messages;
  const { account } = visit.visitor;
  const created = new Date(account.created_at).toISOString();
  const canVerify = parts.canSend && account.email !== undefined && !account.email_verified;
  const body = html`<section class="card">
      <h2>${account.username}</h2>
      <dl class="facts">
        <dt>${fields.email}</dt>
        <dd>
          ${
            account.email === undefined
              ? words.noEmail
              : `${account.email} (${account.email_verified ? words.verified : words.unverified})`
          }
        </dd>
        <dt>${words.created}</dt>
        <dd><time datetime="${created}">${formatTime(created)}</time></dd>
      </dl>
      ${
        canVerify &&
        html`<form method="post" action="/account/email">
          ${carryCsrf(visit)}${hidden({ back: "/account" })}${button(words.verify, { kind: "quiet" })}
        </form>`
      }
    <details${problem?.fields["email"] !== undefined && html` open`}><summary>${words.changeEmail}</summary>
<form method="post" action="/account/email/change" class="inline">
${carryCsrf(visit)}${hidden({ back: "/account" })}${field(
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
</form></details>
</section>
    <section class="card">
      <form method="post" action="/account/profile">
        ${carryCsrf(visit)}${hidden({ back: "/account" })}${field(
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
        )}${button(words.save)}
      </form>
    </section>`;
  return showAccountPage(parts, visit, "profile", { title: words.profile, problem, body });
}
