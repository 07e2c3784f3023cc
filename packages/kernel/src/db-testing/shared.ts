// One PostgreSQL for all test files of a run: the first that needs it starts it, and the runner ends it.
import { randomUUID } from "node:crypto";
import { spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  countSchemas,
  findPrograms,
  initCluster,
  runOnce,
  SETTINGS,
  startPostgresCluster,
  toUrl,
  waitUntilReady,
  type PostgresDatabases,
} from "./cluster.ts";

/** Folder of the run, which `npm test` sets. */
const RUN_VARIABLE = "PLATFORM_TEST_RUN";
/** Inherited by what a test starts, so that it can be ended with the test. */
const MARK_VARIABLE = "PLATFORM_TEST_MARK";
const WAIT_MS = 60_000;
const END_MS = 10_000;
const END_LOOK_MS = 20;
/** Connections of all files that run at the same time. */
const CONNECTIONS_MAX = 400;

/**
 * Opens PostgreSQL for a file: a database of its own in the cluster of the run, or a cluster of its own if the file
 * runs alone. Throws with the reason if PostgreSQL is not available.
 */
export async function openPostgres(): Promise<PostgresDatabases> {
  const run = process.env[RUN_VARIABLE];
  const folder = run === undefined ? undefined : await findCluster(join(run, "postgres"));
  if (folder === undefined) return startPostgresCluster();
  // Locks and notifications are those of a database, so files do not see each other's.
  const database = `file_${randomUUID().replaceAll("-", "")}`;
  const administer = (sql: string): Promise<void> => runOnce(toUrl(folder, "postgres"), sql);
  await administer(`create database ${database} template template0`);
  return {
    createDatabase: countSchemas(toUrl(folder, database)),
    stop: () => administer(`drop database ${database} with (force)`),
  };
}

/** Ends the cluster of a run, if one was started; returns when its files are no longer used. */
export function endSharedPostgres(run: string): void {
  const state = join(run, "postgres", "data", "postmaster.pid");
  if (!existsSync(state)) return;
  const pid = Number(readFileSync(state, "utf8").split("\n")[0]);
  if (!(pid > 1)) return;
  // Immediately: its data is not needed any more.
  process.kill(pid, "SIGQUIT");
  const endsMs = performance.now() + END_MS;
  while (existsSync(state) && performance.now() < endsMs)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, END_LOOK_MS);
}

/** Returns the folder of the cluster when it answers; undefined if the file that started it has failed. */
async function findCluster(folder: string): Promise<string | undefined> {
  const ready = join(folder, "ready");
  try {
    mkdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const deadline = performance.now() + WAIT_MS;
    while (!existsSync(ready)) {
      if (performance.now() > deadline) return undefined;
      await sleep(50);
    }
    return folder;
  }
  await startShared(folder);
  writeFileSync(ready, "");
  return folder;
}

async function startShared(folder: string): Promise<void> {
  const programs = findPrograms();
  if ("reason" in programs) {
    rmSync(folder, { recursive: true });
    throw new Error(programs.reason);
  }
  const { identity } = programs;
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid);
  chmodSync(folder, 0o755);
  const data = join(folder, "data");
  initCluster(programs, data);
  const log = openSync(join(folder, "log"), "w");
  const settings = [
    ...SETTINGS,
    "synchronous_commit=off",
    `max_connections=${CONNECTIONS_MAX}`,
    `unix_socket_directories=${folder}`,
  ];
  const { [MARK_VARIABLE]: _mark, ...env } = process.env;
  const server = spawn(
    join(programs.folder, "postgres"),
    ["-D", data, ...settings.flatMap((setting) => ["-c", setting])],
    // A session of its own: it outlives the file that starts it.
    { ...identity, cwd: folder, env, detached: true, stdio: ["ignore", "ignore", log] },
  );
  await waitUntilReady(toUrl(folder, "postgres"), server);
  server.unref();
}
