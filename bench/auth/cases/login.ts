// (d) Password logins compared with argon2 alone, and latency of other requests meanwhile.
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { PaceSummary } from "../../harness/pace-generator.ts";
import { runPinned } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import { takeMedian } from "../../harness/statistics.ts";
import { readTreeCpu } from "../../harness/usage.ts";
import { registerAccounts } from "../accounts.ts";
import type { Argon2Summary } from "../argon2-loop.ts";
import type { LoginSummary } from "../login-load.ts";
import { startPlatformAuth, type PlatformAuth } from "../servers/platform-auth.ts";

const ACCOUNTS = 64;
const CONNECTIONS = 8;
const WARM_UP_SECONDS = 5;
const PACE_GENERATOR = new URL("../../harness/pace-generator.ts", import.meta.url).pathname;
const PACE_CONNECTIONS = 4;
const PACE_PER_S = 100;
const JWKS_P99_MS_MAX = 20;

export const login: BenchCase = {
  name: "login",
  title: "Password logins compared with argon2 alone",
  run: async (context) => {
    await using workspace = new Workspace();
    const ours = await startPlatformAuth(context, workspace, { cores: context.cores.all });
    await registerAccounts(ours.origin, ACCOUNTS);
    const logins: Row = { name: "platform-auth", isOurs: true, version: "", rounds: [] };
    const alone: Row = { name: "argon2 alone", isOurs: false, version: "", rounds: [] };
    await runLogins(context, ours, WARM_UP_SECONDS);
    let concurrency = 0;
    const measureAlone = async (): Promise<void> => {
      const summary = await runArgon2(context);
      ({ concurrency } = summary);
      alone.rounds.push({ perS: summary.perS, cpuUs: summary.cpuUs });
    };
    for (let round = 1; round <= context.rounds; round += 1) {
      if (round % 2 === 1) await measureAlone();
      const figures = await measureLogins(context, ours);
      if (typeof figures === "string") logins.note = figures;
      logins.rounds.push(typeof figures === "string" ? undefined : figures);
      if (round % 2 === 0) await measureAlone();
      const said =
        typeof figures === "string" ? `INVALID, ${figures}` : `${figures["perS"]?.toFixed(1)}/s`;
      context.say(
        `  ${round}/${context.rounds} logins ${said}, argon2 alone ${alone.rounds.at(-1)?.["perS"]?.toFixed(1)}/s`,
      );
    }
    return {
      work:
        `POST /api/v1/auth/login with the right password (argon2id, 19 MiB, 2 passes, ${concurrency} at a time) of ${ACCOUNTS} accounts in turn on ` +
        `${CONNECTIONS} connections; each creates a session, writes to the audit log and signs a token, on SQLite. For comparison, the same verification in a loop, ` +
        `${concurrency} at a time, without a service. Meanwhile an open loop requests the key set ${PACE_PER_S} times per second. Service, hashing and both loads ` +
        `share all cores: CPU time used by the loads is not available for logins, and the latencies of the key set include the time its load waits for a core.`,
      columns: [
        { key: "perS", title: "verified/s", digits: 1 },
        { key: "cpuUs", title: "CPU µs each", digits: 0 },
        { key: "p50Us", title: "p50 µs", digits: 0 },
        { key: "p99Us", title: "p99 µs", digits: 0 },
        { key: "jwksP50Us", title: "key set p50 µs", digits: 0 },
        { key: "jwksP99Us", title: "key set p99 µs", digits: 0 },
      ],
      rows: [logins, alone],
      ratioColumns: ["perS", "cpuUs"],
      goals: [{ column: "perS", against: alone.name, atLeast: 0.85 }],
      remarks: [judgeJwks(logins)],
    };
  },
};

async function measureLogins(
  context: BenchContext,
  ours: PlatformAuth,
): Promise<Record<string, number> | string> {
  const before = readTreeCpu(ours.pid).cpuMs;
  const [summary, jwks] = await Promise.all([
    runLogins(context, ours, context.seconds),
    runJwks(context, ours),
  ]);
  const cpuMs = readTreeCpu(ours.pid).cpuMs - before;
  if (summary.failed > 0) return `${summary.failed} logins failed`;
  if (jwks.failed + jwks.unanswered > 0) {
    return `key set: ${jwks.failed} connections lost, ${jwks.unanswered} requests unanswered`;
  }
  return {
    perS: summary.perS,
    cpuUs: (cpuMs * 1_000) / summary.logins,
    p50Us: summary.p50Us,
    p99Us: summary.p99Us,
    jwksP50Us: jwks.p50Us,
    jwksP99Us: jwks.p99Us,
  };
}

function judgeJwks(row: Row): string {
  const p99Ms = takeMedian(row.rounds.flatMap((round) => round?.["jwksP99Us"] ?? [])) / 1_000;
  const verdict = p99Ms < JWKS_P99_MS_MAX ? "met" : "**missed**";
  return `- key set during logins, p99: ${p99Ms.toFixed(1)} ms, goal < ${JWKS_P99_MS_MAX} ms: ${verdict}`;
}

function runLogins(
  context: BenchContext,
  { origin }: PlatformAuth,
  seconds: number,
): Promise<LoginSummary> {
  const url = `${origin}/api/v1/auth/login`;
  const args = [url, ACCOUNTS, CONNECTIONS, seconds];
  return runChild(context, new URL("../login-load.ts", import.meta.url).pathname, args);
}

function runJwks(context: BenchContext, { origin }: PlatformAuth): Promise<PaceSummary> {
  const url = `${origin}/.well-known/jwks.json`;
  return runChild(context, PACE_GENERATOR, [url, PACE_CONNECTIONS, PACE_PER_S, context.seconds]);
}

function runArgon2(context: BenchContext): Promise<Argon2Summary> {
  const script = new URL("../argon2-loop.ts", import.meta.url).pathname;
  return runChild(context, script, [context.seconds]);
}

async function runChild<T>(
  context: BenchContext,
  script: string,
  args: readonly (string | number)[],
): Promise<T> {
  const output = await runPinned({
    name: script,
    command: process.execPath,
    args: [script, ...args.map(String)],
    cores: context.cores.all,
  });
  return JSON.parse(output) as T;
}
