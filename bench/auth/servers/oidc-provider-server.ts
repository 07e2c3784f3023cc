// `oidc-provider-server.ts PORT`: oidc-provider with its in-memory adapter, JWT access tokens signed with ES256.
import { generateKeyPairSync } from "node:crypto";
import { Provider } from "oidc-provider";
import { BARE_CLIENT } from "./oidc-provider.ts";

const [port = "0"] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const jwk = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" });
const provider = new Provider(issuer, {
  jwks: { keys: [{ ...jwk, alg: "ES256", use: "sig", kid: "bench" }] },
  clients: [
    {
      client_id: BARE_CLIENT.id,
      client_secret: BARE_CLIENT.secret,
      grant_types: ["client_credentials"],
      response_types: [],
      redirect_uris: [],
      id_token_signed_response_alg: "ES256",
    },
  ],
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => issuer,
      getResourceServerInfo: () => ({
        scope: "",
        audience: "bench",
        accessTokenFormat: "jwt",
        accessTokenTTL: 900,
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
});
provider.listen(Number(port), "127.0.0.1");
