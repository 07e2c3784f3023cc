// The second step of a sign-in: which factor, its code, or setting one up where a policy asks for it.
import { PlatformError } from "@platform/kernel/errors";
import type { PendingSignIn } from "../sign-in/second-factors.ts";
import type { FactorItem } from "../factor/factors.ts";
import { showBackupCodes, showFirstCode, showTotpSetup } from "./enrolment.ts";
import { button, field, hidden } from "./form.ts";
import { html, type Html, type Part } from "./html.ts";
import { attempt, carryCsrf, showPage, type PageParts } from "./page-parts.ts";
import type { Problem } from "./problem.ts";
import { readContinue, withQuery, type Answer, type Form, type PageRoute } from "./route.ts";
import { continueSignIn } from "./sign-in.ts";
import type { Visit } from "./visit.ts";

/** How a code is asked for. */
export interface CodeQuestion {
  factors: readonly FactorItem[];
  /** The way that was chosen: a factor's id, or `backup`; the first factor by default. */
  way: string | undefined;
  target: string | undefined;
  /** Where the code, and the wish to have one sent, are posted to. */
  action: string;
  sendAction: string;
  problem?: Problem | undefined;
}

/** The routes. */
export function createSecondFactorRoutes(parts: PageParts): PageRoute[] {
  const path = "/sign-in/factor";
  return [
    {
      method: "GET",
      path,
      access: "public",
      handle: (visit) => withPending(parts, visit, (pending) => show(parts, visit, pending)),
    },
    {
      method: "POST",
      path,
      access: "public",
      handle: (visit, form) =>
        withPending(parts, visit, (pending, token) => verify(parts, visit, form, pending, token)),
    },
    {
      method: "POST",
      path: `${path}/send`,
      access: "public",
      handle: (visit, form) =>
        withPending(parts, visit, async (pending, token) => {
          const id = form.get("factor") ?? "";
          const sent = await attempt(visit, () => parts.secondFactors.send(token, id));
          const target = readContinue(form.get("continue"));
          if ("problem" in sent) return show(parts, visit, pending, sent.problem, target);
          return { kind: "redirect", to: withQuery(path, { way: id, continue: target }) };
        }),
    },
    {
      method: "POST",
      path: `${path}/setup`,
      access: "public",
      handle: (visit, form) =>
        withPending(parts, visit, async (_pending, token) => {
          const account = await parts.secondFactors.findEnrolling(token);
          const name = visit.language.messages.security.types.totp;
          const setup = await parts.factors.setUpTotp(account, name);
          const target = readContinue(form.get("continue"));
          return showTotpSetup(parts, visit, setup, { action: path, continue: target });
        }),
    },
  ];
}

/** The form for a code, and the other ways there are. */
export function askForCode(visit: Visit, question: CodeQuestion): Part {
  const { messages } = visit.language;
  const { factor: words, fields } = messages;
  const { factors, target } = question;
  const chosen = factors.find(({ id }) => id === question.way) ?? factors[0];
  const isBackup = question.way === "backup";
  const text = isBackup
    ? words.backup
    : chosen?.sent_to === undefined
      ? words.totp
      : words.sent(chosen.sent_to);
  // A code has to be on its way before it can be asked for.
  const isUnsent = !isBackup && chosen?.sent_to !== undefined && question.way === undefined;
  const others = factors.filter((item) => isUnsent || isBackup || item.id !== chosen?.id);
  return html`${
      !isUnsent &&
      html`<form method="post" action="${question.action}">
        ${carryCsrf(visit)}${hidden({ continue: target, way: question.way })}
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
          ...others.map((item) => html`<li>${offerWay(visit, question, item)}</li>`),
          !isBackup && html`<li>${linkWay(question, "backup", words.viaBackup)}</li>`,
        ]}
      </ul>
    </div>`;
}

function offerWay(visit: Visit, question: CodeQuestion, item: FactorItem): Html {
  const { factor: words } = visit.language.messages;
  const { target } = question;
  if (item.sent_to === undefined) return linkWay(question, item.id, words.viaTotp);
  return html`<form method="post" action="${question.sendAction}">
    ${carryCsrf(visit)}${hidden({ factor: item.id, continue: target })}
    ${button(words.send(item.sent_to), { kind: "link" })}
  </form>`;
}

function linkWay({ action, target }: CodeQuestion, way: string, text: string): Html {
  return html`<a href="${withQuery(action, { way, continue: target })}">${text}</a>`;
}

async function withPending(
  parts: PageParts,
  visit: Visit,
  work: (pending: PendingSignIn, token: string) => Promise<Answer> | Answer,
): Promise<Answer> {
  const token = parts.cookies.read(visit.headers, "platform_pending");
  const pending = token === undefined ? undefined : await findPending(parts, token);
  if (token === undefined || pending === undefined) {
    const target = readContinue(visit.query.get("continue"));
    return { kind: "redirect", to: withQuery("/sign-in", { done: "late", continue: target }) };
  }
  return work(pending, token);
}

async function findPending(parts: PageParts, token: string): Promise<PendingSignIn | undefined> {
  try {
    const pending = await parts.secondFactors.find(token);
    return pending?.kind === "step-up" ? undefined : pending;
  } catch (error) {
    // Whoever was disabled meanwhile has nothing that waits.
    if (error instanceof PlatformError && error.code === "unauthorized") return undefined;
    throw error;
  }
}

function show(
  parts: PageParts,
  visit: Visit,
  pending: PendingSignIn,
  problem?: Problem,
  target = readContinue(visit.query.get("continue")),
  way = visit.query.get("way") ?? undefined,
): Answer {
  const { factor: words } = visit.language.messages;
  if (pending.kind === "enrol") {
    const body = html`<p>${words.enrolText}</p>
      <form method="post" action="/sign-in/factor/setup">
        ${carryCsrf(visit)}${hidden({ continue: target })}
        <div class="full">${button(words.enrolSubmit, { isFull: true })}</div>
      </form>`;
    return showPage(parts, visit, { title: words.enrolTitle, problem, body });
  }
  const question = { action: "/sign-in/factor", sendAction: "/sign-in/factor/send" };
  const { factors } = pending;
  return showPage(parts, visit, {
    title: words.title,
    problem,
    body: html`${askForCode(visit, { ...question, factors, way, target, problem })}
      <p>
        <a href="${withQuery("/sign-in", { continue: target, as: "other" })}">${words.startOver}</a>
      </p>`,
  });
}

async function verify(
  parts: PageParts,
  visit: Visit,
  form: Form,
  pending: PendingSignIn,
  token: string,
): Promise<Answer> {
  const target = readContinue(form.get("continue"));
  const factorId = form.get("factor_id");
  const code = (form.get("code") ?? "").trim();
  const { problems } = visit.language.messages;
  const checked = await attempt(
    visit,
    () => parts.signIn.signIn({ kind: "pending", mfaToken: token, code, factorId }, visit.origin),
    { unauthorized: problems.wrongCode, not_found: problems.gone },
  );
  if ("problem" in checked) {
    if (pending.kind === "enrol" && factorId !== undefined) {
      const first = { action: "/sign-in/factor", continue: target };
      const { enterCode } = visit.language.messages.enrol;
      return showFirstCode(parts, visit, factorId, enterCode, first, checked.problem);
    }
    return show(parts, visit, pending, checked.problem, target, form.get("way"));
  }
  const admitted = await continueSignIn(parts, visit, checked.value, target);
  if (pending.kind !== "enrol") return admitted;
  const codes = await parts.factors.renewBackupCodes(pending.account.id);
  return showBackupCodes(parts, visit, codes, target ?? "/account");
}
