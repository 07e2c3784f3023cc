// Loads of the mail cases and their figures.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BenchContext, Workspace } from "../harness/case.ts";
import { runPinned, startPinned } from "../harness/process.ts";
import type { RoundResult } from "../harness/rounds.ts";
import { readTreeCpu } from "../harness/usage.ts";
import { awaitPort, findFreePort } from "../../tests/stage/process.ts";
import type { PostSummary } from "./post-load.ts";

/** Work that was done, or why the round is invalid. */
export type LoadResult = { count: number; seconds: number } | string;

/** The figures of a round, and their titles for mail. */
export const MAIL_COLUMNS = [
  { key: "perS", title: "mails/s", digits: 0 },
  { key: "cpuUs", title: "CPU µs/mail", digits: 0 },
  { key: "perCpuS", title: "mails per CPU second", digits: 0 },
] as const;

/** Size of a mail's text in bytes. */
export const TEXT_BYTES = 10_240;

const POST_LOAD = new URL("./post-load.ts", import.meta.url).pathname;
/** smtp-source is given a number of mails instead of a time. */
const SOURCE_MAILS_PER_S = 400;

/** Measures a round of a process tree. */
export async function measure(pid: number, load: () => Promise<LoadResult>): Promise<RoundResult> {
  const before = readTreeCpu(pid).cpuMs;
  const result = await load();
  if (typeof result === "string") return result;
  const cpuMs = readTreeCpu(pid).cpuMs - before;
  return {
    perS: result.count / result.seconds,
    cpuUs: (cpuMs * 1_000) / result.count,
    perCpuS: (result.count * 1_000) / cpuMs,
  };
}

/** Posts a document for a time; each response must be 200 and contain `expected`. */
export async function runPosts(
  context: BenchContext,
  workspace: Workspace,
  load: { url: string; connections: number; seconds: number; body: object; expected: string },
): Promise<LoadResult> {
  const file = join(workspace.folder, "body.json");
  writeFileSync(file, JSON.stringify(load.body));
  const numbers = [load.connections, load.seconds].map(String);
  const output = await runPinned({
    name: "load",
    command: process.execPath,
    args: [POST_LOAD, load.url, ...numbers, file, load.expected],
    cores: context.cores.load,
  });
  const { succeeded, failed, seconds } = JSON.parse(output) as PostSummary;
  return failed > 0 ? `${failed} requests failed` : { count: succeeded, seconds };
}

/** Sends mail of 10 KB with smtp-source, for a time by estimate; resolves after `settle`. */
export async function runSource(
  context: BenchContext,
  load: { port: number; connections: number; seconds: number; to: string },
  settle: () => Promise<void>,
): Promise<LoadResult> {
  const count = SOURCE_MAILS_PER_S * load.seconds;
  const startedAt = performance.now();
  await runPinned({
    name: "smtp-source",
    command: "/usr/sbin/smtp-source",
    args: toSourceArgs(load, count),
    cores: context.cores.load,
  });
  await settle();
  return { count, seconds: (performance.now() - startedAt) / 1_000 };
}

// -d: connections are kept for several mails.
function toSourceArgs(
  { connections, to, port }: { connections: number; to: string; port: number },
  count: number,
): string[] {
  const numbers = { "-s": connections, "-m": count, "-l": TEXT_BYTES };
  const options = Object.entries(numbers).flatMap(([name, value]) => [name, String(value)]);
  return [...options, "-d", "-f", "no-reply@bench.example", "-t", to, `127.0.0.1:${port}`];
}

/** Starts smtp-sink, which accepts all mail; `delayS` is its wait before the reply to the content. Returns its port. */
export async function startSink(
  context: BenchContext,
  workspace: Workspace,
  delayS = 0,
): Promise<number> {
  const port = await findFreePort();
  const wait = delayS === 0 ? [] : ["-w", String(delayS)];
  const sink = workspace.keep(
    startPinned({
      name: "smtp-sink",
      command: "/usr/sbin/smtp-sink",
      args: ["-u", "nobody", ...wait, `127.0.0.1:${port}`, "1024"],
      cores: context.cores.load,
    }),
  );
  await awaitPort(sink, port);
  return port;
}
