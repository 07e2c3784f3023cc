// Runs contenders: each is started once, then loaded in turn, round by round.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { awaitPort, findFreePort } from "../../tests/stage/process.ts";
import { fetchAnswer, judgeAnswer, type AnswerExpectation } from "../harness/answer.ts";
import type { BenchContext, Workspace } from "../harness/case.ts";
import { type PinnedProcess } from "../harness/process.ts";
import type { Column, Row } from "../harness/report.ts";
import { runRounds, type RoundResult } from "../harness/rounds.ts";
import { readTreeCpu } from "../harness/usage.ts";
import { runWrk, toFigures } from "../harness/wrk.ts";
import type { Proxy, ProxySetup } from "./proxies/proxy.ts";
import { SMALL_BODY_BYTES } from "./upstream.ts";

const WARM_UP_SECONDS = 2;
// Requests that a just-in-time compiler needs to warm up, which takes longer on a busy machine.
const WARM_UP_REQUESTS = 40_000;
const WARM_UPS_MAX = 4;
const WARM_UP_BODY_BYTES_MAX = 100_000;
const NOTE_CHARS_MAX = 400;
// An answer's head may differ by a byte or two between requests (a counter, a duration).
const WIRE_BYTES_TOLERANCE = 0.02;

/** A proxy with its setup for this case. */
export interface Contender {
  proxy: Proxy;
  /** Name of the row, if the proxy's name is ambiguous. */
  name?: string;
  isOurs?: boolean;
  setup?: Partial<ProxySetup>;
}

/** The load of each contender. */
export interface ContestLoad {
  path: string;
  connections: number;
  headers?: Record<string, string>;
  /** JSON to POST; if absent, requests are GETs. */
  json?: string;
  expected: AnswerExpectation;
  /** Share by which the bytes of an answer may differ; default 2 %. */
  bytesTolerance?: number;
}

/** A small GET over as many connections as a busy proxy has. */
export const SMALL_LOAD: ContestLoad = {
  path: "/hello",
  connections: 64,
  expected: { status: 200, bodyBytes: SMALL_BODY_BYTES },
};

/** A running contender with correct responses, or the reason why it does not take part. */
export interface Entrant {
  row: Row;
  url: string;
  process?: PinnedProcess;
  /** Bytes of one correct response on the wire. */
  wireBytes: number;
}

/** The figures of a round of wrk. */
export const CONTEST_COLUMNS: readonly Column[] = [
  { key: "cpuUs", title: "CPU µs/request", digits: 1 },
  { key: "perS", title: "requests/s", digits: 0 },
  { key: "p50Us", title: "p50 µs", digits: 0 },
  { key: "p99Us", title: "p99 µs", digits: 0 },
  { key: "mibPerCpuS", title: "MiB/CPU s", digits: 0 },
];

/** Starts every contender and checks one answer of each. */
export async function startEntrants(
  context: BenchContext,
  workspace: Workspace,
  upstreamPort: number,
  contenders: readonly Contender[],
  load: ContestLoad,
): Promise<Entrant[]> {
  const entrants: Entrant[] = [];
  for (const [index, contender] of contenders.entries()) {
    entrants.push(await startEntrant(context, workspace, upstreamPort, contender, index, load));
  }
  return entrants;
}

/** Warms up each entrant, then runs rounds of wrk against each in turn. */
export async function runContest(
  context: BenchContext,
  workspace: Workspace,
  entrants: readonly Entrant[],
  load: ContestLoad,
): Promise<Row[]> {
  const running = entrants.filter((entrant) => entrant.process !== undefined);
  for (const entrant of running) await warmUp(context, workspace, entrant, load);
  await runRounds(
    context,
    running,
    (entrant) => loadOnce(context, workspace, entrant, load, context.seconds),
    ({ cpuUs, perS }) => `${cpuUs!.toFixed(1)} µs CPU/request, ${perS!.toFixed(0)} requests/s`,
  );
  return entrants.map((entrant) => entrant.row);
}

async function startEntrant(
  context: BenchContext,
  workspace: Workspace,
  upstreamPort: number,
  contender: Contender,
  index: number,
  load: ContestLoad,
): Promise<Entrant> {
  const { proxy } = contender;
  const absence = proxy.explainAbsence();
  const row: Row = {
    name: contender.name ?? proxy.name,
    isOurs: contender.isOurs ?? proxy.isOurs,
    version: absence === undefined ? proxy.readVersion() : "",
    rounds: [],
  };
  const entrant: Entrant = { row, url: "", wireBytes: 0 };
  if (absence !== undefined) {
    row.note = absence;
    return entrant;
  }
  const setup: ProxySetup = {
    port: await findFreePort(),
    upstreamPort,
    cores: context.cores.test,
    workers: 1,
    folder: join(workspace.folder, `contender-${index}`),
    unbuffered: false,
    accessLog: false,
    ...contender.setup,
  };
  entrant.url = `http://127.0.0.1:${setup.port}${load.path}`;
  const started = workspace.keep(proxy.start(setup));
  try {
    await awaitPort(started, setup.port);
    await awaitRightAnswer(entrant.url, load);
    // The first response of a cache is larger or smaller than those from its store.
    entrant.wireBytes = await awaitRightAnswer(entrant.url, load);
    entrant.process = started;
  } catch (error) {
    row.note = String(error).replaceAll(/\s+/g, " ").slice(0, NOTE_CHARS_MAX);
  }
  if (row.note !== undefined) context.say(`  ${row.name} is skipped: ${row.note}`);
  return entrant;
}

// The first answers may be errors while a proxy finishes starting.
async function awaitRightAnswer(url: string, load: ContestLoad): Promise<number> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await fetchAnswer(url, load.headers, load.json).catch((error: Error) => error);
    const fault = answer instanceof Error ? answer.message : judgeAnswer(answer, load.expected);
    if (fault === undefined && !(answer instanceof Error)) return answer.wireBytes;
    if (attempt === 50) throw new Error(`wrong answer: ${fault}`);
    await sleep(100);
  }
}

async function warmUp(
  context: BenchContext,
  workspace: Workspace,
  entrant: Entrant,
  load: ContestLoad,
): Promise<void> {
  let requests = 0;
  for (let turn = 0; turn < WARM_UPS_MAX && requests < WARM_UP_REQUESTS; turn += 1) {
    const figures = await loadOnce(context, workspace, entrant, load, WARM_UP_SECONDS);
    if (typeof figures === "string") return;
    requests += (figures["perS"] ?? 0) * WARM_UP_SECONDS;
    if ((load.expected.bodyBytes ?? 0) > WARM_UP_BODY_BYTES_MAX) return;
  }
}

async function loadOnce(
  context: BenchContext,
  workspace: Workspace,
  entrant: Entrant,
  load: ContestLoad,
  seconds: number,
): Promise<RoundResult> {
  const pid = entrant.process?.pid ?? 0;
  const before = readTreeCpu(pid);
  const summary = await runWrk({
    url: entrant.url,
    connections: load.connections,
    seconds,
    ...(load.headers === undefined ? {} : { headers: load.headers }),
    ...(load.json === undefined ? {} : { json: load.json }),
    cores: context.cores.load,
    scratch: workspace.folder,
  });
  const after = readTreeCpu(pid);
  if (before.pids.join() !== after.pids.join()) return "a process of the tree began or ended";
  const cpuMs = after.cpuMs - before.cpuMs;
  const figures = toFigures(summary, cpuMs);
  if (typeof figures === "string") return figures;
  const expectedBytes = summary.requests * entrant.wireBytes;
  // wrk also counts bytes of responses that were cut off at the end.
  const tolerance = load.bytesTolerance ?? WIRE_BYTES_TOLERANCE;
  const slackBytes = load.connections * entrant.wireBytes + expectedBytes * tolerance;
  if (Math.abs(summary.bytes - expectedBytes) > slackBytes) {
    return `${summary.bytes} bytes for ${summary.requests} answers of ${entrant.wireBytes}`;
  }
  return {
    ...figures,
    systemUs: ((after.systemMs - before.systemMs) * 1000) / summary.requests,
    mibPerCpuS: summary.bytes / 2 ** 20 / (cpuMs / 1000),
  };
}
