// Alternates requests between running servers, one round each, until all rounds are done.
import type { BenchContext, Workspace } from "./case.ts";
import type { Column, Row } from "./report.ts";
import { runRounds } from "./rounds.ts";
import { readTreeCpu } from "./usage.ts";
import { runWrk, toFigures, type WrkFigures } from "./wrk.ts";

// The JIT compiler needs some ten thousand requests; fewer would measure the startup.
const WARM_UP_SECONDS = 6;
const CONNECTIONS = 32;

/** A request that is repeated. */
export interface Contender {
  name: string;
  isOurs: boolean;
  version: string;
  url: string;
  headers?: Record<string, string>;
  /** Form to post; a GET without it. */
  form?: string;
  /** JSON to post. */
  json?: string;
  /** The server's process. */
  pid: number;
}

/** The results of a round. */
export const REQUEST_COLUMNS: readonly Column[] = [
  { key: "perS", title: "requests/s", digits: 0 },
  { key: "cpuUs", title: "CPU µs/request", digits: 0 },
  { key: "p50Us", title: "p50 µs", digits: 0 },
  { key: "p99Us", title: "p99 µs", digits: 0 },
];

/** Checks one response of each server, warms up, and runs the rounds. */
export async function runContenders(
  context: BenchContext,
  workspace: Workspace,
  contenders: readonly Contender[],
): Promise<Row[]> {
  const entrants = contenders.map((contender) => {
    const { name, isOurs, version } = contender;
    const row: Row = { name, isOurs, version, rounds: [] };
    return { contender, row };
  });
  for (const { contender } of entrants) {
    await checkAnswer(contender);
    await loadOnce(context, workspace, contender, WARM_UP_SECONDS);
  }
  await runRounds(
    context,
    entrants,
    ({ contender }) => loadOnce(context, workspace, contender, context.seconds),
    ({ perS }) => `${perS!.toFixed(0)} requests/s`,
  );
  return entrants.map(({ row }) => row);
}

async function checkAnswer({ name, url, headers, form, json }: Contender): Promise<void> {
  const type = form === undefined ? "application/json" : "application/x-www-form-urlencoded";
  const body = form ?? json;
  const answer = await fetch(url, {
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": type }) },
    ...(body === undefined ? {} : { method: "POST", body }),
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${name}: ${answer.status} ${text}`);
}

async function loadOnce(
  context: BenchContext,
  workspace: Workspace,
  { url, headers, form, json, pid }: Contender,
  seconds: number,
): Promise<WrkFigures | string> {
  const before = readTreeCpu(pid).cpuMs;
  const summary = await runWrk({
    url,
    connections: CONNECTIONS,
    seconds,
    ...(headers === undefined ? {} : { headers }),
    ...(form === undefined ? {} : { form }),
    ...(json === undefined ? {} : { json }),
    cores: context.cores.load,
    scratch: workspace.folder,
  });
  return toFigures(summary, readTreeCpu(pid).cpuMs - before);
}
