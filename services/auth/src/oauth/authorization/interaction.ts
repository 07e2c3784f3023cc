// Authorization requests that wait for the user.
import type { IncomingMessage, ServerResponse } from "node:http";
import { PlatformError } from "@platform/kernel/errors";
import {
  errors,
  type Grant,
  type InteractionResults,
  type KoaContextWithOIDC,
  type Provider,
} from "oidc-provider";
import type { SessionInfo } from "../../session/session.ts";
import { FIRST_PARTY } from "../core/client-metadata.ts";
import { CONSOLE_CLIENT_ID } from "../core/lifetimes.ts";
import type { AudienceClient } from "../token/audience.ts";
import { actingRoles, type Entitlements } from "../token/entitlements.ts";
import type { TokenPolicy } from "../token/policy.ts";
import { CLAIMS_OF_SCOPE } from "../token/user-claims.ts";
import type { Consents } from "./consents.ts";
import { describeClient, type ClientSummary } from "./grants.ts";
import { readReachable, type AcrDetails, type StartDetails } from "./prompt-policy.ts";

const CONSENT_REASONS = new Set(["op_scopes_missing", "op_claims_missing", "rs_scopes_missing"]);

type CoreInteraction = Awaited<ReturnType<Provider["interactionDetails"]>>;

/** An authorization request that waits for the user. */
export interface Interaction {
  uid: string;
  /** The step the user has to take: choose an account, sign in, or consent. */
  prompt: "select_account" | "login" | "consent";
  /** The core's reasons: `no_session`, `max_age`, `acr_values`, `login_prompt`, `op_scopes_missing`, … */
  reasons: readonly string[];
  client: ClientSummary;
  /** Requested scopes; for a consent only those that the user has not granted yet. */
  scopes: readonly string[];
  /** Roles of the user that the client may act with. */
  actingRoles: readonly string[];
  loginHint: string | undefined;
  /** Space-separated `acr_values` that the client requests (RFC 9470). */
  acrValues: string | undefined;
  /** Space-separated languages that the client expects the user to prefer. */
  uiLocales: string | undefined;
  /** The user who is already signed in. */
  accountId: string | undefined;
  /** Time of the request in ms: a later sign-in counts as one for this request. */
  startedAt: number;
  /** The client's redirect URI. */
  redirectUri: string | undefined;
  /**
   * For a consent: true if the page can be skipped, because the client is first-party or the user has granted
   * everything before.
   */
  isAgreed: boolean;
}

/** The result of an interaction. */
export type InteractionOutcome =
  /** The user signed in, or was signed in, with this session. */
  | { kind: "login"; session: SessionInfo }
  /** The user continues with the account of this session. */
  | { kind: "selected"; session: SessionInfo }
  /** The user grants the request. `isAsked` is false if the page was skipped: only explicit consents are remembered. */
  | { kind: "consent"; isAsked: boolean }
  /** The user declines; the client gets `access_denied`. */
  | { kind: "denied" };

/** Finds and finishes interactions. */
export class Interactions {
  readonly #getProvider: () => Provider;
  readonly #policy: TokenPolicy;
  readonly #entitlements: Entitlements;
  readonly #consents: Consents;

  constructor(options: {
    getProvider: () => Provider;
    policy: TokenPolicy;
    entitlements: Entitlements;
    consents: Consents;
  }) {
    this.#getProvider = options.getProvider;
    this.#policy = options.policy;
    this.#entitlements = options.entitlements;
    this.#consents = options.consents;
  }

  /** The interaction of the browser's cookie; `undefined` if there is none or it has expired. */
  async find(request: IncomingMessage, response: ServerResponse): Promise<Interaction | undefined> {
    const details = await this.#read(request, response);
    if (details === undefined) return undefined;
    const { uid, prompt, params, session } = details;
    const client = await this.#getProvider().Client.find(String(params["client_id"]));
    if (client === undefined) return undefined;
    const asked = readText(params["scope"])?.split(" ") ?? [];
    const missing = readMissing(details);
    const rights =
      session?.accountId === undefined
        ? undefined
        : await this.#policy.findUserRights(session.accountId);
    const permitted = new Set(this.#entitlements.permitUserScopes(client, rights));
    // The user who would have consented has signed out.
    const isOrphan = prompt.name === "consent" && session === undefined;
    const isConsent = prompt.name === "consent" && !isOrphan;
    const wanted = [
      ...missing.oidc,
      ...missing.resources.flatMap(([, names]) => names),
      ...scopesOf(missing.claims),
    ];
    const scopes = (isConsent ? [...new Set(wanted)] : asked).filter((scope) =>
      permitted.has(scope),
    );
    return {
      uid,
      prompt: isOrphan ? "login" : readPrompt(prompt.name),
      reasons: isOrphan ? ["session_ended"] : prompt.reasons,
      client: describeClient(client),
      scopes,
      actingRoles: rights === undefined ? [] : actingRoles(client, rights),
      loginHint: readText(params["login_hint"]),
      acrValues:
        (prompt.details as Partial<AcrDetails>).acrValues ??
        (readReachable(params["acr_values"]) || undefined),
      uiLocales: readText(params["ui_locales"]),
      accountId: session?.accountId,
      startedAt: (prompt.details as Partial<StartDetails>).startedAt ?? (details.iat ?? 0) * 1_000,
      redirectUri: readText(params["redirect_uri"]),
      isAgreed: isConsent && (await this.#isAgreed(details, client, scopes)),
    };
  }

  // The user is always asked if the client requests the page or may be another program using the client's id.
  // First-party clients get the scopes that an administrator has marked without consent.
  async #isAgreed(
    { prompt, session }: CoreInteraction,
    client: { clientId: string; [name: string]: unknown },
    scopes: readonly string[],
  ): Promise<boolean> {
    if (
      session?.accountId === undefined ||
      !prompt.reasons.every((name) => CONSENT_REASONS.has(name))
    )
      return false;
    const isOwn = client[FIRST_PARTY] === true;
    if (!isOwn && readMissingClaims(prompt).length > 0) return false;
    return this.#isEachAgreed(session.accountId, client, scopes);
  }

  /** A grant for a `prompt=none` request whose scopes were all granted before; `undefined` otherwise. */
  async agreeSilently({ oidc }: KoaContextWithOIDC): Promise<Grant | undefined> {
    const { client, account, requestParamScopes, requestParamOIDCScopes } = oidc;
    if (client === undefined || account === undefined) return undefined;
    if (oidc.params?.["prompt"] !== "none") return undefined;
    const { accountId } = account;
    const permitted = await this.#permit(client, accountId);
    const asked = [...requestParamScopes].filter((scope) => permitted.has(scope));
    // Consent to claims requested by name is consent to their scopes.
    const claims = [...oidc.requestParamClaims];
    const wanted = [...new Set([...asked, ...scopesOf(claims)])];
    const isAgreed = asked.length > 0 && (await this.#isEachAgreed(accountId, client, wanted));
    if (!isAgreed) return undefined;
    const provider = this.#getProvider();
    const grant = new provider.Grant({ accountId, clientId: client.clientId });
    for (const scope of requestParamOIDCScopes) {
      if (permitted.has(scope)) grant.addOIDCScope(scope);
      else grant.rejectOIDCScope(scope);
    }
    if (claims.length > 0) grant.addOIDCClaims(claims);
    const resources = (oidc.resourceServers ?? {}) as Record<string, { scopes: Set<string> }>;
    for (const [indicator, { scopes }] of Object.entries(resources)) {
      const ofResource = asked.filter((scope) => scopes.has(scope));
      if (ofResource.length > 0) grant.addResourceScope(indicator, ofResource.join(" "));
    }
    await grant.save();
    return grant;
  }

  async #isEachAgreed(
    userId: string,
    client: { clientId: string; [name: string]: unknown },
    scopes: readonly string[],
  ): Promise<boolean> {
    // The operator's own page: it acts for the user with the user's rights.
    if (client.clientId === CONSOLE_CLIENT_ID) return true;
    const isOwn = client[FIRST_PARTY] === true;
    const agreed = await this.#consents.find(userId, client.clientId);
    return scopes.every(
      (scope) => agreed.has(scope) || (isOwn && this.#policy.isFirstParty(scope)),
    );
  }

  /**
   * Finishes the interaction; returns the URL at which the authorization continues. Throws `not_found` if there is
   * none.
   */
  async finish(
    request: IncomingMessage,
    response: ServerResponse,
    outcome: InteractionOutcome,
  ): Promise<string> {
    const details = await this.#read(request, response);
    if (details === undefined) {
      throw new PlatformError(
        "not_found",
        "The sign-in has expired. Start again at the application.",
      );
    }
    const result = await this.#buildResult(details, outcome);
    return this.#getProvider().interactionResult(request, response, result, {
      mergeWithLastSubmission: outcome.kind === "consent",
    });
  }

  async #buildResult(
    details: CoreInteraction,
    outcome: InteractionOutcome,
  ): Promise<InteractionResults> {
    switch (outcome.kind) {
      case "denied":
        return { error: "access_denied", error_description: "the user declined" };
      case "login": {
        // A chosen account does not have to be chosen again after the sign-in.
        const isSelected = details.lastSubmission?.["select_account"] !== undefined;
        return { ...describeLogin(outcome.session), ...(isSelected ? { select_account: {} } : {}) };
      }
      case "selected": {
        const known = details.session?.accountId;
        const isOther = known !== undefined && known !== outcome.session.userId;
        return { ...(isOther ? describeLogin(outcome.session) : {}), select_account: {} };
      }
      case "consent":
        return { consent: { grantId: await this.#grant(details, outcome.isAsked) } };
      default:
        return outcome satisfies never;
    }
  }

  async #grant(details: CoreInteraction, isAsked: boolean): Promise<string> {
    const provider = this.#getProvider();
    const { grantId, session, params } = details;
    if (session?.accountId === undefined) {
      throw new PlatformError("conflict", "The user is not signed in.");
    }
    const known = grantId === undefined ? undefined : await provider.Grant.find(grantId);
    const grant =
      known ??
      new provider.Grant({ accountId: session.accountId, clientId: String(params["client_id"]) });
    const { oidc, claims, resources } = readMissing(details);
    const client = await provider.Client.find(String(params["client_id"]));
    if (client === undefined) throw new PlatformError("conflict", "The client was deleted.");
    const permitted = await this.#permit(client, session.accountId);
    // Scopes the user may not have were not shown, so the consent does not include them even if roles change later.
    for (const scope of oidc) {
      if (permitted.has(scope)) grant.addOIDCScope(scope);
      else grant.rejectOIDCScope(scope);
    }
    if (claims.length > 0) grant.addOIDCClaims(claims);
    for (const [indicator, scopes] of resources)
      grant.addResourceScope(indicator, scopes.join(" "));
    if (isAsked) {
      const asked = [...oidc, ...scopesOf(claims), ...resources.flatMap(([, scopes]) => scopes)];
      const agreed = [...new Set(asked)].filter((scope) => permitted.has(scope));
      await this.#consents.remember(session.accountId, String(params["client_id"]), agreed);
    }
    return grant.save();
  }

  async #permit(client: AudienceClient, userId: string): Promise<ReadonlySet<string>> {
    const rights = await this.#policy.findUserRights(userId);
    return new Set(this.#entitlements.permitUserScopes(client, rights));
  }

  async #read(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<CoreInteraction | undefined> {
    const provider = this.#getProvider();
    try {
      return await provider.interactionDetails(request, response);
    } catch (error) {
      if (!(error instanceof errors.SessionNotFound)) throw error;
      return releaseSession(provider, request, response);
    }
  }
}

// The core continues only in the session that the request began in. If that session has ended, because the user
// switched accounts or signed out, the request continues without a session and requires a sign-in.
async function releaseSession(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<CoreInteraction | undefined> {
  const { cookies } = provider.createContext(request, response);
  const uid = cookies.get(provider.cookieName("interaction"), { signed: true });
  const details = uid === undefined ? undefined : await provider.Interaction.find(uid);
  if (details === undefined) return undefined;
  Object.assign(details, { session: undefined, accountId: undefined, grantId: undefined });
  await details.persist();
  return details;
}

function describeLogin({ id, userId, authTime, acr, amr }: SessionInfo): InteractionResults {
  const ts = Math.floor(authTime / 1_000);
  return { login: { accountId: userId, sid: id, ts, acr, amr: [...amr] } };
}

function readPrompt(name: string): Interaction["prompt"] {
  return name === "consent" || name === "select_account" ? name : "login";
}

function readMissingClaims(prompt: CoreInteraction["prompt"]): readonly string[] {
  return (prompt.details as { missingOIDCClaims?: string[] }).missingOIDCClaims ?? [];
}

function readMissing({ prompt }: CoreInteraction): {
  oidc: string[];
  claims: string[];
  resources: [indicator: string, scopes: string[]][];
} {
  const { missingOIDCScope, missingOIDCClaims, missingResourceScopes } = prompt.details as {
    missingOIDCScope?: string[];
    missingOIDCClaims?: string[];
    missingResourceScopes?: Record<string, string[]>;
  };
  const oidc = missingOIDCScope ?? [];
  return {
    oidc,
    claims: missingOIDCClaims ?? [],
    resources: Object.entries(missingResourceScopes ?? {}),
  };
}

// Claims requested by name are shown as their scopes.
function scopesOf(claims: readonly string[]): string[] {
  return Object.entries(CLAIMS_OF_SCOPE)
    .filter(([, names]) => names.some((name) => claims.includes(name)))
    .map(([scope]) => scope);
}

function readText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
