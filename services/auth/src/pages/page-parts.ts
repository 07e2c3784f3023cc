// What the pages work with, and what most of them do: show a page, let somebody in.
import { toPlatformError } from "@platform/kernel/errors";
import type { AuditLog } from "../audit/audit-log.ts";
import { DEVICE_MARK_MS, type Cookies } from "../web/cookies.ts";
import type { PageSources } from "../web/security-headers.ts";
import type { SessionResolver } from "../web/session-resolver.ts";
import type { Credentials } from "../sign-in/credentials.ts";
import type { SecondFactors } from "../sign-in/second-factors.ts";
import type { SignedIn, SignIn } from "../sign-in/sign-in.ts";
import type { SecurityNotices } from "../sign-in/security-notices.ts";
import type { Factors } from "../factor/factors.ts";
import type { MfaPolicies } from "../factor/policies.ts";
import type { OAuth } from "../oauth/oauth.ts";
import type { Passkeys } from "../factor/passkeys.ts";
import type { Rbac } from "../rbac/rights.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Users } from "../user/users.ts";
import type { AccountTab, PageContent, PageFrame } from "./document.ts";
import type { ErrorPage } from "./error-page.ts";
import { button, hidden } from "./form.ts";
import { html, type Html } from "./html.ts";
import { explainError, type Meanings, type Problem } from "./problem.ts";
import type { Answer, SignedInVisit } from "./route.ts";
import type { Visit } from "./visit.ts";

const PENDING_MS = 300_000;

/** What the pages work with. */
export interface PageParts {
  frame: PageFrame;
  errors: ErrorPage;
  cookies: Cookies;
  signIn: SignIn;
  secondFactors: SecondFactors;
  credentials: Credentials;
  passkeys: Passkeys;
  factors: Factors;
  policies: MfaPolicies;
  rbac: Rbac;
  users: Users;
  sessions: Sessions;
  oauth: OAuth;
  notices: SecurityNotices;
  audit: AuditLog;
  registration: "open" | "invitation" | "closed";
  /** Whether a notification service is configured. */
  canSend: boolean;
  resolver: SessionResolver;
}

/** The hidden field that every form has. */
export function carryCsrf(visit: Visit): Html {
  return html`${hidden({ csrf: visit.csrf })}`;
}

/** A page with one card. */
export function showPage(
  { frame }: Pick<PageParts, "frame">,
  visit: Visit,
  content: PageContent,
  sources: PageSources = {},
): Answer {
  return {
    kind: "page",
    status: content.problem?.status ?? 200,
    retryAfter: content.problem?.retryAfter,
    page: frame.frame(visit.language, content),
    sources: { hasScript: content.hasPasskeys === true, ...sources },
  };
}

/** A page of the visitor's account. */
export function showAccountPage(
  { frame }: PageParts,
  visit: SignedInVisit,
  tab: AccountTab,
  content: PageContent,
  sources: PageSources = {},
): Answer {
  const { messages } = visit.language;
  const { username } = visit.visitor.account;
  const signOut = html`<a href="/sign-out">${messages.signOut.submit}</a>`;
  const done = messages.done[visit.query.get("done") as keyof typeof messages.done];
  return {
    kind: "page",
    status: content.problem?.status ?? 200,
    retryAfter: content.problem?.retryAfter,
    page: frame.frameAccount(
      visit.language,
      { ...content, done: typeof done === "string" ? done : undefined },
      { tab, username, signOut },
    ),
    sources: { hasScript: content.hasPasskeys === true, ...sources },
  };
}

/** Does `work`; what goes wrong and can be said on the page comes back as a problem, the rest is thrown on. */
export async function attempt<T>(
  visit: Visit,
  work: () => Promise<T>,
  meanings?: Meanings,
): Promise<{ value: T } | { problem: Problem }> {
  try {
    return { value: await work() };
  } catch (error) {
    const problem = explainError(toPlatformError(error), visit.language.messages, meanings);
    if (problem === undefined) throw error;
    return { problem };
  }
}

/** Lets somebody in who has signed in, and takes them where they were going. */
export async function admit(
  parts: PageParts,
  visit: Visit,
  signedIn: SignedIn,
  target: string,
): Promise<Answer> {
  const { cookies, credentials, resolver } = parts;
  const before = visit.visitor?.session.id;
  // Nobody could reach the session of before any more, or end it.
  if (before !== undefined && before !== signedIn.session.id) await credentials.endSession(before);
  visit.cookies.push(
    resolver.formatCookie(signedIn.sessionToken),
    cookies.format("platform_device", signedIn.deviceMark, DEVICE_MARK_MS),
    cookies.format("platform_pending", "", 0),
  );
  return goOn(parts, visit, target);
}

/** Keeps a sign-in that waits for its second factor with the browser. */
export function keepPending({ cookies }: PageParts, visit: Visit, mfaToken: string): void {
  visit.cookies.push(cookies.format("platform_pending", mfaToken, PENDING_MS));
}

/**
 * Goes on after a form. Where an application waits, by a page that forwards: browsers hold the addresses that a form's
 * redirects lead to against the page's `form-action`, and where applications send people is theirs to decide.
 */
export function goOn(parts: Pick<PageParts, "frame">, visit: Visit, target: string): Answer {
  const isOwn = target.startsWith("/") && !target.startsWith("/interaction/");
  if (isOwn) return { kind: "redirect", to: target };
  const { messages } = visit.language;
  return showPage(parts, visit, {
    title: messages.continuing,
    forwardTo: target,
    body: html`<p>${messages.continuingText}</p>
      <p><a class="button" href="${target}">${messages.continue}</a></p>`,
  });
}

/** The form that signs in, confirms or adds with a passkey, by the script; without it, a sentence says why not. */
export function passkeyForm(
  visit: Visit,
  options: {
    kind: "create" | "get";
    action: string;
    optionsPath: string;
    text: string;
    isQuiet?: boolean;
    fields?: Readonly<Record<string, string | undefined>>;
  },
): Html {
  const { signIn } = visit.language.messages;
  return html`<form
    method="post"
    action="${options.action}"
    data-passkey="${options.kind}"
    data-options="${options.optionsPath}"
  >
    ${carryCsrf(visit)}${hidden({ credential: "", ...options.fields })}
    <div class="full">
      ${button(options.text, { isFull: true, ...(options.isQuiet === true ? { kind: "quiet" } : {}) })}
    </div>
    <p class="error" role="alert" data-failure="${signIn.passkeyFailed}"></p>
    <noscript><p class="hint">${signIn.needsScript}</p></noscript>
  </form> `;
}

/** Reads a JSON credential that the script has put into a form; undefined where it is none. */
export function readCredential(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}
