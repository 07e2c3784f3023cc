// Where the endpoints are.

/** The core's routes by its names for them; what begins with one of them belongs to it. */
export const coreRoutes = {
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
  // Answered by us: the core takes no tokens with an audience. It is told of it all the same, for claims are asked for it.
  userinfo: "/api/v1/auth/userinfo",
} as const;

/** Our own endpoints beside the core's. */
export const ownRoutes = {
  revocations: "/api/v1/auth/revocations",
} as const;

/** Where the discovery documents are. */
export const discoveryRoutes = [
  "/.well-known/openid-configuration",
  "/.well-known/oauth-authorization-server",
] as const;
// One more segment: an authorization being resumed, a client, the steps of signing out, a device being confirmed.
const withId = [
  coreRoutes.authorization,
  coreRoutes.registration,
  coreRoutes.end_session,
  coreRoutes.code_verification,
].map((path) => `${path}/{id}`);

/** All routes. */
export const oauthRoutes: readonly string[] = [
  ...Object.values(coreRoutes),
  ...Object.values(ownRoutes),
  ...discoveryRoutes,
  ...withId,
];

/** The methods of a route, as `Allow` names them. */
export function listMethods(route: string): string {
  switch (route) {
    case coreRoutes.jwks:
    case ownRoutes.revocations:
    case `${coreRoutes.authorization}/{id}`:
    case `${coreRoutes.code_verification}/{id}`:
      return "GET";
    case coreRoutes.authorization:
    case coreRoutes.end_session:
    case coreRoutes.code_verification:
    case coreRoutes.userinfo:
      return "GET, POST";
    case `${coreRoutes.registration}/{id}`:
      return "GET, PUT, DELETE";
    default:
      return (discoveryRoutes as readonly string[]).includes(route) ? "GET" : "POST";
  }
}
