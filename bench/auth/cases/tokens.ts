// (a) The cost of a client credentials token: client authentication, policy, one ES256 signature.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { REQUEST_COLUMNS, runContenders } from "../../harness/contest.ts";
import {
  BETTER_AUTH_CLIENT,
  BETTER_AUTH_RESOURCE,
  startBetterAuth,
} from "../servers/better-auth.ts";
import { BARE_CLIENT, startBareServer } from "../servers/oidc-provider.ts";
import { startBuilds } from "../servers/platform-auth.ts";

export const tokens: BenchCase = {
  name: "tokens",
  title: "Client credentials, JWT (ES256)",
  run: async (context) => {
    await using workspace = new Workspace();
    const builds = await startBuilds(context, workspace);
    const bare = await startBareServer(context, workspace);
    const better = await startBetterAuth(context, workspace);
    const authorize = (id: string, secret: string): Record<string, string> => ({
      Authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`,
    });
    const form = "grant_type=client_credentials";
    return {
      work: "POST /token with client_secret_basic, 32 connections, one core. Our service stores clients, secrets and revocations in SQLite. oidc-provider and better-auth (@better-auth/oauth-provider with the memory adapter, cached clients and resources, unencrypted keys, no rate limit) keep their only client in memory.",
      columns: REQUEST_COLUMNS,
      rows: await runContenders(context, workspace, [
        ...builds.map(({ origin, clientId, clientSecret, pid, suffix }) => ({
          name: `platform-auth${suffix}`,
          isOurs: true,
          version: "",
          url: `${origin}/api/v1/auth/token`,
          headers: authorize(clientId, clientSecret),
          form,
          pid,
        })),
        {
          name: "oidc-provider",
          isOurs: false,
          version: bare.version,
          url: `${bare.origin}/token`,
          headers: authorize(BARE_CLIENT.id, BARE_CLIENT.secret),
          form,
          pid: bare.pid,
        },
        {
          name: "better-auth",
          isOurs: false,
          version: better.version,
          url: `${better.origin}/api/auth/oauth2/token`,
          headers: authorize(BETTER_AUTH_CLIENT.id, BETTER_AUTH_CLIENT.secret),
          form: new URLSearchParams({
            grant_type: "client_credentials",
            resource: BETTER_AUTH_RESOURCE,
          }).toString(),
          pid: better.pid,
        },
      ]),
      ratioColumns: ["perS", "cpuUs"],
      goals: [
        { column: "perS", against: "oidc-provider", atLeast: 1 },
        { column: "perS", against: "better-auth", atLeast: 5 },
      ],
    };
  },
};
