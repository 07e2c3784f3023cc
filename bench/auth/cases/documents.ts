// (c) Discovery and key set, compared with a static response of the same server.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { REQUEST_COLUMNS, runContenders } from "../../harness/contest.ts";
import { startBuilds } from "../servers/platform-auth.ts";

export const documents: BenchCase = {
  name: "documents",
  title: "Key set and discovery",
  run: async (context) => {
    await using workspace = new Workspace();
    const builds = await startBuilds(context, workspace);
    return {
      work: "GET, 32 connections, one core, compared with /healthz.",
      columns: REQUEST_COLUMNS,
      rows: await runContenders(
        context,
        workspace,
        builds.flatMap(({ origin, pid, suffix }) =>
          [
            { name: "key set", isOurs: true, path: "/.well-known/jwks.json" },
            { name: "discovery", isOurs: true, path: "/.well-known/openid-configuration" },
            { name: "healthz", isOurs: false, path: "/healthz" },
          ].map(({ name, isOurs, path }) => ({
            name: name + suffix,
            isOurs,
            version: "",
            url: origin + path,
            pid,
          })),
        ),
      ),
      ratioColumns: ["perS"],
      goals: [{ column: "perS", against: "healthz", atLeast: 0.7 }],
    };
  },
};
