// The second step of a sign-in: entering a code, or enrolling a factor that a policy requires.
import { PlatformError } from "@platform/kernel/errors";
import type { FactorItem } from "../factor/factors.ts";
import type { PendingSignIn } from "../sign-in/second-factors.ts";
import { showBackupCodes, showFirstCode, showTotpSetup } from "./enrolment.ts";
import { button, field, hidden } from "./form.ts";
import { html, type Html, type Part } from "./html.ts";
import type { PageRequest } from "./page-request.ts";
import { attempt, carryCsrf, showPage, type PageServices } from "./page-services.ts";
import type { Problem } from "./problem.ts";
import { readContinue, withQuery, type PageResponse, type Form, type PageRoute } from "./route.ts";
import { continueSignIn } from "./sign-in.ts";

/** The form for a code. */
export interface CodeQuestion {
  factors: readonly FactorItem[];
  /** The chosen method: a factor's id or `backup`; the first factor by default. */
  way: string | undefined;
  target: string | undefined;
  /** Targets of the forms for the code and for sending one. */
  action: string;
  sendAction: string;
  problem?: Problem | undefined;
}

export function createSecondFactorRoutes(services: PageServices): PageRoute[] {
  const path = "/sign-in/factor";
  return [
    {
      method: "GET",
      path,
      access: "public",
      handle: (request) =>
        withPending(services, request, (pending) => show(services, request, pending)),
    },
    {
      method: "POST",
      path,
      access: "public",
      handle: (request, form) =>
        withPending(services, request, (pending, token) =>
          verify(services, request, form, pending, token),
        ),
    },
    {
      method: "POST",
      path: `${path}/send`,
      access: "public",
      handle: (request, form) =>
        withPending(services, request, async (pending, token) => {
          const id = form.get("factor") ?? "";
          const sent = await attempt(request, () => services.secondFactors.send(token, id));
          const target = readContinue(form.get("continue"));
          if ("problem" in sent) return show(services, request, pending, sent.problem, target);
          return { kind: "redirect", to: withQuery(path, { way: id, continue: target }) };
        }),
    },
    {
      method: "POST",
      path: `${path}/setup`,
      access: "public",
      handle: (request, form) =>
        withPending(services, request, async (_pending, token) => {
          const account = await services.secondFactors.findEnrolling(token);
          const name = request.language.messages.security.types.totp;
          const setup = await services.factors.setUpTotp(account, name);
          const target = readContinue(form.get("continue"));
          return showTotpSetup(services, request, setup, { action: path, continue: target });
        }),
    },
  ];
}

/** The form for a code, with links to the other methods. */
export function askForCode(request: PageRequest, question: CodeQuestion): Part {
  const { messages } = request.language;
  const { factor: words, fields } = messages;
  const { factors, target } = question;
  const chosen = factors.find(({ id }) => id === question.way) ?? factors[0];
  const isBackup = question.way === "backup";
  const text = isBackup
    ? words.backup
    : chosen?.sent_to === undefined
      ? words.totp
      : words.sent(chosen.sent_to);
  // Codes by email and SMS must be sent before they can be entered.
  const isUnsent = !isBackup && chosen?.sent_to !== undefined && question.way === undefined;
  const others = factors.filter((item) => isUnsent || isBackup || item.id !== chosen?.id);
  return html`${
      !isUnsent &&
      html`<form method="post" action="${question.action}">
        ${carryCsrf(request)}${hidden({ continue: target, way: question.way })}
        <p>${text}</p>
        ${field(
          messages,
          {
            name: "code",
            label: fields.code,
            autocomplete: "one-time-code",
            isFirst: true,
            maxLength: 32,
            isCode: isBackup ? "text" : "numeric",
          },
          question.problem,
        )}
        <div class="full">${button(words.submit, { isFull: true })}</div>
      </form>`
    }
    <div class="below">
      <h2>${words.choose}</h2>
      <ul class="plain">
        ${[
          ...others.map((item) => html`<li>${offerWay(request, question, item)}</li>`),
          !isBackup && html`<li>${linkWay(question, "backup", words.viaBackup)}</li>`,
        ]}
      </ul>
    </div>`;
}

function offerWay(request: PageRequest, question: CodeQuestion, item: FactorItem): Html {
  const { factor: words } = request.language.messages;
  const { target } = question;
  if (item.sent_to === undefined) return linkWay(question, item.id, words.viaTotp);
  return html`<form method="post" action="${question.sendAction}">
    ${carryCsrf(request)}${hidden({ factor: item.id, continue: target })}
    ${button(words.send(item.sent_to), { kind: "link" })}
  </form>`;
}

function linkWay({ action, target }: CodeQuestion, way: string, text: string): Html {
  return html`<a href="${withQuery(action, { way, continue: target })}">${text}</a>`;
}

async function withPending(
  services: PageServices,
  request: PageRequest,
  work: (pending: PendingSignIn, token: string) => Promise<PageResponse> | PageResponse,
): Promise<PageResponse> {
  const token = services.cookies.read(request.headers, "platform_pending");
  const pending = token === undefined ? undefined : await findPending(services, token);
  if (token === undefined || pending === undefined) {
    const target = readContinue(request.query.get("continue"));
    return { kind: "redirect", to: withQuery("/sign-in", { done: "late", continue: target }) };
  }
  return work(pending, token);
}

async function findPending(
  services: PageServices,
  token: string,
): Promise<PendingSignIn | undefined> {
  try {
    const pending = await services.secondFactors.find(token);
    return pending?.kind === "step-up" ? undefined : pending;
  } catch (error) {
    // A user disabled in the meantime has no pending sign-in.
    if (error instanceof PlatformError && error.code === "unauthorized") return undefined;
    throw error;
  }
}

function show(
  services: PageServices,
  request: PageRequest,
  pending: PendingSignIn,
  problem?: Problem,
  target = readContinue(request.query.get("continue")),
  way = request.query.get("way") ?? undefined,
): PageResponse {
  const { factor: words } = request.language.messages;
  if (pending.kind === "enrol") {
    const body = html`<p>${words.enrolText}</p>
      <form method="post" action="/sign-in/factor/setup">
        ${carryCsrf(request)}${hidden({ continue: target })}
        <div class="full">${button(words.enrolSubmit, { isFull: true })}</div>
      </form>`;
    return showPage(services, request, { title: words.enrolTitle, problem, body });
  }
  const question = { action: "/sign-in/factor", sendAction: "/sign-in/factor/send" };
  const { factors } = pending;
  return showPage(services, request, {
    title: words.title,
    problem,
    body: html`${askForCode(request, { ...question, factors, way, target, problem })}
      <p>
        <a href="${withQuery("/sign-in", { continue: target, as: "other" })}">${words.startOver}</a>
      </p>`,
  });
}

async function verify(
  services: PageServices,
  request: PageRequest,
  form: Form,
  pending: PendingSignIn,
  token: string,
): Promise<PageResponse> {
  const target = readContinue(form.get("continue"));
  const factorId = form.get("factor_id");
  const code = (form.get("code") ?? "").trim();
  const { problems } = request.language.messages;
  const checked = await attempt(
    request,
    () =>
      services.signIn.signIn({ kind: "pending", mfaToken: token, code, factorId }, request.origin),
    { unauthorized: problems.wrongCode, not_found: problems.gone },
  );
  if ("problem" in checked) {
    if (pending.kind === "enrol" && factorId !== undefined) {
      const first = { action: "/sign-in/factor", continue: target };
      const { enterCode } = request.language.messages.enrol;
      return showFirstCode(services, request, factorId, enterCode, first, checked.problem);
    }
    return show(services, request, pending, checked.problem, target, form.get("way"));
  }
  const admitted = await continueSignIn(services, request, checked.value, target);
  if (pending.kind !== "enrol") return admitted;
  const codes = await services.factors.renewBackupCodes(pending.account.id);
  return showBackupCodes(services, request, codes, target ?? "/account");
}
