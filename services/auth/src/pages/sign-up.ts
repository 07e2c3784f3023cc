// Making an account: open to all, by an invitation's link, or the first administrator by the link of the first start.
import { button, field, hidden } from "./form.ts";
import { html } from "./html.ts";
import type { Messages } from "./language/en.ts";
import { attempt, carryCsrf, goOn, showPage, type PageParts } from "./page-parts.ts";
import type { Problem } from "./problem.ts";
import { continueSignIn } from "./sign-in.ts";
import { readContinue, withQuery, type Answer, type Form, type PageRoute } from "./route.ts";
import type { Visit } from "./visit.ts";

/** What the two forms have in common. */
interface SignUpForm {
  action: string;
  title: string;
  text?: string;
  carried: Readonly<Record<string, string | undefined>>;
}

/** The routes. */
export function createSignUpRoutes(parts: PageParts): PageRoute[] {
  return [
    {
      method: "GET",
      path: "/sign-up",
      access: "public",
      handle: (visit) => {
        const target = readContinue(visit.query.get("continue"));
        if (visit.visitor !== undefined) return goOn(parts, visit, target ?? "/account");
        const invitation = visit.query.get("invitation")?.slice(0, 256);
        if (invitation === undefined && parts.registration !== "open")
          return showClosed(parts, visit);
        return showForm(parts, visit, describeSignUp(visit, invitation, target));
      },
    },
    {
      method: "POST",
      path: "/sign-up",
      access: "public",
      handle: (visit, form) => signUp(parts, visit, form),
    },
    {
      method: "GET",
      path: "/setup",
      access: "public",
      handle: async (visit) => {
        const token = visit.query.get("token")?.slice(0, 256);
        if (token === undefined || !(await parts.credentials.isSetUpLink(token)))
          return parts.errors.showBadLink(visit.language);
        return showForm(parts, visit, describeSetup(visit, token));
      },
    },
    {
      method: "POST",
      path: "/setup",
      access: "public",
      handle: (visit, form) => setUp(parts, visit, form),
    },
  ];
}

function describeSignUp(
  visit: Visit,
  invitation: string | undefined,
  target: string | undefined,
): SignUpForm {
  const { signUp: words } = visit.language.messages;
  return {
    action: "/sign-up",
    title: words.title,
    carried: { invitation, continue: target },
  };
}

function describeSetup(visit: Visit, token: string): SignUpForm {
  const { signUp: words } = visit.language.messages;
  return { action: "/setup", title: words.setupTitle, text: words.setupText, carried: { token } };
}

function showForm(
  parts: PageParts,
  visit: Visit,
  view: SignUpForm,
  entered?: Form,
  problem?: Problem,
): Answer {
  const { messages } = visit.language;
  const { fields, signUp: words } = messages;
  const body = html`${view.text !== undefined && html`<p>${view.text}</p>`}
    <form method="post" action="${view.action}">
      ${carryCsrf(visit)}${hidden(view.carried)}
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
  return showPage(parts, visit, { title: view.title, problem, body });
}

function showClosed(parts: PageParts, visit: Visit): Answer {
  const { signUp: words, signIn } = visit.language.messages;
  const body = html`<p>${words.closed}</p>
    <p><a href="/sign-in">${signIn.submit}</a></p>`;
  const answer = showPage(parts, visit, { title: words.closedTitle, body });
  return { ...answer, status: 403 } as Answer;
}

async function signUp(parts: PageParts, visit: Visit, form: Form): Promise<Answer> {
  const { credentials } = parts;
  const { problems } = visit.language.messages;
  const target = readContinue(form.get("continue"));
  const invitation = form.get("invitation");
  if (invitation === undefined && parts.registration !== "open") return showClosed(parts, visit);
  const missing = findMissing(form, visit.language.messages);
  const view = describeSignUp(visit, invitation, target);
  if (missing !== undefined) return showForm(parts, visit, view, form, missing);
  const made = await attempt(
    visit,
    () =>
      credentials.register(
        {
          username: form.get("username")!.slice(0, 257),
          password: form.get("password")!.slice(0, 1024),
          email: form.get("email")?.trim(),
          invitation,
        },
        visit.origin,
      ),
    { conflict: problems.taken, forbidden: visit.language.messages.errors.linkText },
  );
  if ("problem" in made) {
    return showForm(parts, visit, view, form, nameField(made.problem, problems.taken));
  }
  if (made.value.email !== undefined && parts.canSend) {
    // The account is there: that its message could not be sent is no reason to say otherwise.
    await attempt(visit, () => credentials.beginVerification(made.value));
  }
  const outcome = await parts.signIn.signIn(
    { kind: "registration", account: made.value },
    visit.origin,
    { mint: false },
  );
  return continueSignIn(parts, visit, outcome, target);
}

async function setUp(parts: PageParts, visit: Visit, form: Form): Promise<Answer> {
  const { messages } = visit.language;
  const token = form.get("token") ?? "";
  const view = describeSetup(visit, token);
  const missing = findMissing(form, messages);
  if (missing !== undefined) return showForm(parts, visit, view, form, missing);
  const made = await attempt(
    visit,
    () =>
      parts.credentials.setUp(
        token,
        {
          username: form.get("username")!.slice(0, 257),
          password: form.get("password")!.slice(0, 1024),
          email: form.get("email")?.trim(),
        },
        visit.origin,
      ),
    { conflict: messages.problems.taken, forbidden: messages.errors.linkText },
  );
  if ("problem" in made) {
    return showForm(parts, visit, view, form, nameField(made.problem, messages.problems.taken));
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
