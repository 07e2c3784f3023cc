// The security page: password, passkeys, second factors, backup codes.
import type { FactorItem } from "../../factor/factors.ts";
import type { PasskeyItem } from "../../factor/passkeys.ts";
import { nameDevice } from "../../session/device.ts";
import { button, field, hidden } from "../form.ts";
import { html, type Html } from "../html.ts";
import {
  attempt,
  carryCsrf,
  passkeyForm,
  showAccountPage,
  type PageServices,
} from "../page-services.ts";
import type { Problem } from "../problem.ts";
import {
  withQuery,
  type PageResponse,
  type Form,
  type PageRoute,
  type SignedInRequest,
} from "../route.ts";
import { section, showWhen } from "./section.ts";

/** Path of the security page. */
export const SECURITY_PATH = "/account/security";

/** Creates the routes of the page and of the password form. */
export function createSecurityRoutes(services: PageServices): PageRoute[] {
  return [
    {
      method: "GET",
      path: SECURITY_PATH,
      access: "signed-in",
      handle: (request) => showSecurity(services, request),
    },
    {
      method: "POST",
      path: "/account/password",
      access: "fresh",
      handle: (request, form) => changePassword(services, request, form),
    },
  ];
}

/** Redirects to the page after a change, with a message. */
export function redirectToSecurity(done: string): PageResponse {
  return { kind: "redirect", to: withQuery(SECURITY_PATH, { done }) };
}

/** Shows the page. */
export async function showSecurity(
  services: PageServices,
  request: SignedInRequest,
  problem?: Problem,
): Promise<PageResponse> {
  const { messages } = request.language;
  const { account } = request.user;
  const [passkeys, factors, row] = await Promise.all([
    services.passkeys.list(account.id),
    services.factors.list(account.id),
    services.users.findRow(account.id),
  ]);
  const hasPassword = (row?.password_hash ?? null) !== null;
  const body = html`${showPassword(request, hasPassword, problem)}
  ${showPasskeys(request, passkeys)} ${showFactors(services, request, factors)}`;
  return showAccountPage(services, request, "security", {
    title: messages.account.security,
    problem,
    scripts: ["passkey", "password"],
    body,
  });
}

function showPassword(request: SignedInRequest, hasPassword: boolean, problem?: Problem): Html {
  const { messages } = request.language;
  const { security: words, fields } = messages;
  const isOpen = problem !== undefined && Object.keys(problem.fields).length > 0;
  const submit = hasPassword ? words.changePassword : words.setPassword;
  const body = html`<details${isOpen && html` open`}>
    <summary>${submit}</summary>
    <form method="post" action="/account/password">
      ${startForm(request)}<input type="hidden" name="username" autocomplete="username" value="${request.user.account.username}" />
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
          names: [request.user.account.username, request.user.account.email],
          maxLength: 1024,
        },
        problem,
      )}${button(submit)}
    </form>
  </details>`;
  return section(words.password, words.passwordText, body);
}

function showPasskeys(request: SignedInRequest, items: readonly PasskeyItem[]): Html {
  const { messages } = request.language;
  const { security: words } = messages;
  const list =
    items.length === 0
      ? html`<p>${words.noPasskeys}</p>`
      : html`<ul class="items">
          ${items.map((item) => showPasskey(request, item))}
        </ul>`;
  const add = passkeyForm(request, {
    kind: "create",
    action: "/account/passkeys",
    optionsPath: "/account/passkeys/options",
    text: words.addPasskey,
    isQuiet: true,
    fields: { back: SECURITY_PATH },
    body: field(messages, {
      name: "name",
      id: "passkey-name",
      label: words.passkeyName,
      autocomplete: "off",
      hint: words.passkeyNameHint(nameDevice(request.origin.userAgent)),
      isOptional: true,
      maxLength: 64,
    }),
  });
  return section(words.passkeys, words.passkeysText, html`${list}${add}`);
}

function showPasskey(request: SignedInRequest, item: PasskeyItem): Html {
  const { messages } = request.language;
  const { security: words, account, fields } = messages;
  return html`<li>
    <div class="text">
      <strong
        >${item.name}${item.synced && html`<span class="badge">${words.synced}</span>`}</strong
      >
      <span class="soft">${showUse(request, item)}</span>
      <details>
        <summary>${words.rename}</summary>
        <form method="post" action="/account/passkeys/rename" class="inline">
          ${startForm(request)}${hidden({ id: item.id })}${field(messages, {
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
      ${startForm(request)}${hidden({ id: item.id })}${button(account.remove, { kind: "danger", label: words.removeNamed(item.name) })}
    </form>
  </li>`;
}

function showFactors(
  services: PageServices,
  request: SignedInRequest,
  items: readonly FactorItem[],
): Html {
  const { security: words } = request.language.messages;
  const body = html`${
      items.length === 0
        ? html`<p>${words.noFactors}</p>`
        : html`<ul class="items">
            ${items.map((item) => showFactor(request, item))}
          </ul>`
    }
    <form method="post" action="/account/factors/totp">
      ${startForm(request)}${button(words.addTotp, { kind: "quiet" })}
    </form>
    ${services.canSend && showSentFactors(request)}`;
  const backup = html`<form method="post" action="/account/factors/backup-codes">
    ${startForm(request)}${button(words.newBackupCodes, { kind: "quiet" })}
  </form>`;
  return html`${section(words.factors, words.factorsText, body)}${
    items.length > 0 && section(words.backupCodes, words.backupCodesText, backup)
  }`;
}

// Times of a passkey or factor: added and last used.
function showUse(
  { language }: SignedInRequest,
  item: Pick<PasskeyItem, "created_at" | "last_used_at">,
): Html {
  const { security: words } = language.messages;
  const used =
    item.last_used_at === null
      ? words.neverUsed
      : showWhen(words.lastUsed, language, item.last_used_at);
  return html`${showWhen(words.added, language, item.created_at)}, ${used}`;
}

function showFactor(request: SignedInRequest, item: FactorItem): Html {
  const { messages } = request.language;
  const { security: words, account } = messages;
  return html`<li>
    <div class="text">
      <strong>${words.types[item.type]}</strong>
      <span class="soft"
        >${item.sent_to !== undefined && `${item.sent_to} · `}${showUse(request, item)}</span
      >
    </div>
    <form method="post" action="/account/factors/remove">
      ${startForm(request)}${hidden({ id: item.id })}${button(account.remove, { kind: "danger", label: words.removeNamed(words.types[item.type]) })}
    </form>
  </li>`;
}

function showSentFactors(request: SignedInRequest): Html {
  const { messages } = request.language;
  const { security: words, fields } = messages;
  return html`<details>
      <summary>${words.addEmail}</summary>
      <form method="post" action="/account/factors/sent" class="inline">
        ${startForm(request)}${hidden({ type: "email" })}${field(messages, {
          name: "to",
          id: "factor-email",
          label: fields.email,
          type: "email",
          autocomplete: "email",
          value: request.user.account.email,
          maxLength: 254,
        })}${button(words.addEmail, { kind: "quiet" })}
      </form>
    </details>
    <details>
      <summary>${words.addSms}</summary>
      <form method="post" action="/account/factors/sent" class="inline">
        ${startForm(request)}${hidden({ type: "sms" })}${field(messages, {
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

async function changePassword(
  services: PageServices,
  request: SignedInRequest,
  form: Form,
): Promise<PageResponse> {
  const { account, session } = request.user;
  const { wrongCurrentPassword } = request.language.messages.problems;
  const changed = await attempt(
    request,
    () =>
      services.credentials.changePassword(
        account,
        (form.get("current_password") ?? "").slice(0, 1024),
        (form.get("new_password") ?? "").slice(0, 1024),
        session.id,
        request.origin,
      ),
    { unauthorized: wrongCurrentPassword },
  );
  if ("value" in changed) return redirectToSecurity("password-changed");
  const { problem } = changed;
  const isWrong = problem.text === wrongCurrentPassword;
  const fields = isWrong ? { current_password: wrongCurrentPassword } : problem.fields;
  return showSecurity(services, request, { ...problem, fields });
}

/** Hidden fields of every form of the page: CSRF token, and the page to return to after a confirmation. */
function startForm(request: SignedInRequest): Html {
  return html`${carryCsrf(request)}${hidden({ back: SECURITY_PATH })}`;
}
