// Runs the stores of a case: each is filled with the same objects, then their rounds alternate.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "../../tests/stage/process.ts";
import type { BenchContext, Workspace } from "../harness/case.ts";
import type { Column, Row } from "../harness/report.ts";
import { runRounds, type RoundResult } from "../harness/rounds.ts";
import { readTreeCpu } from "../harness/usage.ts";
import { runWrk, toFigures } from "../harness/wrk.ts";
import { createPresigner, CREDENTIALS } from "./presign.ts";
import type { ObjectStore } from "./stores/store.ts";

const BUCKET = "/bench";
const WARM_UP_SECONDS = 2;
const NOTE_CHARS_MAX = 400;
const FILL_CONNECTIONS = 16;
const READY_ATTEMPTS_MAX = 50;

/** The workload of a case. */
export interface StoreLoad {
  /** Objects that exist before the first round. */
  fill: { count: number; bytes: number };
  connections: number;
  method: "GET" | "PUT";
  bodyBytes: number;
  /** The requests, which wrk sends in turn. */
  targets: readonly { path: string; query?: Record<string, string> }[];
  /** Bytes that each request moves, for MiB/s. */
  movedBytes: number;
}

/** The results of a round. */
export const STORE_COLUMNS: readonly Column[] = [
  { key: "perS", title: "requests/s", digits: 0 },
  { key: "mibPerS", title: "MiB/s", digits: 0 },
  { key: "cpuUs", title: "CPU µs/request", digits: 0 },
  { key: "p50Us", title: "p50 µs", digits: 0 },
  { key: "p99Us", title: "p99 µs", digits: 0 },
];

/** The path of a prepared object. */
export function nameObject(index: number): string {
  return `${BUCKET}/object-${String(index).padStart(8, "0")}`;
}

/** The paths of the bucket and of the prepared objects. */
export const BUCKET_PATH = BUCKET;

interface Entrant {
  row: Row;
  store: ObjectStore;
  origin: string;
  pids: number[];
  targets: string;
}

/** Starts and fills every store, then alternates their rounds. */
export async function runStores(
  context: BenchContext,
  workspace: Workspace,
  stores: readonly ObjectStore[],
  load: StoreLoad,
): Promise<Row[]> {
  const entrants: Entrant[] = [];
  for (const [index, store] of stores.entries()) {
    const folder = join(workspace.folder, `store-${index}`);
    entrants.push(await startEntrant(context, workspace, store, folder, load));
  }
  const running = entrants.filter((entrant) => entrant.pids.length > 0);
  for (const entrant of running) await loadOnce(context, workspace, entrant, load, WARM_UP_SECONDS);
  await runRounds(
    context,
    running,
    (entrant) => loadOnce(context, workspace, entrant, load, context.seconds),
    ({ perS }) => `${perS!.toFixed(0)} requests/s`,
  );
  return entrants.map((entrant) => entrant.row);
}

async function startEntrant(
  context: BenchContext,
  workspace: Workspace,
  store: ObjectStore,
  folder: string,
  load: StoreLoad,
): Promise<Entrant> {
  const absence = store.explainAbsence();
  const version = absence === undefined ? store.readVersion() : "";
  const row: Row = { name: store.name, isOurs: store.isOurs, version, rounds: [] };
  const port = await findFreePort();
  const host = `127.0.0.1:${port}`;
  const entrant: Entrant = { row, store, origin: `http://${host}`, pids: [], targets: "" };
  if (absence !== undefined) {
    row.note = absence;
    return entrant;
  }
  mkdirSync(folder, { recursive: true });
  try {
    // Stores have many threads or processes that wait for a disk: each may use every core, in addition to the load.
    const pids = await store.start({ port, cores: context.cores.all, folder, workspace });
    if (store.isStatic === true) fillFolder(folder, load);
    else await fillStore(entrant, load);
    entrant.targets = writeTargets(folder, host, store, load);
    entrant.pids = pids;
  } catch (error) {
    row.note = String(error).replaceAll(/\s+/g, " ").slice(0, NOTE_CHARS_MAX);
    context.say(`  ${row.name} is skipped: ${row.note}`);
  }
  return entrant;
}

function fillFolder(folder: string, load: StoreLoad): void {
  const body = Buffer.alloc(load.fill.bytes, "x");
  for (let index = 0; index < load.fill.count; index++)
    writeFileSync(join(folder, nameObject(index)), body);
}

async function fillStore({ origin, store }: Entrant, load: StoreLoad): Promise<void> {
  const sign = createPresigner(new URL(origin).host, store.credentials ?? CREDENTIALS);
  const put = async (path: string, body?: Uint8Array<ArrayBuffer>) => {
    const answer = await fetch(origin + sign("PUT", path), {
      method: "PUT",
      ...(body === undefined ? {} : { body }),
    });
    if (!answer.ok) throw new Error(`PUT ${path}: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
  };
  // A store may not be ready immediately after it listens.
  for (let attempt = 0; ; attempt++) {
    try {
      await put(BUCKET);
      break;
    } catch (error) {
      if (attempt === READY_ATTEMPTS_MAX) throw error;
      await sleep(200);
    }
  }
  const body = new Uint8Array(load.fill.bytes).fill(0x78);
  let next = 0;
  const lane = async () => {
    while (next < load.fill.count) await put(nameObject(next++), body);
  };
  await Promise.all(Array.from({ length: FILL_CONNECTIONS }, lane));
}

/** Writes the requests to a file, signed; returns its path. */
export function writeTargets(
  folder: string,
  host: string,
  store: ObjectStore,
  load: Pick<StoreLoad, "method" | "targets">,
): string {
  const sign = createPresigner(host, store.credentials ?? CREDENTIALS);
  const lines = load.targets.map(({ path, query }) =>
    store.isStatic === true ? path : sign(load.method, path, query),
  );
  const targetsPath = join(folder, "targets.txt");
  writeFileSync(targetsPath, `${lines.join("\n")}\n`);
  return targetsPath;
}

async function loadOnce(
  context: BenchContext,
  workspace: Workspace,
  entrant: Entrant,
  load: StoreLoad,
  seconds: number,
): Promise<RoundResult> {
  const readCpuMs = () => entrant.pids.reduce((sum, pid) => sum + readTreeCpu(pid).cpuMs, 0);
  const before = readCpuMs();
  const summary = await runWrk({
    url: entrant.origin,
    connections: load.connections,
    seconds,
    cycle: { method: load.method, targetsPath: entrant.targets, bodyBytes: load.bodyBytes },
    cores: context.cores.load,
    scratch: workspace.folder,
  });
  const figures = toFigures(summary, readCpuMs() - before);
  if (typeof figures === "string") return figures;
  return { ...figures, mibPerS: (figures.perS * load.movedBytes) / 2 ** 20 };
}
