// An issuer in this process: discovery, keys, and a token endpoint that trusts every code.
import { once } from "node:events";
import { generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

/** The client that it knows. */
export const CLIENT = { clientId: "platform-console", clientSecret: "secret-of-the-console" };

/** A running issuer. */
export interface Issuer {
  url: string;
  /** Signs claims with its key; `header` replaces members of the header. */
  sign: (claims: object, header?: object) => string;
  /** Session and subject of the next sign-in. */
  next: { sub: string; sid: string | undefined; nonce: string };
  /** Number of refresh tokens that were redeemed. */
  countRenewals: () => number;
}

/** Starts it. */
export async function startIssuer(t: TestContext): Promise<Issuer> {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  let renewals = 0;
  const next: Issuer["next"] = { sub: "ada", sid: "session-1", nonce: "" };
  const signToken = (claims: object, header: object = {}): string => {
    const parts = [{ alg: "ES256", kid: "k1", ...header }, claims].map((part) =>
      Buffer.from(JSON.stringify(part)).toString("base64url"),
    );
    const text = parts.join(".");
    const key = { key: privateKey, dsaEncoding: "ieee-p1363" } as const;
    return `${text}.${sign("sha256", Buffer.from(text), key).toString("base64url")}`;
  };
  const issue = () => {
    const now = Math.floor(Date.now() / 1_000);
    const claims = { iss: url, sub: next.sub, sid: next.sid, iat: now, exp: now + 300 };
    return {
      token_type: "Bearer",
      expires_in: 300,
      refresh_token: "refresh-token",
      access_token: signToken({ ...claims, aud: "platform" }, { typ: "at+jwt" }),
      id_token: signToken({ ...claims, aud: CLIENT.clientId, nonce: next.nonce, auth_time: now }),
    };
  };
  const server = createServer((request, response) => {
    const documents: Record<string, () => object> = {
      "/.well-known/openid-configuration": () => ({
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        jwks_uri: `${url}/jwks`,
        id_token_signing_alg_values_supported: ["ES256"],
      }),
      "/jwks": () => ({
        keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k1", alg: "ES256", use: "sig" }],
      }),
      "/token": issue,
    };
    const found = documents[request.url ?? ""];
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (text: string) => (body += text));
    request.on("end", () => {
      if (body.includes("grant_type=refresh_token")) renewals += 1;
      response.writeHead(found === undefined ? 404 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(found?.() ?? {}));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, sign: signToken, next, countRenewals: () => renewals };
}
