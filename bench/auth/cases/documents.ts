// (c) Discovery and key set, compared with a static response of the same server.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { AUTH_COLUMNS, runContenders } from "../contest.ts";
import { startPlatformAuth } from "../servers/platform-auth.ts";

export const documents: BenchCase = {
  name: "documents",
  title: "Key set and discovery",
  run: async (context) => {
    await using workspace = new Workspace();
    const { origin, pid } = await startPlatformAuth(context, workspace);
    const shared = { version: "", pid };
    return {
      work: "GET, 32 connections, one core, compared with /healthz.",
      columns: AUTH_COLUMNS,
      rows: await runContenders(context, workspace, [
        { ...shared, name: "key set", isOurs: true, url: `${origin}/.well-known/jwks.json` },
        {
          ...shared,
          name: "discovery",
          isOurs: true,
          url: `${origin}/.well-known/openid-configuration`,
        },
        { ...shared, name: "healthz", isOurs: false, url: `${origin}/healthz` },
      ]),
      ratioColumns: ["perS"],
      goals: [{ column: "perS", against: "healthz", atLeast: 0.7 }],
    };
  },
};
