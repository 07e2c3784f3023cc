// The configured core: one provider per set of keys and scopes, all on the same stores.
import { createHmac } from "node:crypto";
import type { EgressFetch } from "@platform/kernel/egress";
import type { Clock } from "@platform/kernel/time";
import {
  errors,
  ExternalSigningKey,
  Provider,
  type Account,
  type AdapterFactory,
  type Configuration,
  type KoaContextWithOIDC,
} from "oidc-provider";
import type { SigningAlgorithm } from "../../database/key.ts";
import type { KeySet } from "../../key/key-ring.ts";
import type { SigningKey } from "../../key/signing-key.ts";
import type { Sessions } from "../../session/sessions.ts";
import type { Account as User } from "../../user/account.ts";
import type { Users } from "../../user/users.ts";
import type { SessionResolver } from "../../web/session-resolver.ts";
import type { Interactions } from "../authorization/interaction.ts";
import {
  buildPromptPolicy,
  REACHABLE_ACR_VALUES,
  type NeedsSecondFactor,
} from "../authorization/prompt-policy.ts";
import { isOriginOf } from "../client/cors.ts";
import {
  DECISIVE_MEMBERS,
  SIGNED_USERINFO,
  validateClientMetadata,
} from "../core/client-metadata.ts";
import { PLATFORM_CLIENT_ID, TTL_SECONDS } from "../core/lifetimes.ts";
import { CORE_ROUTES } from "../core/routes.ts";
import type { Entitlements } from "../token/entitlements.ts";
import type { TokenPolicy } from "../token/policy.ts";
import type { TokenClaimsSource } from "../token/token-claims.ts";
import {
  TOKEN_EXCHANGE_GRANT,
  TOKEN_EXCHANGE_PARAMETERS,
  type TokenExchange,
} from "../token/token-exchange.ts";
import { CLAIMS_OF_SCOPE, describeAccount } from "../token/user-claims.ts";
import { adaptModels, requireProof, type ModelOptions, type SessionCookie } from "./core-models.ts";
import { restoreOfflineAccess } from "./offline-access.ts";
import type { CoreForm, OAuthPages } from "./pages.ts";
import { endNamedSession, type NamedSignOutOptions } from "./named-sign-out.ts";
import { adoptOwnSession } from "./silent-sign-in.ts";

const CLIENT_AUTH_METHODS = [
  "client_secret_basic",
  "client_secret_post",
  "client_secret_jwt",
  "private_key_jwt",
  "none",
] as const;
const CLIENT_AUTH_ALGORITHMS = ["HS256", "RS256", "PS256", "ES256", "Ed25519", "EdDSA"] as const;

/** Options of a provider. */
export interface ProviderOptions extends Omit<ModelOptions, "sessionCookie"> {
  /** Issuer and base of all URLs; no path. */
  issuer: string;
  algorithm: SigningAlgorithm;
  adapter: AdapterFactory;
  policy: TokenPolicy;
  users: Users;
  sessions: Sessions;
  resolver: SessionResolver;
  interactions: Interactions;
  claims: TokenClaimsSource;
  exchange: TokenExchange;
  pages: OAuthPages;
  /** True if a policy requires a second factor of the user for the client. */
  needsSecondFactor: NeedsSecondFactor;
  /** Signs cookies. */
  cookieSecret: Uint8Array;
  entitlements: Entitlements;
  /** Clients that must use PKCE. */
  pkce: "all" | "public";
  /** Fetches addresses that clients chose. */
  egressFetch: EgressFetch;
  /** Ends a session with its tokens, and notifies its clients. */
  endSession: (sid: string) => Promise<void>;
}

const COOKIE_ATTRIBUTES = { signed: true, httpOnly: true, sameSite: "lax" } as const;

class RingKey extends ExternalSigningKey {
  readonly #key: SigningKey;

  constructor(key: SigningKey) {
    super();
    this.#key = key;
    Object.assign(this, { kid: key.kid, alg: key.algorithm });
  }

  override keyObject(): SigningKey["publicKey"] {
    return this.#key.publicKey;
  }

  override sign(data: Uint8Array): Buffer | Promise<Buffer> {
    return this.#key.sign(data);
  }
}

/** Builds a provider; takes about a millisecond. */
export function buildProvider(options: ProviderOptions, keys: KeySet): Provider {
  const provider = new Provider(options.issuer, buildConfiguration(options, keys));
  provider.proxy = true;
  adaptModels(provider, { ...options, sessionCookie: describeSessionCookie(options.issuer) });
  provider.registerGrantType(
    TOKEN_EXCHANGE_GRANT,
    (ctx) => options.exchange.handle(provider, ctx),
    [...TOKEN_EXCHANGE_PARAMETERS],
  );
  return provider;
}

function buildConfiguration(options: ProviderOptions, keys: KeySet): Configuration {
  const { issuer, policy, claims, entitlements } = options;
  const isHttps = issuer.startsWith("https:");
  const cookie = describeSessionCookie(issuer);
  return {
    adapter: options.adapter,
    jwks: { keys: keys.published.map((key) => new RingKey(key)) },
    routes: CORE_ROUTES,
    clients: [
      {
        client_id: PLATFORM_CLIENT_ID,
        token_endpoint_auth_method: "none",
        grant_types: ["refresh_token"],
        response_types: [],
        redirect_uris: [],
        scope: [...policy.scopeNames].join(" "),
      },
    ],
    extraClientMetadata: {
      properties: [...DECISIVE_MEMBERS, SIGNED_USERINFO],
      validator: validateClientMetadata,
    },
    clientDefaults: { id_token_signed_response_alg: keys.active.algorithm },
    scopes: [...policy.scopeNames],
    claims: {
      ...CLAIMS_OF_SCOPE,
      acr: null,
      amr: null,
      auth_time: null,
      iss: null,
      sid: null,
    },
    extraParams: {
      scope: async (ctx, scope, client) => {
        await restoreOfflineAccess(ctx, scope, client);
        await adoptOwnSession(ctx, options.sessions, options.resolver);
      },
    },
    acrValues: REACHABLE_ACR_VALUES,
    responseTypes: ["code"],
    pkce: {
      required: (_ctx, client) =>
        options.pkce === "all" ||
        client.clientAuthMethod === "none" ||
        client.applicationType === "native",
    },
    conformIdTokenClaims: false,
    // Programs other than pages may send an Origin as well: they are served, and only pages are kept from reading the
    // response.
    clientBasedCORS: (ctx, origin, client) => {
      if (!isOriginOf(client, origin, issuer)) ctx.remove("Access-Control-Allow-Origin");
      return true;
    },
    loadExistingGrant: async (ctx) => {
      const { result, session, client, provider } = ctx.oidc;
      const consent = result?.consent as { grantId?: string } | undefined;
      const grantId = consent?.grantId ?? session?.grantIdFor(client?.clientId ?? "");
      return grantId === undefined
        ? options.interactions.agreeSilently(ctx)
        : provider.Grant.find(grantId);
    },
    rotateRefreshToken: (ctx) => {
      requireProof(ctx);
      return true;
    },
    issueRefreshToken: (_ctx, client, source) =>
      client.grantTypeAllowed("refresh_token") && source.scopes.has("offline_access"),
    findAccount: async (_ctx, id) => toCoreAccount(await options.users.find(id)),
    clientAuthMethods: [...CLIENT_AUTH_METHODS],
    enabledJWA: {
      idTokenSigningAlgValues: ["RS256", "ES256"],
      clientAuthSigningAlgValues: [...CLIENT_AUTH_ALGORITHMS],
    },
    ttl: {
      AccessToken: TTL_SECONDS.accessToken,
      ClientCredentials: TTL_SECONDS.accessToken,
      AuthorizationCode: TTL_SECONDS.code,
      DeviceCode: TTL_SECONDS.deviceCode,
      IdToken: TTL_SECONDS.idToken,
      Interaction: TTL_SECONDS.interaction,
      Session: TTL_SECONDS.session,
      Grant: TTL_SECONDS.grant,
      RefreshToken: (_ctx, token) => getRefreshTtl(token, options.clock),
    },
    cookies: {
      keys: [
        createHmac("sha256", options.cookieSecret).update("oauth cookies").digest("base64url"),
      ],
      names: {
        session: cookie.name,
        interaction: isHttps ? "__Secure-oauth_interaction" : "oauth_interaction",
        resume: isHttps ? "__Secure-oauth_resume" : "oauth_resume",
      },
      long: cookie.attributes,
      short: { ...COOKIE_ATTRIBUTES, secure: isHttps },
    },
    discovery: describeMore(options.pages),
    interactions: {
      url: (_ctx, interaction) => `/interaction/${interaction.uid}`,
      policy: buildPromptPolicy(options),
    },
    formats: { customizers: { jwt: (ctx, token, jwt) => claims.complete(ctx, token, jwt) } },
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: true },
      clientCredentials: { enabled: true },
      // This service implements both endpoints; the core authenticates clients that use assertions.
      introspection: { enabled: true, allowedPolicy: () => false },
      revocation: { enabled: true, allowedPolicy: () => false },
      registration: { enabled: true, initialAccessToken: true },
      registrationManagement: { enabled: true, rotateRegistrationAccessToken: true },
      pushedAuthorizationRequests: { enabled: true },
      dPoP: { enabled: true },
      backchannelLogout: { enabled: true },
      claimsParameter: { enabled: true },
      externalSigningSupport: { enabled: true, ack: "experimental-01" },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => issuer,
        useGrantedResource: () => true,
        getResourceServerInfo: async (ctx, indicator, client) => {
          const audience = entitlements.chooseAudience(client, indicator);
          if (audience === undefined)
            throw new errors.InvalidTarget("the client may not have tokens for the resource");
          return {
            scope: (await claims.permitScopes(ctx, client)).join(" "),
            audience,
            accessTokenTTL: TTL_SECONDS.accessToken,
            accessTokenFormat: "jwt",
            jwt: { sign: { alg: keys.active.algorithm } },
          };
        },
      },
      ...buildPageFeatures(options.pages, { endSession: options.endSession, cookie }),
    },
    renderError: (ctx, out, error) => {
      ctx.type = "html";
      const isExpired = error instanceof errors.SessionNotFound;
      const kind = isExpired ? "expired" : out.error === "server_error" ? "failed" : "refused";
      ctx.body = options.pages.error(ctx.req, {
        kind,
        code: out.error,
        detail: out.error_description ?? "",
      });
    },
    fetch: (url, init = {}) =>
      options.egressFetch(url instanceof Request ? url.url : url, toEgressRequest(init)),
    fetchResponseBodyLimits: { jwks_uri: 256 * 1024, sector_identifier_uri: 256 * 1024 },
  };
}

function describeSessionCookie(issuer: string): SessionCookie {
  const isHttps = issuer.startsWith("https:");
  return {
    name: isHttps ? "__Host-oauth_session" : "oauth_session",
    attributes: { ...COOKIE_ATTRIBUTES, secure: isHttps, path: "/" },
  };
}

// Discovery members that the core does not include.
function describeMore({ languages }: OAuthPages): Record<string, unknown> {
  return {
    prompt_values_supported: ["none", "login", "consent", "select_account"],
    ui_locales_supported: languages,
    introspection_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
    introspection_endpoint_auth_signing_alg_values_supported: CLIENT_AUTH_ALGORITHMS,
    revocation_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
    revocation_endpoint_auth_signing_alg_values_supported: CLIENT_AUTH_ALGORITHMS,
  };
}

function buildPageFeatures(
  pages: OAuthPages,
  signOut: NamedSignOutOptions,
): Pick<NonNullable<Configuration["features"]>, "rpInitiatedLogout" | "deviceFlow"> {
  const show = (ctx: KoaContextWithOIDC, page: string): void => {
    ctx.type = "html";
    ctx.body = page;
  };
  const nameClient = (ctx: KoaContextWithOIDC): string =>
    ctx.oidc.client?.clientName ?? ctx.oidc.client?.clientId ?? "";
  // The core's own forms have no labels, and scripts in attributes.
  const readForm = (ctx: KoaContextWithOIDC, route: string): CoreForm => ({
    action: ctx.oidc.urlFor(route),
    xsrf: (ctx.oidc.session as unknown as { state: { secret: string } }).state.secret,
  });
  return {
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: async (ctx) => {
        if (await endNamedSession(ctx, signOut)) return;
        show(ctx, pages.signOut(ctx.req, readForm(ctx, "end_session_confirm")));
      },
      postLogoutSuccessSource: (ctx) => show(ctx, pages.signedOut(ctx.req)),
    },
    deviceFlow: {
      enabled: true,
      charset: "base-20",
      mask: "****-****",
      userCodeInputSource: (ctx, _form, _out, problem) => {
        const asked = new URL(ctx.originalUrl, "http://localhost").searchParams.get("user_code");
        const entered = {
          code: (problem as { userCode?: string } | undefined)?.userCode ?? asked ?? undefined,
          isWrong: problem !== undefined,
        };
        show(ctx, pages.deviceCode(ctx.req, readForm(ctx, "code_verification"), entered));
      },
      userCodeConfirmSource: (ctx, _form, _client, _info, code) => {
        const entered = String(ctx.oidc.params?.["user_code"]);
        const device = { client: nameClient(ctx), code, entered };
        show(ctx, pages.confirmDevice(ctx.req, readForm(ctx, "code_verification"), device));
      },
      successSource: (ctx) => show(ctx, pages.deviceDone(ctx.req, nameClient(ctx))),
    },
  };
}

// Each use extends a refresh token, but not beyond the absolute lifetime since the first token of its family.
function getRefreshTtl(token: { iiat?: number | undefined }, clock: Clock): number {
  const now = Math.floor(clock.now() / 1_000);
  const left = (token.iiat ?? now) + TTL_SECONDS.refreshAbsolute - now;
  return Math.max(1, Math.min(TTL_SECONDS.refreshIdle, left));
}

function toCoreAccount(account: User | undefined): Account | undefined {
  if (account === undefined || account.disabled) return undefined;
  return { accountId: account.id, claims: () => describeAccount(account) };
}

function toEgressRequest(init: RequestInit): Parameters<EgressFetch>[1] {
  const { method, headers, body, signal } = init;
  return {
    ...(method === undefined ? {} : { method }),
    headers: new Headers(headers),
    ...(body === undefined || body === null
      ? {}
      : { body: String(body as string | URLSearchParams) }),
    ...(signal === undefined ? {} : { signal }),
  };
}
