// Services of the pages, and steps that most of them share.
import { toPlatformError } from "@platform/kernel/errors";
import type { AuditLog } from "../audit/audit-log.ts";
import type { Factors } from "../factor/factors.ts";
import type { Passkeys } from "../factor/passkeys.ts";
import type { MfaPolicies } from "../factor/policies.ts";
import type { OAuth } from "../oauth/oauth.ts";
import type { Rbac } from "../rbac/rights.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Credentials } from "../sign-in/credentials.ts";
import type { Registrations } from "../sign-in/registrations.ts";
import type { SecondFactors } from "../sign-in/second-factors.ts";
import type { SecurityNotices } from "../sign-in/security-notices.ts";
import type { SignedIn, SignIn } from "../sign-in/sign-in.ts";
import type { Users } from "../user/users.ts";
import { DEVICE_MARK_MS, type Cookies } from "../web/cookies.ts";
import type { PageSources } from "../web/security-headers.ts";
import type { SessionResolver } from "../web/session-resolver.ts";
import type { AccountTab, PageContent, PageFrame } from "./document.ts";
import type { ErrorPage } from "./error-page.ts";
import { button, hidden } from "./form.ts";
import { html, type Html, type Part } from "./html.ts";
import type { PageRequest } from "./page-request.ts";
import { explainError, type Meanings, type Problem } from "./problem.ts";
import type { PageResponse, SignedInRequest } from "./route.ts";

const PENDING_MS = 300_000;

/** Services and settings of the pages. */
export interface PageServices {
  frame: PageFrame;
  errors: ErrorPage;
  cookies: Cookies;
  signIn: SignIn;
  secondFactors: SecondFactors;
  credentials: Credentials;
  registrations: Registrations;
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
  /** True if a mail service is configured. */
  canSend: boolean;
  resolver: SessionResolver;
}

/** The hidden CSRF field of every form. */
export function carryCsrf(request: PageRequest): Html {
  return html`${hidden({ csrf: request.csrf })}`;
}

/** A page with one question. */
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
    sources: { ...listSources(content), ...sources },
  };
}

/** A page of the user's account. */
export function showAccountPage(
  { frame }: PageServices,
  request: SignedInRequest,
  tab: AccountTab,
  content: PageContent,
): PageResponse {
  const { messages } = request.language;
  const scripts = ["times" as const, ...(content.scripts ?? [])];
  const { username } = request.user.account;
  const signOut = html`<a href="/sign-out">${messages.signOut.submit}</a>`;
  const done = messages.done[request.query.get("done") as keyof typeof messages.done];
  return {
    kind: "page",
    status: content.problem?.status ?? 200,
    retryAfter: content.problem?.retryAfter,
    page: frame.frameAccount(
      request.language,
      { ...content, scripts, done: typeof done === "string" ? done : undefined },
      { tab, username, signOut },
    ),
    sources: listSources({ scripts }),
  };
}

function listSources({ scripts = [] }: Pick<PageContent, "scripts">): PageSources {
  return { hasScript: scripts.length > 0, canConnect: scripts.includes("passkey") };
}

/** Runs `work`; errors that the page can explain are returned as a problem, others are thrown. */
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

/** Signs the browser in: sets the cookies and continues at `target`. */
export async function admit(
  services: PageServices,
  request: PageRequest,
  signedIn: SignedIn,
  target: string,
): Promise<PageResponse> {
  const { cookies, credentials, resolver } = services;
  const before = request.user?.session.id;
  // The previous session would be unreachable: its token is replaced in the browser.
  if (before !== undefined && before !== signedIn.session.id) await credentials.endSession(before);
  request.cookies.push(
    resolver.formatCookie(signedIn.sessionToken),
    cookies.format("platform_device", signedIn.deviceMark, DEVICE_MARK_MS),
    cookies.format("platform_pending", "", 0),
  );
  return goOn(services, request, target);
}

/** Stores the token of a pending sign-in in the browser. */
export function keepPending(
  { cookies }: PageServices,
  request: PageRequest,
  mfaToken: string,
): void {
  request.cookies.push(cookies.format("platform_pending", mfaToken, PENDING_MS));
}

/**
 * Continues after a form. If an application waits, a page forwards the browser: browsers apply the `form-action` of
 * the page to redirects of its forms, and applications choose their own redirects.
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

/** A form that signs in, confirms or registers with a passkey by script; without scripts it shows a hint. */
export function passkeyForm(
  request: PageRequest,
  options: {
    kind: "create" | "get";
    action: string;
    optionsPath: string;
    text: string;
    isQuiet?: boolean;
    /** Browsers also offer passkeys in the field for the username. */
    canFillIn?: boolean;
    fields?: Readonly<Record<string, string | undefined>>;
    /** Visible fields, above the button. */
    body?: Part;
  },
): Html {
  const { signIn } = request.language.messages;
  return html`<form
    method="post"
    action="${options.action}"
    data-passkey="${options.kind}"
    data-options="${options.optionsPath}"
    ${options.canFillIn === true && html` data-fill-in`}
  >
    ${carryCsrf(request)}${hidden({ credential: "", ...options.fields })}${options.body}
    <div class="full">
      ${button(options.text, { isFull: true, ...(options.isQuiet === true ? { kind: "quiet" } : {}) })}
    </div>
    <p class="error" role="alert" data-failure="${signIn.passkeyFailed}"></p>
    <noscript><p class="hint">${signIn.needsScript}</p></noscript>
  </form> `;
}

/** Parses the JSON credential that the script put into a form; `undefined` if it is invalid. */
export function readCredential(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}
