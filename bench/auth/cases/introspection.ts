// (b) The cost of introspection, compared with issuing.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { REQUEST_COLUMNS, runContenders, type Contender } from "../../harness/contest.ts";
import { startBuilds, type PlatformAuth } from "../servers/platform-auth.ts";

export const introspection: BenchCase = {
  name: "introspection",
  title: "Introspection compared with issuing",
  run: async (context) => {
    await using workspace = new Workspace();
    const builds = await startBuilds(context, workspace);
    const contenders = await Promise.all(builds.map(listContenders));
    return {
      work: "POST /token/introspect of one JWT, compared with POST /token; 32 connections, one core. Each request looks up its client and the revocation list in SQLite.",
      columns: REQUEST_COLUMNS,
      rows: await runContenders(context, workspace, contenders.flat()),
      ratioColumns: ["perS"],
      goals: [{ column: "perS", against: "issue", atLeast: 2 }],
    };
  },
};

async function listContenders({
  origin,
  pid,
  clientId,
  clientSecret,
  suffix,
}: PlatformAuth & { suffix: string }): Promise<Contender[]> {
  const basic = Buffer.from(`${clientId}:${clientSecret}`).toString("base64");
  const headers = { Authorization: `Basic ${basic}` };
  const grant = new URLSearchParams({ grant_type: "client_credentials" });
  const issueUrl = `${origin}/api/v1/auth/token`;
  const answer = await fetch(issueUrl, { method: "POST", headers, body: grant });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const shared = { version: "", headers, pid };
  return [
    {
      ...shared,
      name: `introspect${suffix}`,
      isOurs: true,
      url: `${issueUrl}/introspect`,
      form: `token=${token}`,
    },
    {
      ...shared,
      name: `issue${suffix}`,
      isOurs: false,
      url: issueUrl,
      form: grant.toString(),
    },
  ];
}
