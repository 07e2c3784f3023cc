// Paths of the OAuth endpoints.

/** The core's paths by its route names. */
export const CORE_ROUTES = {
  authorization: "/api/v1/auth/authorize",
  token: "/api/v1/auth/token",
  introspection: "/api/v1/auth/token/introspect",
  revocation: "/api/v1/auth/token/revoke",
  jwks: "/.well-known/jwks.json",
  registration: "/api/v1/auth/oauth/register",
  end_session: "/api/v1/auth/oauth/logout",
  device_authorization: "/api/v1/auth/device/authorize",
  code_verification: "/api/v1/auth/device",
  pushed_authorization_request: "/api/v1/auth/par",
  // Answered by this service, because the core rejects tokens with an audience. The core is configured with it to
  // accept requested claims.
  userinfo: "/api/v1/auth/userinfo",
} as const;

/** Endpoints in addition to the core's. */
export const OWN_ROUTES = {
  revocations: "/api/v1/auth/revocations",
} as const;

/** Paths of the discovery documents. */
export const DISCOVERY_ROUTES = [
  "/.well-known/openid-configuration",
  "/.well-known/oauth-authorization-server",
] as const;
// Paths with an id: resumed authorizations, clients, the steps of a logout, device confirmation.
const ROUTES_WITH_ID = [
  CORE_ROUTES.authorization,
  CORE_ROUTES.registration,
  CORE_ROUTES.end_session,
  CORE_ROUTES.code_verification,
].map((path) => `${path}/{id}`);

export const OAUTH_ROUTES: readonly string[] = [
  ...Object.values(CORE_ROUTES),
  ...Object.values(OWN_ROUTES),
  ...DISCOVERY_ROUTES,
  ...ROUTES_WITH_ID,
];

/** Allowed methods of a route, as in `Allow`. */
export function listMethods(route: string): string {
  switch (route) {
    case CORE_ROUTES.jwks:
    case OWN_ROUTES.revocations:
    case `${CORE_ROUTES.authorization}/{id}`:
    case `${CORE_ROUTES.code_verification}/{id}`:
      return "GET";
    case CORE_ROUTES.authorization:
    case CORE_ROUTES.end_session:
    case CORE_ROUTES.code_verification:
    case CORE_ROUTES.userinfo:
      return "GET, POST";
    case `${CORE_ROUTES.registration}/{id}`:
      return "GET, PUT, DELETE";
    default:
      return (DISCOVERY_ROUTES as readonly string[]).includes(route) ? "GET" : "POST";
  }
}
