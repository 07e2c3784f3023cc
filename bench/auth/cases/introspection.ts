// (b) The cost of introspection, compared with issuing.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { AUTH_COLUMNS, runContenders } from "../contest.ts";
import { startPlatformAuth } from "../servers/platform-auth.ts";

export const introspection: BenchCase = {
  name: "introspection",
  title: "Introspection compared with issuing",
  run: async (context) => {
    await using workspace = new Workspace();
    const { origin, pid, clientId, clientSecret } = await startPlatformAuth(context, workspace);
    const basic = Buffer.from(`${clientId}:${clientSecret}`).toString("base64");
    const headers = { Authorization: `Basic ${basic}` };
    const grant = new URLSearchParams({ grant_type: "client_credentials" });
    const answer = await fetch(`${origin}/api/v1/auth/token`, {
      method: "POST",
      headers,
      body: grant,
    });
    const { access_token: token } = (await answer.json()) as { access_token: string };
    const shared = { version: "", headers, pid };
    return {
      work: "POST /token/introspect of one JWT, compared with POST /token; 32 connections, one core. Each request looks up its client and the revocation list in SQLite.",
      columns: AUTH_COLUMNS,
      rows: await runContenders(context, workspace, [
        {
          ...shared,
          name: "introspect",
          isOurs: true,
          url: `${origin}/api/v1/auth/token/introspect`,
          form: `token=${token}`,
        },
        {
          ...shared,
          name: "issue",
          isOurs: false,
          url: `${origin}/api/v1/auth/token`,
          form: grant.toString(),
        },
      ]),
      ratioColumns: ["perS"],
      goals: [{ column: "perS", against: "issue", atLeast: 2 }],
    };
  },
};
