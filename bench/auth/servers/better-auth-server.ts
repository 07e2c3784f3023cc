// `better-auth-server.ts PORT`: better-auth with its memory adapter and OAuth provider, JWT access tokens signed with
// ES256.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { oauthProvider } from "@better-auth/oauth-provider";
import { betterAuth, type BetterAuthPlugin } from "better-auth";
import { memoryAdapter, type MemoryDB } from "better-auth/adapters/memory";
import { toNodeHandler } from "better-auth/node";
import { jwt } from "better-auth/plugins/jwt";
import { BETTER_AUTH_CLIENT, BETTER_AUTH_RESOURCE } from "./better-auth.ts";

const SCOPE = "bench:read";
const TABLES =
  "user session account verification jwks rateLimit oauthClient oauthResource oauthClientResource " +
  "oauthClientAssertion oauthAccessToken oauthRefreshToken oauthConsent";

const [port = "0"] = process.argv.slice(2);
const tables: MemoryDB = Object.fromEntries(TABLES.split(" ").map((table) => [table, []]));
const auth = betterAuth({
  baseURL: `http://127.0.0.1:${port}`,
  secret: "bench-secret-bench-secret-bench-secret",
  database: memoryAdapter(tables),
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  logger: { level: "error" },
  // The fastest configuration: unencrypted keys, cached clients and resources.
  plugins: [
    jwt({
      disableSettingJwtHeader: true,
      jwks: { keyPairConfig: { alg: "ES256" }, disablePrivateKeyEncryption: true },
    }),
    oauthProvider({
      loginPage: "/sign-in",
      consentPage: "/consent",
      scopes: ["openid", SCOPE],
      m2mAccessTokenExpiresIn: 900,
      grantTypes: ["client_credentials"],
      resources: [BETTER_AUTH_RESOURCE],
      cachedResources: new Set([BETTER_AUTH_RESOURCE]),
      cachedTrustedClients: new Set([BETTER_AUTH_CLIENT.id]),
      enforcePerClientResources: false,
      silenceWarnings: { oauthAuthServerConfig: true, openidConfig: true },
      // Its types contradict each other under exactOptionalPropertyTypes.
    }) as unknown as BetterAuthPlugin,
  ],
});
// Its API registers clients for signed-in administrators only; the row is the same.
await (
  await auth.$context
).adapter.create({
  model: "oauthClient",
  data: {
    clientId: BETTER_AUTH_CLIENT.id,
    clientSecret: createHash("sha256").update(BETTER_AUTH_CLIENT.secret).digest("base64url"),
    redirectUris: [],
    grantTypes: ["client_credentials"],
    clientCredentialsScopes: [SCOPE],
    tokenEndpointAuthMethod: "client_secret_basic",
  },
});
const handle = toNodeHandler(auth);
createServer((request, response) => void handle(request, response)).listen(
  Number(port),
  "127.0.0.1",
);
