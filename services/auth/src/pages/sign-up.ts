// Registration pages: open, by invitation, or for the first administrator.
import { button, field, hidden } from "./form.ts";
import { html } from "./html.ts";
import type { Messages } from "./language/en.ts";
import type { PageRequest } from "./page-request.ts";
import { attempt, carryCsrf, goOn, showPage, type PageServices } from "./page-services.ts";
import type { Problem } from "./problem.ts";
import { readContinue, withQuery, type PageResponse, type Form, type PageRoute } from "./route.ts";
import { continueSignIn } from "./sign-in.ts";

/** Content of the registration form. */
interface SignUpForm {
  action: string;
  title: string;
  text?: string;
  carried: Readonly<Record<string, string | undefined>>;
}

export function createSignUpRoutes(services: PageServices): PageRoute[] {
  return [
    {
      method: "GET",
      path: "/sign-up",
      access: "public",
      handle: (request) => {
        const target = readContinue(request.query.get("continue"));
        if (request.user !== undefined) return goOn(services, request, target ?? "/account");
        const invitation = request.query.get("invitation")?.slice(0, 256);
        if (invitation === undefined && services.registration !== "open")
          return showClosed(services, request);
        return showForm(services, request, describeSignUp(request, invitation, target));
      },
    },
    {
      method: "POST",
      path: "/sign-up",
      access: "public",
      handle: (request, form) => signUp(services, request, form),
    },
    {
      method: "GET",
      path: "/setup",
      access: "public",
      handle: async (request) => {
        const token = request.query.get("token")?.slice(0, 256);
        if (token === undefined || !(await services.registrations.isSetUpLink(token)))
          return services.errors.showBadLink(request.language);
        return showForm(services, request, describeSetup(request, token));
      },
    },
    {
      method: "POST",
      path: "/setup",
      access: "public",
      handle: (request, form) => setUp(services, request, form),
    },
  ];
}

function describeSignUp(
  request: PageRequest,
  invitation: string | undefined,
  target: string | undefined,
): SignUpForm {
  const { signUp: words } = request.language.messages;
  return {
    action: "/sign-up",
    title: words.title,
    carried: { invitation, continue: target },
  };
}

function describeSetup(request: PageRequest, token: string): SignUpForm {
  const { signUp: words } = request.language.messages;
  return { action: "/setup", title: words.setupTitle, text: words.setupText, carried: { token } };
}

function showForm(
  services: PageServices,
  request: PageRequest,
  view: SignUpForm,
  entered?: Form,
  problem?: Problem,
): PageResponse {
  const { messages } = request.language;
  const { fields, signUp: words } = messages;
  const body = html`${view.text !== undefined && html`<p>${view.text}</p>`}
    <form method="post" action="${view.action}">
      ${carryCsrf(request)}${hidden(view.carried)}
      ${field(
        messages,
        {
          name: "username",
          label: fields.username,
          autocomplete: "username",
          value: entered?.get("username"),
          isFirst: true,
          maxLength: 64,
        },
        problem,
      )}${field(
        messages,
        {
          name: "email",
          label: fields.email,
          type: "email",
          autocomplete: "email",
          value: entered?.get("email"),
          hint: fields.emailHint,
          isOptional: true,
          maxLength: 254,
        },
        problem,
      )}${field(
        messages,
        {
          name: "password",
          label: fields.password,
          type: "password",
          autocomplete: "new-password",
          hint: fields.passwordRule,
          maxLength: 1024,
        },
        problem,
      )}
      <div class="full">${button(words.submit, { isFull: true })}</div>
    </form>
    <div class="below">
      <p>
        ${words.haveAccount}
        <a href="${withQuery("/sign-in", { continue: view.carried["continue"] })}"
          >${messages.signIn.submit}</a
        >
      </p>
    </div>`;
  const scripts = ["password"] as const;
  return showPage(services, request, { title: view.title, problem, scripts, body });
}

function showClosed(services: PageServices, request: PageRequest): PageResponse {
  const { signUp: words, signIn } = request.language.messages;
  const body = html`<p>${words.closed}</p>
    <p><a href="/sign-in">${signIn.submit}</a></p>`;
  const answer = showPage(services, request, { title: words.closedTitle, body });
  return { ...answer, status: 403 } as PageResponse;
}

async function signUp(
  services: PageServices,
  request: PageRequest,
  form: Form,
): Promise<PageResponse> {
  const { credentials, registrations } = services;
  const { problems } = request.language.messages;
  const target = readContinue(form.get("continue"));
  const invitation = form.get("invitation");
  if (invitation === undefined && services.registration !== "open")
    return showClosed(services, request);
  const missing = findMissing(form, request.language.messages);
  const view = describeSignUp(request, invitation, target);
  if (missing !== undefined) return showForm(services, request, view, form, missing);
  const made = await attempt(
    request,
    () =>
      registrations.register(
        {
          username: form.get("username")!.slice(0, 257),
          password: form.get("password")!.slice(0, 1024),
          email: form.get("email")?.trim(),
          invitation,
        },
        request.origin,
      ),
    { conflict: problems.taken, forbidden: request.language.messages.errors.linkText },
  );
  if ("problem" in made) {
    return showForm(services, request, view, form, nameField(made.problem, problems.taken));
  }
  await credentials.welcome(made.value);
  const outcome = await services.signIn.signIn(
    { kind: "registration", account: made.value },
    request.origin,
    { mint: false },
  );
  return continueSignIn(services, request, outcome, target);
}

async function setUp(
  services: PageServices,
  request: PageRequest,
  form: Form,
): Promise<PageResponse> {
  const { messages } = request.language;
  const token = form.get("token") ?? "";
  const view = describeSetup(request, token);
  const missing = findMissing(form, messages);
  if (missing !== undefined) return showForm(services, request, view, form, missing);
  const made = await attempt(
    request,
    () =>
      services.registrations.setUp(
        token,
        {
          username: form.get("username")!.slice(0, 257),
          password: form.get("password")!.slice(0, 1024),
          email: form.get("email")?.trim(),
        },
        request.origin,
      ),
    { conflict: messages.problems.taken, forbidden: messages.errors.linkText },
  );
  if ("problem" in made) {
    return showForm(
      services,
      request,
      view,
      form,
      nameField(made.problem, messages.problems.taken),
    );
  }
  return { kind: "redirect", to: withQuery("/sign-in", { done: "signed-up" }) };
}

function findMissing(form: Form, messages: Messages): Problem | undefined {
  const missing = (["username", "password"] as const).filter((name) => !form.has(name));
  if (missing.length === 0) return undefined;
  const { problems, fields } = messages;
  return {
    status: 422,
    text: problems.invalid,
    fields: Object.fromEntries(missing.map((name) => [name, problems.required(fields[name])])),
  };
}

function nameField(problem: Problem, taken: string): Problem {
  return problem.text === taken ? { ...problem, fields: { username: taken } } : problem;
}
