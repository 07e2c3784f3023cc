// A private PostgreSQL for tests: a new cluster in a temporary folder, reachable only by a Unix socket.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import {
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";

/** A running cluster. */
export interface PostgresCluster {
  /**
   * Returns the URL of an empty database. It is a schema of one shared database, because creating a database takes a
   * second on a busy machine; code that does not name schemas sees no difference.
   */
  createDatabase(): Promise<string>;
  /**
   * For clusters that keep commits: stops the server (`immediate` simulates a crash), runs `whileDown`, and starts it
   * with the same data.
   */
  restart(mode: "fast" | "immediate", whileDown?: () => Promise<void>): Promise<void>;
  /** Stops the server and removes the folder. */
  stop(): Promise<void>;
}

/** The reason why PostgreSQL is not available, printed with skipped tests. */
export interface PostgresMissing {
  reason: string;
}

const START_TIMEOUT_MS = 20_000;
/** Empty clusters by version of PostgreSQL and owner. */
const SAVED_CLUSTERS = fileURLToPath(
  new URL("../../../../node_modules/.cache/postgres/one-database", import.meta.url),
);
// Each start copies the cluster, file by file: without templates of databases, and with short files of its log, a copy
// takes an eighth of the processor time.
const LOG_FILE_MIB = 1;
const DROP_TEMPLATES = ["template0", "template1"]
  .map((name) => `alter database ${name} is_template false;\ndrop database ${name};\n`)
  .join("");
// No listener on TCP, no durability, no background work: the data does not outlive the test.
const SETTINGS = [
  "listen_addresses=",
  "fsync=off",
  "full_page_writes=off",
  "wal_level=minimal",
  "max_wal_senders=0",
  "autovacuum=off",
  "shared_buffers=16MB",
];

/**
 * Returns the reason to skip tests of PostgreSQL, or undefined if it is available. With `PLATFORM_TEST_PEERS=required`
 * tests are never skipped; the start fails instead.
 */
export function findPostgresSkip(env: NodeJS.ProcessEnv = process.env): string | undefined {
  if (env["PLATFORM_TEST_PEERS"] === "required") return undefined;
  const programs = findPrograms();
  return "reason" in programs ? programs.reason : undefined;
}

/**
 * Starts a cluster in 1 to 3 seconds. Commits survive a restart only with `keepsCommits`, and never a crash of the
 * machine. Throws with the reason if PostgreSQL is not available.
 */
export async function startPostgresCluster(
  options: { keepsCommits?: boolean } = {},
): Promise<PostgresCluster> {
  const programs = findPrograms();
  if ("reason" in programs) throw new Error(programs.reason);
  const folder = mkdtempSync(join(tmpdir(), "pg-"));
  const identity = programs.identity;
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid);
  const data = join(folder, "data");
  const own = { ...identity, cwd: folder };
  makeCluster(programs, data);
  const settings = [
    ...SETTINGS,
    `synchronous_commit=${options.keepsCommits === true ? "on" : "off"}`,
    `unix_socket_directories=${folder}`,
  ];
  let log = "";
  const spawnServer = (): ChildProcess => {
    const child = spawn(
      join(programs.folder, "postgres"),
      ["-D", data, ...settings.flatMap((setting) => ["-c", setting])],
      { ...own, stdio: ["ignore", "ignore", "pipe"] },
    );
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log = (log + text).slice(-4_000);
    });
    return child;
  };
  let server = spawnServer();
  const kill = (): void => void server.kill("SIGQUIT");
  process.once("exit", kill);
  const stop = async (): Promise<void> => {
    process.off("exit", kill);
    await endServer(server, "immediate");
    rmSync(folder, { recursive: true, force: true });
  };
  const urlOf = (database: string): string =>
    `postgres://platform@/${database}?host=${encodeURIComponent(folder)}`;
  const waitForStart = async (): Promise<void> => {
    try {
      await waitUntilReady(urlOf("postgres"), server);
    } catch (error) {
      await stop();
      throw new Error(`PostgreSQL did not start: ${log}`, { cause: error });
    }
  };
  await waitForStart();
  let count = 0;
  return {
    createDatabase: async () => {
      count += 1;
      const schema = `test_${count}`;
      await runOnce(urlOf("postgres"), `create schema ${schema}`);
      return `${urlOf("postgres")}&options=${encodeURIComponent(`-c search_path=${schema}`)}`;
    },
    restart: async (mode, whileDown) => {
      await endServer(server, mode);
      await whileDown?.();
      server = spawnServer();
      await waitForStart();
    },
    stop,
  };
}

/** Drops everything in a database of `createDatabase`. */
export async function emptyDatabase(url: string): Promise<void> {
  await runOnce(
    url,
    `do $$ declare name text := current_schema(); begin
      execute format('drop schema %I cascade', name);
      execute format('create schema %I', name);
    end $$`,
  );
}

interface Programs {
  folder: string;
  /** Set if this process is root: PostgreSQL refuses to run as root and uses the account that Debian created for it. */
  identity: { uid: number; gid: number } | undefined;
}

function findPrograms(): Programs | PostgresMissing {
  const folder = [
    ...globSync("/usr/lib/postgresql/*/bin").toSorted().toReversed(),
    ...(process.env["PATH"] ?? "").split(":"),
  ].find((path) => existsSync(join(path, "initdb")) && existsSync(join(path, "postgres")));
  if (folder === undefined) return { reason: "the Debian package postgresql is not installed" };
  if (process.getuid?.() !== 0) return { folder, identity: undefined };
  try {
    const ask = (flag: string): number =>
      Number(execFileSync("id", [flag, "postgres"], { stdio: ["ignore", "pipe", "ignore"] }));
    return { folder, identity: { uid: ask("-u"), gid: ask("-g") } };
  } catch {
    return { reason: "running as root, and there is no user postgres to run PostgreSQL as" };
  }
}

/** Makes the files of an empty cluster: a copy of those that `initdb`, which takes a second, made for an earlier test. */
function makeCluster({ folder, identity }: Programs, data: string): void {
  const initdb = join(folder, "initdb");
  const version = execFileSync(initdb, ["--version"], { encoding: "utf8" }).replaceAll(/\W+/g, "-");
  const saved = join(SAVED_CLUSTERS, `${version}${identity?.uid ?? "own"}`);
  const copy = (from: string, to: string): void => void execFileSync("cp", ["-a", from, to]);
  if (existsSync(saved)) return copy(saved, data);
  const own = { ...identity, cwd: dirname(data) };
  const cluster = ["-U", "platform", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8"];
  execFileSync(initdb, ["-D", data, "--no-sync", `--wal-segsize=${LOG_FILE_MIB}`, ...cluster], {
    ...own,
    stdio: ["ignore", "ignore", "pipe"],
  });
  execFileSync(join(folder, "postgres"), ["--single", "-F", "-D", data, "postgres"], {
    ...own,
    input: DROP_TEMPLATES,
    stdio: ["pipe", "ignore", "pipe"],
  });
  mkdirSync(SAVED_CLUSTERS, { recursive: true });
  const unsaved = mkdtempSync(`${saved}-`);
  copy(data, join(unsaved, "data"));
  try {
    renameSync(join(unsaved, "data"), saved);
  } catch (error) {
    // Another test was faster.
    if (!existsSync(saved)) throw error;
  }
  rmSync(unsaved, { recursive: true, force: true });
}

async function waitUntilReady(url: string, server: ChildProcess): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    try {
      await runOnce(url, "select 1");
      return;
    } catch (error) {
      if (server.exitCode !== null || performance.now() > deadline) throw error;
    }
    await sleep(50);
  }
}

async function runOnce(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  try {
    await client.connect();
    await client.query(sql);
  } finally {
    await client.end().catch(() => {});
  }
}

// PostgreSQL's fast shutdown (SIGINT) closes all connections and checkpoints; the immediate one (SIGQUIT) requires
// crash recovery at the next start.
async function endServer(server: ChildProcess, mode: "fast" | "immediate"): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = new Promise((resolve) => server.once("exit", resolve));
  server.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
  const late = setTimeout(() => server.kill("SIGQUIT"), 5_000);
  await ended;
  clearTimeout(late);
}
