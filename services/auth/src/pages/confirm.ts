// Confirmation of the user's identity, before sensitive changes and for applications that require a fresh or stronger
// sign-in.
import { PlatformError } from "@platform/kernel/errors";
import { button, field, hidden } from "./form.ts";
import { html } from "./html.ts";
import {
  admit,
  attempt,
  carryCsrf,
  keepPending,
  passkeyForm,
  showPage,
  type PageServices,
} from "./page-services.ts";
import type { Problem } from "./problem.ts";
import {
  readContinue,
  withQuery,
  type PageResponse,
  type Form,
  type PageRoute,
  type SignedInRequest,
} from "./route.ts";
import { askForCode } from "./second-factor.ts";
import { attemptWithPasskey, continueSignIn } from "./sign-in.ts";

const PATH = "/confirm";

/** Content of the confirmation page. */
interface ConfirmView {
  target: string | undefined;
  /** `2` if a second factor is required. */
  level: string | undefined;
  way?: string | undefined;
  problem?: Problem | undefined;
}

export function createConfirmRoutes(services: PageServices): PageRoute[] {
  return [
    {
      method: "GET",
      path: PATH,
      access: "signed-in",
      handle: (request) =>
        show(services, request, {
          target: readContinue(request.query.get("continue")),
          level: request.query.get("level") === "2" ? "2" : undefined,
          way: request.query.get("way") ?? undefined,
        }),
    },
    {
      method: "POST",
      path: PATH,
      access: "signed-in",
      handle: (request, form) => confirm(services, request, form),
    },
    {
      method: "POST",
      path: `${PATH}/passkey`,
      access: "signed-in",
      handle: (request, form) => confirmWithPasskey(services, request, form),
    },
    {
      method: "POST",
      path: `${PATH}/send`,
      access: "signed-in",
      handle: async (request, form) => {
        const target = readContinue(form.get("continue"));
        const way = form.get("factor") ?? "";
        const sent = await attempt(request, async () =>
          services.secondFactors.send(await findChallenge(services, request), way),
        );
        return "problem" in sent
          ? show(services, request, { target, level: undefined, problem: sent.problem })
          : { kind: "redirect", to: withQuery(PATH, { way, continue: target }) };
      },
    },
  ];
}

// An existing challenge is reused, because codes that were sent are valid for it only.
async function findChallenge(services: PageServices, request: SignedInRequest): Promise<string> {
  const { secondFactors, cookies } = services;
  const { account, session } = request.user;
  const known = cookies.read(request.headers, "platform_pending");
  if (known !== undefined) {
    const pending = await secondFactors.find(known);
    if (pending?.kind === "step-up" && pending.account.id === account.id) return known;
  }
  // A negative maximum age: the user is asked even in a fresh session.
  const wanted = { acrValues: [], maxAgeMs: -1 };
  const challenge = await secondFactors.stepUp(account, session, wanted, { mint: false });
  if (challenge === undefined) throw new PlatformError("conflict");
  keepPending(services, request, challenge.mfa_token);
  return challenge.mfa_token;
}

async function show(
  services: PageServices,
  request: SignedInRequest,
  view: ConfirmView,
): Promise<PageResponse> {
  const { messages } = request.language;
  const { confirm: words, signIn, fields } = messages;
  const { account } = request.user;
  const { target, level, problem } = view;
  const [factors, passkeys] = await Promise.all([
    services.factors.list(account.id),
    services.passkeys.list(account.id),
  ]);
  const hasPasskeys = passkeys.length > 0;
  const needsSetup = level === "2" && factors.length === 0 && !hasPasskeys;
  const password = html`<form method="post" action="${PATH}">
    ${carryCsrf(request)}${hidden({ continue: target })}
    ${field(
      messages,
      {
        name: "password",
        label: fields.password,
        type: "password",
        autocomplete: "current-password",
        isFirst: true,
        maxLength: 1024,
      },
      problem,
    )}
    <div class="full">${button(messages.factor.submit, { isFull: true })}</div>
  </form>`;
  const proofs = html`${
    hasPasskeys &&
    passkeyForm(request, {
      kind: "get",
      action: `${PATH}/passkey`,
      optionsPath: "/sign-in/passkey/options",
      text: words.withPasskey,
      fields: { continue: target },
      isQuiet: factors.length > 0 || level !== "2",
    })
  }${hasPasskeys && (factors.length > 0 || level !== "2") && html`<p class="or">${factors.length > 0 ? signIn.orCode : signIn.or}</p>`}${
    factors.length > 0
      ? askForCode(request, {
          factors,
          way: view.way,
          target,
          action: PATH,
          sendAction: `${PATH}/send`,
          problem,
        })
      : level !== "2" && password
  }`;
  const setUp = html`<p>${words.noSecond}</p>
    <p><a class="button full" href="/account/security">${words.setUp}</a></p>`;
  const body = html`<p>${level === "2" ? words.strongerText : words.text}</p>
    <p class="soft">${messages.signedInAs(account.username)}</p>
    ${needsSetup ? setUp : proofs}
    <div class="below">
      <p>
        <a href="${withQuery("/sign-in", { continue: target, as: "other" })}"
          >${words.otherAccount}</a
        >
      </p>
    </div>`;
  const scripts = hasPasskeys ? (["passkey", "password"] as const) : (["password"] as const);
  return showPage(services, request, { title: words.title, problem, scripts, body });
}

async function confirm(
  services: PageServices,
  request: SignedInRequest,
  form: Form,
): Promise<PageResponse> {
  const { problems } = request.language.messages;
  const target = readContinue(form.get("continue"));
  const code = form.get("code")?.trim();
  const confirmed = await attempt(
    request,
    async () => {
      const token = await findChallenge(services, request);
      const deviceMark = services.cookies.read(request.headers, "platform_device");
      const proof =
        code === undefined ? { password: form.get("password") ?? "", deviceMark } : { code };
      return services.signIn.signIn({ kind: "pending", mfaToken: token, ...proof }, request.origin);
    },
    { unauthorized: code === undefined ? problems.wrongCurrentPassword : problems.wrongCode },
  );
  if ("problem" in confirmed) {
    const way = form.get("way");
    return show(services, request, { target, level: undefined, way, problem: confirmed.problem });
  }
  return continueSignIn(services, request, confirmed.value, target);
}

async function confirmWithPasskey(
  services: PageServices,
  request: SignedInRequest,
  form: Form,
): Promise<PageResponse> {
  const { account, session } = request.user;
  const target = readContinue(form.get("continue"));
  const confirmed = await attemptWithPasskey(request, form, (response) =>
    services.signIn.confirmWithPasskey(account, session, response, request.origin),
  );
  if ("problem" in confirmed) {
    return show(services, request, { target, level: undefined, problem: confirmed.problem });
  }
  return admit(services, request, confirmed.value, target ?? "/account");
}
