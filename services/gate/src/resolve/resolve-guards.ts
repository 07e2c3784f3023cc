// Resolves the fields of a route that decide who may use it.
import { readPolicy, type PolicyPlace } from "@platform/kernel/route-rules";
import type { RouteAuthConfig } from "../config/route-auth.ts";
import type { RouteConfig } from "../config/route.ts";
import {
  API_KEY_FIELDS,
  type BearerAuth,
  describeOidcClient,
  type RouteAuthSpec,
  type StepSpecs,
} from "../shared-state/index.ts";
import type { ReadFile } from "./confinement.ts";
import type { OidcClientSpec } from "../sign-in/oidc-provider.ts";
import { describeCause, refuseField } from "./route-fault.ts";

const FORWARD_TIMEOUT_MS = 5_000;
const SESSION_TTL_SECONDS = 86_400;
const SCOPES = ["openid", "profile"];
const SECRET_BYTES_MAX = 4_096;

/** Defaults of guards. */
export interface GuardDefaults {
  jwksUrl: string | undefined;
  issuer: string | undefined;
  audience: string | undefined;
  isBindingStrict: boolean;
  place: PolicyPlace;
  /** The listener requests certificates of clients. */
  requestsCertificates?: boolean;
}

/** Guards of one route. */
export interface ResolvedGuards {
  auth: RouteAuthSpec;
  steps: Pick<StepSpecs, "requiresApiKey" | "tenants" | "policy" | "clientCertificate">;
  /** Request fields that must not reach the upstream. */
  cutFields: readonly string[];
  oidc?: OidcClientSpec;
  warnings: readonly string[];
}

/** Resolves the guards. Throws `validation_failed` with the key if a setting is missing. */
export function resolveGuards(
  config: RouteConfig,
  label: string,
  defaults: GuardDefaults,
  read: ReadFile,
): ResolvedGuards {
  const { require_api_key: requiresApiKey, allowed_tenants: tenants, policy } = config;
  const guards = resolveAuth(config.auth, label, defaults, read);
  return {
    ...guards,
    cutFields: [...guards.cutFields, ...(requiresApiKey === true ? API_KEY_FIELDS : [])],
    steps: {
      ...(requiresApiKey === true ? { requiresApiKey } : {}),
      ...(tenants === undefined ? {} : { tenants }),
      ...resolveClientCertificate(config, label, defaults),
      ...(policy === undefined ? {} : { policy: readPolicy(policy, defaults.place) }),
    },
  };
}

function resolveClientCertificate(
  { require_client_certificate: isRequired, client_certificate_names: names = [] }: RouteConfig,
  label: string,
  { requestsCertificates }: GuardDefaults,
): Pick<StepSpecs, "clientCertificate"> {
  if (isRequired !== true) return {};
  if (requestsCertificates !== true) {
    const why = "requires `client_certificates`, which is read at startup";
    throw refuseField(label, "require_client_certificate", "true", why);
  }
  return { clientCertificate: { names } };
}

type AuthParts = Omit<ResolvedGuards, "steps">;

function resolveAuth(
  auth: RouteAuthConfig | undefined,
  label: string,
  defaults: GuardDefaults,
  read: ReadFile,
): AuthParts {
  const plain = { cutFields: [], warnings: [] };
  if (auth === undefined) return { ...plain, auth: { type: "inherit" } };
  switch (auth.type) {
    case "none":
      return { ...plain, auth: { type: "none" } };
    case "bearer":
      return resolveBearer(auth, label, defaults);
    case "workload":
      return {
        ...plain,
        auth: {
          type: "workload",
          jwksUrl: auth.jwks_url ?? "",
          audience: auth.audience ?? "",
          trustDomain: auth.trust_domain ?? "",
          ...describeLeeway(auth),
        },
      };
    case "forward":
      return resolveForward(auth);
    case "oidc":
      return resolveOidc(auth, label, read);
    default:
      return auth.type satisfies never;
  }
}

function resolveBearer(auth: RouteAuthConfig, label: string, defaults: GuardDefaults): AuthParts {
  const jwksUrl = auth.jwks_url ?? defaults.jwksUrl;
  if (jwksUrl === undefined) {
    throw refuseField(label, "auth.jwks_url", undefined, "is required, or jwks_url for all routes");
  }
  const issuer = auth.issuer ?? defaults.issuer;
  const audience = auth.audience ?? defaults.audience;
  const spec: BearerAuth = {
    type: "bearer",
    jwksUrl,
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience }),
    ...(auth.required_scope === undefined ? {} : { requiredScope: auth.required_scope }),
    ...describeLeeway(auth),
  };
  const missing = [
    ...(issuer === undefined ? ["issuer"] : []),
    ...(audience === undefined ? ["audience"] : []),
  ];
  if (missing[0] === undefined) return { auth: spec, cutFields: [], warnings: [] };
  if (defaults.isBindingStrict) {
    const fault =
      "is required with strict_token_binding: tokens for other services must be rejected";
    throw refuseField(label, `auth.${missing[0]}`, undefined, fault);
  }
  const warning = `auth has no ${missing.join(" and no ")}: tokens that its key set signed for other services are accepted`;
  return { auth: spec, cutFields: [], warnings: [warning] };
}

function resolveForward(auth: RouteAuthConfig): AuthParts {
  const upstreamFields = auth.upstream_headers ?? [];
  return {
    auth: {
      type: "forward",
      url: auth.url ?? "",
      timeoutMs: auth.timeout_ms ?? FORWARD_TIMEOUT_MS,
      ...(auth.request_headers === undefined ? {} : { requestFields: auth.request_headers }),
      upstreamFields,
    },
    cutFields: upstreamFields,
    warnings: [],
  };
}

function resolveOidc(auth: RouteAuthConfig, label: string, read: ReadFile): AuthParts {
  const { issuer = "", client_id: clientId = "", claim_headers: claimHeaders = {} } = auth;
  const isInsecureAllowed = auth.allow_insecure === true || isLoopbackUrl(issuer);
  if (!URL.canParse(issuer) || (!isInsecureAllowed && !issuer.startsWith("https:"))) {
    const fault = "is not an https URL; set allow_insecure to accept http";
    throw refuseField(label, "auth.issuer", issuer, fault);
  }
  const client = describeOidcClient({ issuer, clientId });
  const clientSecret = readClientSecret(auth, label, read);
  const oidc: OidcClientSpec = {
    client,
    issuer,
    clientId,
    ...(clientSecret === undefined ? {} : { clientSecret }),
    scopes: [...new Set(["openid", ...(auth.scopes ?? SCOPES)])],
    sessionTtlSeconds: auth.session_ttl_s ?? SESSION_TTL_SECONDS,
    claims: Object.values(claimHeaders),
    isInsecureAllowed,
  };
  const claimFields = Object.entries(claimHeaders);
  return {
    auth: { type: "oidc", client, claimFields },
    // The session in the cookie must not reach the upstream; the other cookies are written again.
    cutFields: ["Cookie", ...Object.keys(claimHeaders)],
    oidc,
    warnings: [],
  };
}

function isLoopbackUrl(url: string): boolean {
  return /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:\/|$)/.test(url);
}

function readClientSecret(
  auth: RouteAuthConfig,
  label: string,
  read: ReadFile,
): string | undefined {
  const { client_secret_env: name, client_secret_file: path } = auth;
  if (name !== undefined) {
    const value = process.env[name];
    if (value !== undefined && value !== "") return value;
    throw refuseField(label, "auth.client_secret_env", name, "is not set in the environment");
  }
  if (path === undefined) return undefined;
  try {
    const value = read(path, SECRET_BYTES_MAX).toString("utf8").trim();
    if (value === "") throw new Error("it is empty");
    return value;
  } catch (cause) {
    throw refuseField(
      label,
      "auth.client_secret_file",
      path,
      `cannot be used: ${describeCause(cause)}`,
    );
  }
}

function describeLeeway(auth: RouteAuthConfig): { leewaySeconds?: number } {
  return auth.leeway_s === undefined ? {} : { leewaySeconds: auth.leeway_s };
}
