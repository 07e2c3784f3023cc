// Setting up a second factor: QR code, first code, backup codes.
import type { FactorSetup } from "../factor/factors.ts";
import { button, field, hidden } from "./form.ts";
import { html, type Part } from "./html.ts";
import type { PageRequest } from "./page-request.ts";
import { carryCsrf, showPage, type PageServices } from "./page-services.ts";
import type { Problem } from "./problem.ts";
import type { PageResponse } from "./route.ts";

/** Target of the form for the first code. */
export interface FirstCode {
  action: string;
  continue: string | undefined;
}

/** Shows the QR code and the field for the first code. */
export function showTotpSetup(
  services: PageServices,
  request: PageRequest,
  setup: FactorSetup,
  first: FirstCode,
): PageResponse {
  const { enrol } = request.language.messages;
  const { secret, qr } = setup as Extract<FactorSetup, { secret: string }>;
  const groups = secret.match(/.{1,4}/g)?.join(" ");
  const body = html`<p>${enrol.scan}</p>
    <img class="qr" src="${qr}" alt="${enrol.qr}" />
    <p class="hint">${enrol.key}</p>
    <code class="secret">${groups}</code>
    ${askForFirstCode(request, setup.id, enrol.enterCode, first)}`;
  return showPage(services, request, { title: enrol.totpTitle, body }, { hasImage: true });
}

/** Shows the field for the first code only: the code was sent, or the QR code has been scanned. */
export function showFirstCode(
  services: PageServices,
  request: PageRequest,
  id: string,
  text: string,
  first: FirstCode,
  problem?: Problem,
): PageResponse {
  const { enrol } = request.language.messages;
  return showPage(services, request, {
    title: enrol.sentTitle,
    problem,
    body: askForFirstCode(request, id, text, first, problem),
  });
}

/** Shows the backup codes, once. */
export function showBackupCodes(
  services: PageServices,
  request: PageRequest,
  codes: readonly string[],
  target: string,
): PageResponse {
  const { enrol } = request.language.messages;
  const { name, host } = services.frame.brand;
  const body = html`<p>${enrol.codesText}</p>
    <ul class="codes">
      ${codes.map((code) => html`<li>${code}</li>`)}
    </ul>
    <div
      class="row"
      data-codes
      data-heading="${enrol.codesHeading(name, host)}"
      data-file="backup-codes-${host.replaceAll(/[^a-z0-9.-]/gi, "-")}.txt"
      data-copied="${enrol.copied}"
      data-failed="${enrol.copyFailed}"
      hidden
    >
      ${(["copy", "save", "print"] as const).map(
        (action) =>
          html`<button type="button" class="quiet" value="${action}">${enrol[action]}</button>`,
      )}
    </div>
    <p class="hint" role="status" data-said></p>
    <p><a class="button full" href="${target}">${enrol.codesDone}</a></p>`;
  return showPage(services, request, { title: enrol.codesTitle, scripts: ["codes"], body });
}

function askForFirstCode(
  request: PageRequest,
  id: string,
  text: string,
  first: FirstCode,
  problem?: Problem,
): Part {
  const { messages } = request.language;
  return html`<form method="post" action="${first.action}">
    ${carryCsrf(request)}${hidden({ factor_id: id, continue: first.continue })}
    <p>${text}</p>
    ${field(
      messages,
      {
        name: "code",
        label: messages.fields.code,
        autocomplete: "one-time-code",
        isFirst: true,
        maxLength: 16,
        isCode: "numeric",
      },
      problem,
    )}
    <div class="full">${button(messages.factor.submit, { isFull: true })}</div>
  </form>`;
}
