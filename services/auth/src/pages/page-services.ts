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
import type { PageResponse, SignedInRequest } from "./route.ts";
import type { PageRequest } from "./page-request.ts";

const PENDING_MS = 300_000;

/** What the pages work with. */
export interface PageServices {
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
export function carryCsrf(request: PageRequest): Html {
  return html`${hidden({ csrf: request.csrf })}`;
}

/** A page with one card. */
export function showPage(
  { frame }: Pick<PageServices, "frame">,
  request: PageRequest,
  content: PageContent,
  sources: PageSources = {},
): PageResponse {
  return {
    kind: "page",
    status: content.problem?.status ?? 200,
    retryAfter: content.problem?.retryAfter,
    page: frame.frame(request.language, content),
    sources: { hasScript: content.hasPasskeys === true, ...sources },
  };
}

/** A page of the user's account. */
export function showAccountPage(
  { frame }: PageServices,
  request: SignedInRequest,
  tab: AccountTab,
  content: PageContent,
  sources: PageSources = {},
): PageResponse {
  const { messages } = request.language;
  const { username } = request.user.account;
  const signOut = html`<a href="/sign-out">${messages.signOut.submit}</a>`;
  const done = messages.done[request.query.get("done") as keyof typeof messages.done];
  return {
    kind: "page",
    status: content.problem?.status ?? 200,
    retryAfter: content.problem?.retryAfter,
    page: frame.frameAccount(
      request.language,
      { ...content, done: typeof done === "string" ? done : undefined },
      { tab, username, signOut },
    ),
    sources: { hasScript: content.hasPasskeys === true, ...sources },
  };
}

/** Does `work`; what goes wrong and can be said on the page comes back as a problem, the rest is thrown on. */
export async function attempt<T>(
  request: PageRequest,
  work: () => Promise<T>,
  meanings?: Meanings,
): Promise<{ value: T } | { problem: Problem }> {
  try {
    return { value: await work() };
  } catch (error) {
    const problem = explainError(toPlatformError(error), request.language.messages, meanings);
    if (problem === undefined) throw error;
    return { problem };
  }
}

/** Lets somebody in who has signed in, and takes them where they were going. */
export async function admit(
  services: PageServices,
  request: PageRequest,
  signedIn: SignedIn,
  target: string,
): Promise<PageResponse> {
  const { cookies, credentials, resolver } = services;
  const before = request.user?.session.id;
  // Nobody could reach the session of before any more, or end it.
  if (before !== undefined && before !== signedIn.session.id) await credentials.endSession(before);
  request.cookies.push(
    resolver.formatCookie(signedIn.sessionToken),
    cookies.format("platform_device", signedIn.deviceMark, DEVICE_MARK_MS),
    cookies.format("platform_pending", "", 0),
  );
  return goOn(services, request, target);
}

/** Keeps a sign-in that waits for its second factor with the browser. */
export function keepPending(
  { cookies }: PageServices,
  request: PageRequest,
  mfaToken: string,
): void {
  request.cookies.push(cookies.format("platform_pending", mfaToken, PENDING_MS));
}

/**
 * Goes on after a form. Where an application waits, by a page that forwards: browsers hold the addresses that a form's
 * redirects lead to against the page's `form-action`, and where applications send people is theirs to decide.
 */
export function goOn(
  services: Pick<PageServices, "frame">,
  request: PageRequest,
  target: string,
): PageResponse {
  const isOwn = target.startsWith("/") && !target.startsWith("/interaction/");
  if (isOwn) return { kind: "redirect", to: target };
  const { messages } = request.language;
  return showPage(services, request, {
    title: messages.continuing,
    forwardTo: target,
    body: html`<p>${messages.continuingText}</p>
      <p><a class="button" href="${target}">${messages.continue}</a></p>`,
  });
}

/** The form that signs in, confirms or adds with a passkey, by the script; without it, a sentence says why not. */
export function passkeyForm(
  request: PageRequest,
  options: {
    kind: "create" | "get";
    action: string;
    optionsPath: string;
    text: string;
    isQuiet?: boolean;
    fields?: Readonly<Record<string, string | undefined>>;
  },
): Html {
  const { signIn } = request.language.messages;
  return html`<form
    method="post"
    action="${options.action}"
    data-passkey="${options.kind}"
    data-options="${options.optionsPath}"
  >
    ${carryCsrf(request)}${hidden({ credential: "", ...options.fields })}
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
