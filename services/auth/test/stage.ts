// Starts the service in this process, on SQLite or a private PostgreSQL, with a clock that tests move.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { buildSchema } from "@platform/kernel/config";
import {
  findPostgresSkip,
  startPostgresCluster,
  type PostgresCluster,
} from "@platform/kernel/db-testing";
import { createEmbeddedLifecycle } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import { authDefinition } from "../src/config.ts";
import { startAuth, type AuthOptions, type AuthService } from "../src/service.ts";

/** A clock that follows the system's until it is stopped and can be moved forward. */
export interface MovableClock {
  now(): number;
  monotonicMs(): number;
  advance(ms: number): void;
  /** Only `advance` moves it from now on, for delays that a busy machine would exceed. */
  stop(): void;
}

/** A running service under test. */
export interface Stage extends AuthService {
  clock: MovableClock;
  /** Log lines. */
  log: string[];
  /** Configuration for another node on the same database. */
  settings: Record<string, unknown>;
  close(): Promise<void>;
}

/** One of the two databases, for loops over both. */
export interface StageKind {
  kind: "sqlite" | "postgres";
  skip: string | undefined;
  /** Prepares an empty database and returns its settings. */
  prepare: () => Promise<Record<string, unknown>>;
}

const folder = mkdtempSync(join(tmpdir(), "auth-"));
let cluster: Promise<PostgresCluster> | undefined;
let folders = 0;
const DRAIN_MS = 2_500;
const OPEN_STAGES = new Set<() => Promise<void>>();
after(async () => {
  // Stages of failed tests, which would keep the file running.
  for (const close of OPEN_STAGES) await close();
  await (await cluster)?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Both databases. */
export const STAGE_KINDS: readonly StageKind[] = [
  {
    kind: "sqlite",
    skip: undefined,
    prepare: async () => ({ data_dir: join(folder, `${(folders += 1)}`) }),
  },
  {
    kind: "postgres",
    skip: findPostgresSkip(),
    prepare: async () => {
      cluster ??= startPostgresCluster();
      return {
        data_dir: join(folder, `${(folders += 1)}`),
        database_url: await (await cluster).createDatabase(),
        session_secret: "hex:" + "5e".repeat(32),
        encryption_keys: "hex:" + "ec".repeat(32),
      };
    },
  },
];

/** Starts the service; `settings` are configuration keys. */
export async function startStage(
  settings: Record<string, unknown>,
  options: Pick<AuthOptions, "passwordCost"> = {},
): Promise<Stage> {
  const config = buildSchema(authDefinition.keys).parse({
    addr: "127.0.0.1:0",
    // Generating an RSA key takes half a second.
    jwt_algorithm: "ES256",
    ...settings,
  });
  const log: string[] = [];
  let aheadMs = 0;
  let stopped: { now: number; monotonicMs: number } | undefined;
  const clock: MovableClock = {
    now: () => (stopped?.now ?? systemClock.now()) + aheadMs,
    monotonicMs: () => (stopped?.monotonicMs ?? systemClock.monotonicMs()) + aheadMs,
    advance: (ms) => void (aheadMs += ms),
    stop: () =>
      void (stopped ??= { now: systemClock.now(), monotonicMs: systemClock.monotonicMs() }),
  };
  const logger = createLogger({
    service: "auth",
    level: "debug",
    format: "json",
    write: (line) => void log.push(line),
  });
  const lifecycle = createEmbeddedLifecycle(logger);
  const close = async (): Promise<void> => {
    if (OPEN_STAGES.delete(close)) await lifecycle.close(DRAIN_MS);
  };
  OPEN_STAGES.add(close);
  const service = await startAuth({
    config,
    clock,
    // Cheap, because tests do not measure hashing.
    passwordCost: { memoryCost: 256, timeCost: 1, parallelism: 1 },
    ...options,
    log: logger,
    lifecycle,
  }).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return { ...service, clock, log, settings, close };
}
