// The sign-in page: password or passkey, alone or for an application.
import type { AuthenticationResponseJSON } from "@simplewebauthn/server";
import { assertion } from "../factor/credential.ts";
import type { SignInOutcome } from "../sign-in/sign-in.ts";
import { button, field, hidden } from "./form.ts";
import { html } from "./html.ts";
import type { PageRequest } from "./page-request.ts";
import {
  admit,
  attempt,
  carryCsrf,
  goOn,
  keepPending,
  passkeyForm,
  readCredential,
  showPage,
  type PageServices,
} from "./page-services.ts";
import type { Problem } from "./problem.ts";
import { readContinue, withQuery, type PageResponse, type Form, type PageRoute } from "./route.ts";

const PASSKEY_OPTIONS_PATH = "/sign-in/passkey/options";

/** Variable content of the sign-in page. */
export interface SignInView {
  /** The path to continue at. */
  target: string | undefined;
  username?: string | undefined;
  problem?: Problem | undefined;
  /** Name of the waiting application. */
  client?: string;
}

export function createSignInRoutes(services: PageServices): PageRoute[] {
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
      handle: (request) => {
        const target = readContinue(request.query.get("continue"));
        const isOther = request.query.get("as") === "other";
        if (request.user !== undefined && !isOther)
          return goOn(services, request, target ?? "/account");
        return showSignIn(services, request, { target });
      },
    },
    {
      method: "POST",
      path: "/sign-in",
      access: "public",
      handle: (request, form) => signInWithPassword(services, request, form),
    },
    {
      method: "POST",
      path: PASSKEY_OPTIONS_PATH,
      access: "public",
      handle: async () => ({ kind: "json", body: await services.passkeys.beginLogin() }),
    },
    {
      method: "POST",
      path: "/sign-in/passkey",
      access: "public",
      handle: (request, form) => signInWithPasskey(services, request, form),
    },
  ];
}

/** Shows the sign-in page. */
export function showSignIn(
  services: PageServices,
  request: PageRequest,
  view: SignInView,
): PageResponse {
  const { messages } = request.language;
  const { signIn, fields } = messages;
  const { target, problem } = view;
  const carried = { continue: target };
  const notices: Readonly<Record<string, string>> = {
    "password-changed": signIn.passwordChanged,
    "signed-out": signIn.signedOut,
    "signed-up": signIn.signedUp,
    late: signIn.tookTooLong,
  };
  const done = request.query.get("done") ?? "";
  const body = html`${passkeyForm(request, {
      kind: "get",
      action: "/sign-in/passkey",
      optionsPath: PASSKEY_OPTIONS_PATH,
      text: signIn.withPasskey,
      isQuiet: true,
      canFillIn: true,
      fields: carried,
    })}
    <p class="or">${signIn.or}</p>
    <form method="post" action="/sign-in">
      ${carryCsrf(request)}${hidden(carried)}
      ${field(
        messages,
        {
          name: "username",
          label: fields.username,
          autocomplete: "username webauthn",
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
        services.registration === "open" &&
        html`<p>
          ${signIn.noAccount} <a href="${withQuery("/sign-up", carried)}">${signIn.signUp}</a>
        </p>`
      }${
        view.client !== undefined &&
        html`<form method="post" action="${target}">
          ${carryCsrf(request)}${button(messages.cancel, { kind: "link", name: "decision", value: "deny" })}
        </form>`
      }
    </div>`;
  return showPage(services, request, {
    title: view.client === undefined ? signIn.title : signIn.titleFor(view.client),
    problem,
    done: Object.hasOwn(notices, done) ? notices[done] : undefined,
    scripts: ["passkey", "password"],
    body,
  });
}

/** Runs `work` with the passkey assertion of a form; returns a problem for an invalid one. */
export async function attemptWithPasskey<T>(
  request: PageRequest,
  form: Form,
  work: (response: AuthenticationResponseJSON) => Promise<T>,
): Promise<{ value: T } | { problem: Problem }> {
  const { wrongPasskey } = request.language.messages.problems;
  const read = assertion.safeParse(readCredential(form.get("credential")));
  if (!read.success) return { problem: { status: 422, text: wrongPasskey, fields: {} } };
  const response = read.data as unknown as AuthenticationResponseJSON;
  return attempt(request, () => work(response), { unauthorized: wrongPasskey });
}

/** Continues after one step of a sign-in: into the account, or to the second factor. */
export async function continueSignIn(
  services: PageServices,
  request: PageRequest,
  outcome: SignInOutcome,
  target: string | undefined,
  username?: string,
): Promise<PageResponse> {
  switch (outcome.kind) {
    case "signed-in":
      return admit(services, request, outcome.signedIn, target ?? "/account");
    case "passkey": {
      const text = request.language.messages.problems.passkeyNeeded;
      const problem = { status: 403, text, fields: {} };
      return showSignIn(services, request, { target, username, problem });
    }
    case "factor":
      keepPending(services, request, outcome.challenge.mfa_token);
      return { kind: "redirect", to: withQuery("/sign-in/factor", { continue: target }) };
    default:
      return outcome satisfies never;
  }
}

async function signInWithPassword(
  services: PageServices,
  request: PageRequest,
  form: Form,
): Promise<PageResponse> {
  const { signIn, cookies } = services;
  const target = readContinue(form.get("continue"));
  const username = form.get("username") ?? "";
  const signedIn = await attempt(
    request,
    () =>
      signIn.signIn(
        {
          kind: "password",
          username: username.slice(0, 256),
          password: (form.get("password") ?? "").slice(0, 1024),
          deviceMark: cookies.read(request.headers, "platform_device"),
        },
        request.origin,
        { mint: false },
      ),
    { unauthorized: request.language.messages.problems.wrongPassword },
  );
  return "problem" in signedIn
    ? showSignIn(services, request, { target, username, problem: signedIn.problem })
    : continueSignIn(services, request, signedIn.value, target, username);
}

async function signInWithPasskey(
  services: PageServices,
  request: PageRequest,
  form: Form,
): Promise<PageResponse> {
  const target = readContinue(form.get("continue"));
  const signedIn = await attemptWithPasskey(request, form, (response) =>
    services.signIn.signIn({ kind: "passkey", response }, request.origin, { mint: false }),
  );
  return "problem" in signedIn
    ? showSignIn(services, request, { target, problem: signedIn.problem })
    : continueSignIn(services, request, signedIn.value, target);
}
