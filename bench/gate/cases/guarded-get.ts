// (g) Requests with a token to verify and a line to log, as in production; and with a rate limit as well.
import { createHmac } from "node:crypto";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { CaseReport } from "../../harness/report.ts";
import { CONTEST_COLUMNS, runContest, startEntrants, type ContestLoad } from "../contest.ts";
import { nginx } from "../proxies/nginx.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { SMALL_BODY_BYTES, startUpstream } from "../upstream.ts";

const SECRET = "a secret of the benchmark alone, 32+ bytes";
const TOKEN_SECONDS = 86_400;

export const guardedGet: BenchCase = {
  name: "guarded-get",
  title: "Proxied GET with bearer JWT and access log",
  run: (context) =>
    compareGuarded(context, {
      rateLimit: false,
      work:
        "As small-get; ours verifies an HS256 token and writes a JSON line for each request, nginx writes its " +
        "combined access log (`buffer=64k flush=200ms`) and forwards the token without verifying it.",
      atMost: 1.3,
    }),
};

export const limitedGet: BenchCase = {
  name: "limited-get",
  title: "Proxied GET with bearer JWT, rate limit and access log",
  run: (context) =>
    compareGuarded(context, {
      rateLimit: true,
      work:
        "As guarded-get; both also count the requests of each client address against a limit that the load does not " +
        "reach: ours `rate_limit_rpm` (sliding window), nginx `limit_req` with `nodelay`.",
      atMost: 1.4,
    }),
};

async function compareGuarded(
  context: BenchContext,
  { rateLimit, work, atMost }: { rateLimit: boolean; work: string; atMost: number },
): Promise<CaseReport> {
  await using workspace = new Workspace();
  const upstream = await startUpstream(workspace.folder, context.cores.load);
  workspace.keep(upstream.process);
  const load: ContestLoad = {
    path: "/hello",
    connections: 64,
    headers: { Authorization: `Bearer ${signToken()}` },
    expected: { status: 200, bodyBytes: SMALL_BODY_BYTES },
  };
  const proxies = [...context.builds.map((build) => makePlatformGate(build)), nginx];
  const contenders = proxies.map((proxy) => ({
    proxy,
    setup: { accessLog: true, rateLimit, ...(proxy.isOurs ? { jwtSecret: SECRET } : {}) },
  }));
  const entrants = await startEntrants(context, workspace, upstream.port, contenders, load);
  return {
    work,
    columns: CONTEST_COLUMNS.slice(0, 4),
    rows: await runContest(context, workspace, entrants, load),
    ratioColumns: ["cpuUs", "perS"],
    goals: [{ column: "cpuUs", against: "nginx", atMost }],
  };
}

function signToken(): string {
  const encode = (value: unknown): string =>
    Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: "user-1", iat: now, exp: now + TOKEN_SECONDS, scope: "read" };
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  return `${signed}.${createHmac("sha256", SECRET).update(signed).digest("base64url")}`;
}
