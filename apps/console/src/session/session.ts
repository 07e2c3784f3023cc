// The configuration of the console and the session of its user.
import { computed, signal } from "@preact/signals";
import type {
  ConsoleConfig,
  ConsoleSession,
  LoginRequest,
  LogoutAnswer,
  ServiceId,
  ServiceInfo,
} from "@platform/console/contract";
import { ApiFailure, call, listenForSessionFailures, withQuery } from "../api/api.ts";
import { isTransient, retryDelayMs } from "../api/retry.ts";
import { hasTypedText } from "../router/unsaved.ts";

/** Time between two readings of the permissions. */
const REFRESH_MS = 15_000;
/** Time between two looks whether the user has signed in beside the page. */
const BESIDE_MS = 1_000;
/** Time until configuration and session are loaded again after a failure. */
const RELOAD_MS = 3_000;
/** Age of the configuration that the console answers with. */
const CONFIG_AGE_MS = 5_000;

/** The configuration; undefined until it is loaded. */
export const config = signal<ConsoleConfig | undefined>(undefined);
/** The session; `null` without one, undefined until it is loaded. */
export const session = signal<ConsoleSession | null | undefined>(undefined);
/** Failure of the last attempt to load configuration or session. */
export const sessionFailure = signal<ApiFailure | undefined>(undefined);
/** Reason for which the user has to sign in again. */
export const signInReason = signal<"expired" | "recent" | undefined>(undefined);

/**
 * Reaction to a session that the console has lost, by a restart perhaps. `restoring`: identity signs the user
 * in again, without a question if it knows them. `asking`: typed text keeps the page, and the user signs in beside it.
 */
export const sessionLoss = signal<"restoring" | "asking" | undefined>(undefined);

/** Services that the session may call, in the order of the rail. */
export const services = computed<readonly ServiceInfo[]>(() => {
  const allowed = session.value?.services ?? [];
  return (config.value?.services ?? []).filter(({ id }) => allowed.includes(id));
});

/** Loads the configuration and the session. */
export async function loadSession(): Promise<void> {
  listenForSessionFailures(handleFailure);
  try {
    // Together: each way takes its time on a slow network.
    const [configured, found] = await Promise.allSettled([
      call<ConsoleConfig>("/console/config"),
      call<ConsoleSession>("/console/session"),
    ]);
    if (configured.status === "rejected") throw configured.reason;
    config.value = configured.value;
    if (found.status === "rejected") throw found.reason;
    session.value = found.value;
    sessionFailure.value = undefined;
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    if (error.status === 401) {
      sessionFailure.value = undefined;
      if (isRestorable(error)) await restoreSession();
      else session.value = null;
      return;
    }
    sessionFailure.value = error;
    if (isTransient(error)) setTimeout(() => void loadSession(), RELOAD_MS);
  }
}

// The server has lost the session of a cookie, after a restart perhaps: identity may still know the user.
function isRestorable({ reason }: ApiFailure): boolean {
  const hasIdentity = config.value?.sign_in.includes("oidc") === true;
  return hasIdentity && reason === "session_expired" && location.pathname !== "/ui/sign-in";
}

/** Signs in with a service's own credentials. */
export async function login(request: LoginRequest): Promise<void> {
  session.value = await call<ConsoleSession>("/console/login", { method: "POST", json: request });
  signInReason.value = undefined;
  sessionLoss.value = undefined;
}

/** True while the user signs out: the end of the session needs no explanation. */
let isSigningOut = false;

/** Ends the session, here and at identity. */
export async function logout(): Promise<void> {
  isSigningOut = true;
  try {
    const answer = await call<LogoutAnswer>("/console/logout", { method: "POST", json: {} });
    session.value = null;
    if (answer.end_session_url !== null) location.assign(answer.end_session_url);
  } finally {
    isSigningOut = false;
  }
}

/** Shows the sign-in page after the server has ended the session: it expired, or another tab or identity ended it. */
export function endSession(): void {
  if (session.value && !isSigningOut) signInReason.value = "expired";
  session.value = null;
  sessionLoss.value = undefined;
}

/** Asks whether the console still has the session; if not, it is restored or ended. */
export async function checkSession(): Promise<void> {
  await call("/console/session").catch(() => undefined);
}

// The session may have ended for good, too: then identity, or the sign-in beside the page, says so.
function loseSession(): void {
  if (!session.value || sessionLoss.value !== undefined) return;
  if (isSigningOut) endSession();
  else if (hasTypedText()) void awaitSession(session.value.user.id);
  else if (session.value.method === "oidc") void restoreSession();
  else endSession();
}

// The page is left only when identity answers: the browser's own page of errors does not try again.
async function restoreSession(): Promise<void> {
  sessionLoss.value = "restoring";
  const address = identityHref("none");
  for (let attempts = 0; !(await leadsToIdentity(address)); attempts += 1) {
    await sleep(retryDelayMs(attempts));
  }
  location.replace(address);
}

async function leadsToIdentity(address: string): Promise<boolean> {
  const answer = await fetch(address, { redirect: "manual" }).catch(() => undefined);
  return answer?.type === "opaqueredirect";
}

async function awaitSession(user: string): Promise<void> {
  sessionLoss.value = "asking";
  while (sessionLoss.value === "asking") {
    await sleep(BESIDE_MS);
    const found = await call<ConsoleSession>("/console/session").catch(() => undefined);
    if (found === undefined) continue;
    // Another user signed in: the page shows data of the former one.
    if (found.user.id !== user) location.reload();
    session.value = found;
    sessionLoss.value = undefined;
  }
}

async function sleep(ms: number): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/**
 * Address that signs in with identity and comes back to this page. `login`: identity signs the user in again even if it
 * knows them, `none`: it shows no page.
 */
export function identityHref(prompt?: "login" | "none"): string {
  return withQuery("/console/oidc/start", { to: findReturn(), prompt });
}

// The sign-in page has the address of the view that was asked for in its query.
function findReturn(): string {
  const { pathname, search } = location;
  const to = new URLSearchParams(search).get("to");
  return pathname === "/ui/sign-in" ? (to ?? "/ui/") : pathname + search;
}

/** A service of the session. */
function findService(id: ServiceId): ServiceInfo | undefined {
  return services.value.find((service) => service.id === id);
}

/** Address of an operation of a service: `api("pulse", "/topics")`. */
export function api(id: ServiceId, path: string): string {
  return `${findService(id)?.base ?? ""}/api/v1${path}`;
}

/** Calls an operation of a service. */
export async function callService<Answer>(
  id: ServiceId,
  path: string,
  options?: Parameters<typeof call>[1],
): Promise<Answer> {
  return await call<Answer>(api(id, path), options);
}

/** Calls an operation of a service beside `/api/v1`, such as `/admin/remotes` of storage. */
export async function callBeside<Answer>(
  id: ServiceId,
  path: string,
  options?: Parameters<typeof call>[1],
): Promise<Answer> {
  return await call<Answer>(`${findService(id)?.base ?? ""}${path}`, options);
}

/** Address of a WebSocket of a service. */
export function socketUrl(id: ServiceId, path: string): string {
  const base = findService(id)?.base ?? "";
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${base}${path}`;
}

/** True if the service provides a part of its API, or has not said yet what it provides: it did not answer the console. */
export function hasFeature(id: ServiceId, feature: string): boolean {
  const service = findService(id);
  return service !== undefined && (service.version === "" || service.features.includes(feature));
}

/** Reads the configuration again when a service answers that did not when it was read. */
export async function noticeService(id: ServiceId): Promise<void> {
  if (findService(id)?.version !== "") return;
  // The console keeps what it knows for some seconds.
  await sleep(CONFIG_AGE_MS);
  const found = await call<ConsoleConfig>("/console/config").catch(() => undefined);
  if (found !== undefined) config.value = found;
}

/** True if the session has a permission. The service decides; this is for disabled buttons. */
export function may(permission: string): boolean {
  const current = session.value;
  if (current === null || current === undefined) return false;
  if (current.is_admin || current.permissions.includes(permission)) return true;
  const [service] = permission.split(":");
  return (
    current.permissions.includes(`${service}:*`) || current.permissions.includes(`${service}:admin`)
  );
}

let refreshedMs = 0;

/** Reads the permissions again when the user comes back to the page: they may have got a role meanwhile. */
export function startPermissions(): void {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) void refreshPermissions();
  });
}

/**
 * Reads the permissions again, also after a service has refused an action, so that buttons and their reasons are those of
 * now: a role may have been taken from the user since. Bounded, as each refused request of a page calls it.
 */
async function refreshPermissions(): Promise<void> {
  if (!session.value || Date.now() - refreshedMs < REFRESH_MS) return;
  refreshedMs = Date.now();
  // A failure that ends the session has its own way; others leave the permissions as they are.
  const found = await call<ConsoleSession>("/console/session?fresh=true").catch(() => undefined);
  if (found !== undefined && session.value) session.value = found;
}

function handleFailure(failure: ApiFailure): void {
  if (failure.status === 403 && failure.reason === undefined) void refreshPermissions();
  if (failure.reason === "recent_sign_in_required") signInReason.value = "recent";
  if (failure.reason === "no_session") endSession();
  if (failure.reason === "session_expired") loseSession();
}
