// An application that signs users in with openid-client, with its own callback page.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as client from "openid-client";
import { call, signIn, ADMIN } from "../client.ts";
import type { Stage } from "../stage.ts";

/** A running application. */
export interface Application {
  clientId: string;
  /** The URL that signs a user in; `more` are additional parameters. */
  begin(more?: Record<string, string>): Promise<URL>;
  /** Redeems the response that the user returned with. */
  finish(returned: URL): ReturnType<typeof client.authorizationCodeGrant>;
  refresh(token: string): ReturnType<typeof client.refreshTokenGrant>;
  close(): void;
}

/** Registers and starts an application; `metadata` is added to its name and address (RFC 7591). */
export async function startApplication(
  stage: Stage,
  name: string,
  metadata: Record<string, unknown> = {},
): Promise<Application> {
  const server = createServer((_request, response) => {
    response
      .writeHead(200, { "Content-Type": "text/html" })
      .end(`<!doctype html><html lang="en"><title>${name}</title><h1>Back at ${name}</h1></html>`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A failed test does not close it.
  server.unref();
  const callback = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
  const { token } = await signIn(stage, ADMIN);
  const { body } = await call(stage, "POST", "/api/v1/auth/clients", {
    token,
    body: {
      client_name: name,
      redirect_uris: [callback],
      grant_types: ["authorization_code", "refresh_token"],
      ...metadata,
    },
  });
  const { client_id: clientId, client_secret: secret } = body as unknown as Record<string, string>;
  const config = await client.discovery(new URL(stage.publicUrl), clientId!, secret, undefined, {
    execute: [client.allowInsecureRequests],
  });
  let verifier = "";
  let state = "";
  return {
    clientId: clientId!,
    begin: async (more = {}) => {
      verifier = client.randomPKCECodeVerifier();
      state = client.randomState();
      return client.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        scope: "openid profile email offline_access",
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        state,
        ...more,
      });
    },
    finish: (returned) =>
      client.authorizationCodeGrant(config, returned, {
        pkceCodeVerifier: verifier,
        expectedState: state,
      }),
    refresh: (token) => client.refreshTokenGrant(config, token),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
