// What somebody signs in with: password, passkeys, second factors, backup codes.
import type { FactorItem } from "../../factor/factors.ts";
import type { PasskeyItem } from "../../factor/passkeys.ts";
import { button, field, hidden } from "../form.ts";
import { html, type Html } from "../html.ts";
import { attempt, carryCsrf, passkeyForm, showAccountPage, type PageParts } from "../page-parts.ts";
import type { Problem } from "../problem.ts";
import { withQuery, type Answer, type Form, type PageRoute, type SignedInVisit } from "../route.ts";

/** The page that these forms belong to. */
export const SECURITY_PATH = "/account/security";

/** The routes of the page itself and of the password. */
export function createSecurityRoutes(parts: PageParts): PageRoute[] {
  return [
    {
      method: "GET",
      path: SECURITY_PATH,
      access: "signed-in",
      handle: (visit) => showSecurity(parts, visit),
    },
    {
      method: "POST",
      path: "/account/password",
      access: "fresh",
      handle: (visit, form) => changePassword(parts, visit, form),
    },
  ];
}

/** After a change: back to the page, which says what was done. */
export function redirectToSecurity(done: string): Answer {
  return { kind: "redirect", to: withQuery(SECURITY_PATH, { done }) };
}

/** The page. */
export async function showSecurity(
  parts: PageParts,
  visit: SignedInVisit,
  problem?: Problem,
): Promise<Answer> {
  const { messages } = visit.language;
  const { account } = visit.visitor;
  const [passkeys, factors, row] = await Promise.all([
    parts.passkeys.list(account.id),
    parts.factors.list(account.id),
    parts.users.findRow(account.id),
  ]);
  const hasPassword = (row?.password_hash ?? null) !== null;
  const body = html`${showPassword(visit, hasPassword, problem)} ${showPasskeys(visit, passkeys)}
  ${showFactors(parts, visit, factors)}`;
  return showAccountPage(parts, visit, "security", {
    title: messages.account.security,
    problem,
    hasPasskeys: true,
    body,
  });
}

function showPassword(visit: SignedInVisit, hasPassword: boolean, problem?: Problem): Html {
  const { messages } = visit.language;
  const { security: words, fields } = messages;
  const isOpen = problem !== undefined && Object.keys(problem.fields).length > 0;
  const submit = hasPassword ? words.changePassword : words.setPassword;
  return html`<section class="card">
<h2>${words.password}</h2>
<p class="soft">${words.passwordText}</p>
<details${isOpen && html` open`}><summary>${submit}</summary>
<form method="post" action="/account/password">
${startForm(visit)}<input type="hidden" name="username" autocomplete="username" value="${visit.visitor.account.username}">
${
  hasPassword &&
  field(
    messages,
    {
      name: "current_password",
      label: fields.currentPassword,
      type: "password",
      autocomplete: "current-password",
      maxLength: 1024,
    },
    problem,
  )
}${field(
    messages,
    {
      name: "new_password",
      label: fields.newPassword,
      type: "password",
      autocomplete: "new-password",
      hint: fields.passwordRule,
      maxLength: 1024,
    },
    problem,
  )}${button(submit)}
</form></details>
</section>`;
}

function showPasskeys(visit: SignedInVisit, items: readonly PasskeyItem[]): Html {
  const { security: words } = visit.language.messages;
  return html`<section class="card">
    <h2>${words.passkeys}</h2>
    <p class="soft">${words.passkeysText}</p>
    ${
      items.length === 0
        ? html`<p>${words.noPasskeys}</p>`
        : html`<ul class="items">
            ${items.map((item) => showPasskey(visit, item))}
          </ul>`
    }
    ${passkeyForm(visit, {
      kind: "create",
      action: "/account/passkeys",
      optionsPath: "/account/passkeys/options",
      text: words.addPasskey,
      fields: { back: SECURITY_PATH },
    })}
  </section>`;
}

function showPasskey(visit: SignedInVisit, item: PasskeyItem): Html {
  const { messages, formatTime } = visit.language;
  const { security: words, account, fields } = messages;
  const used =
    item.last_used_at === null ? words.neverUsed : words.lastUsed(formatTime(item.last_used_at));
  return html`<li>
    <div class="text">
      <strong
        >${item.name}${item.synced && html`<span class="badge">${words.synced}</span>`}</strong
      >
      <span class="soft">${words.added(formatTime(item.created_at))}, ${used}</span>
      <details>
        <summary>${words.rename}</summary>
        <form method="post" action="/account/passkeys/rename" class="inline">
          ${startForm(visit)}${hidden({ id: item.id })}${field(messages, {
            name: "name",
            id: `name-${item.id}`,
            label: fields.deviceName,
            autocomplete: "off",
            value: item.name,
            maxLength: 64,
          })}${button(account.save, { kind: "quiet", label: words.renameNamed(item.name) })}
        </form>
      </details>
    </div>
    <form method="post" action="/account/passkeys/remove">
      ${startForm(visit)}${hidden({ id: item.id })}${button(account.remove, { kind: "danger", label: words.removeNamed(item.name) })}
    </form>
  </li>`;
}

function showFactors(parts: PageParts, visit: SignedInVisit, items: readonly FactorItem[]): Html {
  const { security: words } = visit.language.messages;
  return html`<section class="card">
    <h2>${words.factors}</h2>
    <p class="soft">${words.factorsText}</p>
    ${
      items.length === 0
        ? html`<p>${words.noFactors}</p>`
        : html`<ul class="items">
            ${items.map((item) => showFactor(visit, item))}
          </ul>`
    }
    <form method="post" action="/account/factors/totp">
      ${startForm(visit)}${button(words.addTotp, items.length === 0 ? {} : { kind: "quiet" })}
    </form>
    ${parts.canSend && showSentFactors(visit)}
    ${
      items.length > 0 &&
      html`<h3>${words.backupCodes}</h3>
        <p class="soft">${words.backupCodesText}</p>
        <form method="post" action="/account/factors/backup-codes">
          ${startForm(visit)}${button(words.newBackupCodes, { kind: "quiet" })}
        </form>`
    }
  </section>`;
}

function showFactor(visit: SignedInVisit, item: FactorItem): Html {
  const { messages, formatTime } = visit.language;
  const { security: words, account } = messages;
  const used =
    item.last_used_at === null ? words.neverUsed : words.lastUsed(formatTime(item.last_used_at));
  return html`<li>
    <div class="text">
      <strong>${words.types[item.type]}</strong>
      <span class="soft"
        >${item.sent_to !== undefined && `${item.sent_to} · `}${words.added(formatTime(item.created_at))},
        ${used}</span
      >
    </div>
    <form method="post" action="/account/factors/remove">
      ${startForm(visit)}${hidden({ id: item.id })}${button(account.remove, { kind: "danger", label: words.removeNamed(words.types[item.type]) })}
    </form>
  </li>`;
}

function showSentFactors(visit: SignedInVisit): Html {
  const { messages } = visit.language;
  const { security: words, fields } = messages;
  return html`<details>
      <summary>${words.addEmail}</summary>
      <form method="post" action="/account/factors/sent" class="inline">
        ${startForm(visit)}${hidden({ type: "email" })}${field(messages, {
          name: "to",
          id: "factor-email",
          label: fields.email,
          type: "email",
          autocomplete: "email",
          value: visit.visitor.account.email,
          maxLength: 254,
        })}${button(words.addEmail, { kind: "quiet" })}
      </form>
    </details>
    <details>
      <summary>${words.addSms}</summary>
      <form method="post" action="/account/factors/sent" class="inline">
        ${startForm(visit)}${hidden({ type: "sms" })}${field(messages, {
          name: "to",
          id: "factor-sms",
          label: fields.phone,
          type: "tel",
          autocomplete: "tel",
          hint: fields.phoneHint,
          maxLength: 20,
        })}${button(words.addSms, { kind: "quiet" })}
      </form>
    </details>`;
}

async function changePassword(parts: PageParts, visit: SignedInVisit, form: Form): Promise<Answer> {
  const { account, session } = visit.visitor;
  const { wrongCurrentPassword } = visit.language.messages.problems;
  const changed = await attempt(
    visit,
    () =>
      parts.credentials.changePassword(
        account,
        (form.get("current_password") ?? "").slice(0, 1024),
        (form.get("new_password") ?? "").slice(0, 1024),
        session.id,
        visit.origin,
      ),
    { unauthorized: wrongCurrentPassword },
  );
  if ("value" in changed) return redirectToSecurity("password-changed");
  const { problem } = changed;
  const isWrong = problem.text === wrongCurrentPassword;
  const fields = isWrong ? { current_password: wrongCurrentPassword } : problem.fields;
  return showSecurity(parts, visit, { ...problem, fields });
}

/** What every form of the page carries: its token, and where to come back to from proving who one is. */
export function startForm(visit: SignedInVisit): Html {
  return html`${carryCsrf(visit)}${hidden({ back: SECURITY_PATH })}`;
}
