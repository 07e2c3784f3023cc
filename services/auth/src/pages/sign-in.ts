// Signing in: with a password or a passkey, alone or on the way to an application.
import type { AuthenticationResponseJSON } from "@simplewebauthn/server";
import { assertion } from "../factor/credential.ts";
import { button, field, hidden } from "./form.ts";
import { html } from "./html.ts";
import {
  admit,
  attempt,
  carryCsrf,
  goOn,
  keepPending,
  passkeyForm,
  readCredential,
  showPage,
  type PageParts,
} from "./page-parts.ts";
import type { Problem } from "./problem.ts";
import { readContinue, withQuery, type Answer, type Form, type PageRoute } from "./route.ts";
import type { Visit } from "./visit.ts";

const passkeyOptionsPath = "/sign-in/passkey/options";

/** How the sign-in page differs. */
export interface SignInView {
  /** Where to afterwards. */
  target: string | undefined;
  username?: string | undefined;
  problem?: Problem | undefined;
  /** The application that waits. */
  client?: string;
}

/** The routes. */
export function listSignInRoutes(parts: PageParts): PageRoute[] {
  return [
    {
      method: "GET",
      path: "/",
      access: "public",
      handle: () => ({ kind: "redirect", to: "/account" }),
    },
    {
      method: "GET",
      path: "/sign-in",
      access: "public",
      handle: (visit) => {
        const target = readContinue(visit.query.get("continue"));
        const isOther = visit.query.get("as") === "other";
        if (visit.visitor !== undefined && !isOther)
          return goOn(parts, visit, target ?? "/account");
        return showSignIn(parts, visit, { target });
      },
    },
    {
      method: "POST",
      path: "/sign-in",
      access: "public",
      handle: (visit, form) => signInWithPassword(parts, visit, form),
    },
    {
      method: "POST",
      path: passkeyOptionsPath,
      access: "public",
      handle: async () => ({ kind: "json", body: await parts.passkeys.beginLogin() }),
    },
    {
      method: "POST",
      path: "/sign-in/passkey",
      access: "public",
      handle: (visit, form) => signInWithPasskey(parts, visit, form),
    },
  ];
}

/** The sign-in page. */
export function showSignIn(parts: PageParts, visit: Visit, view: SignInView): Answer {
  const { messages } = visit.language;
  const { signIn, fields } = messages;
  const { target, problem } = view;
  const carried = { continue: target };
  const notices: Readonly<Record<string, string>> = {
    "password-changed": signIn.passwordChanged,
    "signed-out": signIn.signedOut,
    "signed-up": signIn.signedUp,
    late: signIn.tookTooLong,
  };
  const done = visit.query.get("done") ?? "";
  const body = html`${passkeyForm(visit, {
      kind: "get",
      action: "/sign-in/passkey",
      optionsPath: passkeyOptionsPath,
      text: signIn.withPasskey,
      isQuiet: true,
      fields: carried,
    })}
    <p class="or">${signIn.or}</p>
    <form method="post" action="/sign-in">
      ${carryCsrf(visit)}${hidden(carried)}
      ${field(
        messages,
        {
          name: "username",
          label: fields.username,
          autocomplete: "username",
          value: view.username,
          isFirst: view.username === undefined,
          maxLength: 256,
        },
        problem,
      )}${field(
        messages,
        {
          name: "password",
          label: fields.password,
          type: "password",
          autocomplete: "current-password",
          isFirst: view.username !== undefined,
          maxLength: 1024,
        },
        problem,
      )}
      <div class="full">${button(signIn.submit, { isFull: true })}</div>
    </form>
    <div class="below">
      <p><a href="/recover">${signIn.forgotten}</a></p>
      ${
        parts.registration === "open" &&
        html`<p>
          ${signIn.noAccount} <a href="${withQuery("/sign-up", carried)}">${signIn.signUp}</a>
        </p>`
      }${
        view.client !== undefined &&
        html`<form method="post" action="${target}">
          ${carryCsrf(visit)}${button(messages.cancel, { kind: "link", name: "decision", value: "deny" })}
        </form>`
      }
    </div>`;
  return showPage(parts, visit, {
    title: view.client === undefined ? signIn.title : signIn.titleFor(view.client),
    problem,
    done: Object.hasOwn(notices, done) ? notices[done] : undefined,
    hasPasskeys: true,
    body,
  });
}

/** Reads an assertion out of a form and finds whose passkey it is. */
export async function checkPasskey(parts: PageParts, visit: Visit, form: Form) {
  const { problems } = visit.language.messages;
  const read = assertion.safeParse(readCredential(form.get("credential")));
  if (!read.success) {
    return { problem: { status: 422, text: problems.wrongPasskey, fields: {} } };
  }
  const response = read.data as unknown as AuthenticationResponseJSON;
  return attempt(visit, () => parts.login.checkPasskey(response, visit.origin), {
    unauthorized: problems.wrongPasskey,
  });
}

async function signInWithPassword(parts: PageParts, visit: Visit, form: Form): Promise<Answer> {
  const { login, secondFactor, cookies } = parts;
  const { problems } = visit.language.messages;
  const target = readContinue(form.get("continue"));
  const username = form.get("username") ?? "";
  const checked = await attempt(
    visit,
    async () => {
      const account = await login.checkPassword(
        username.slice(0, 256),
        (form.get("password") ?? "").slice(0, 1024),
        visit.origin,
        cookies.read(visit.headers, "platform_device"),
      );
      return secondFactor.proceed(account, visit.origin, { mint: false });
    },
    { unauthorized: problems.wrongPassword },
  );
  if ("problem" in checked) {
    return showSignIn(parts, visit, { target, username, problem: checked.problem });
  }
  const { value: outcome } = checked;
  if (outcome.kind === "signed-in") {
    return admit(parts, visit, outcome.signedIn, target ?? "/account");
  }
  if (outcome.kind === "passkey") {
    const problem = { status: 403, text: problems.passkeyNeeded, fields: {} };
    return showSignIn(parts, visit, { target, username, problem });
  }
  keepPending(parts, visit, outcome.challenge.mfa_token);
  return { kind: "redirect", to: withQuery("/sign-in/factor", { continue: target }) };
}

async function signInWithPasskey(parts: PageParts, visit: Visit, form: Form): Promise<Answer> {
  const target = readContinue(form.get("continue"));
  const checked = await checkPasskey(parts, visit, form);
  if ("problem" in checked) return showSignIn(parts, visit, { target, problem: checked.problem });
  const { account, amr } = checked.value;
  const proof = { amr, acr: "2" };
  const signedIn = await parts.login.open(account, proof, visit.origin, { mint: false });
  return admit(parts, visit, signedIn, target ?? "/account");
}
