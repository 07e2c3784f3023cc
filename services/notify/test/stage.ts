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
import { notifyDefinition } from "../src/config.ts";
import { startNotify, type NotifyService } from "../src/service.ts";

/** A response of the API. */
export interface Answer {
  status: number;
  headers: Headers;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests assert on members of JSON documents
  body: any;
  text: string;
}

/** A running service under test. */
export interface Stage extends NotifyService {
  /** Moves the clock. */
  advance(ms: number): void;
  /** Sets the calendar by this time, like a corrected system clock. */
  setCalendar(ms: number): void;
  /** Port of the SMTP server; 0 without one. */
  smtpPort: number;
  /** Log lines. */
  log: string[];
  /** Configuration for a restart on the same data. */
  settings: Record<string, unknown>;
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  close(drainMs?: number): Promise<void>;
}

/** One of the two databases, for loops over both. */
export interface StageKind {
  kind: "sqlite" | "postgres";
  skip: string | undefined;
  /** Prepares an empty database and returns its settings. */
  prepare: () => Promise<Record<string, unknown>>;
}

const folder = mkdtempSync(join(tmpdir(), "notify-"));
let cluster: Promise<PostgresCluster> | undefined;
let folders = 0;
const OPEN_STAGES = new Set<(drainMs?: number) => Promise<void>>();
after(async () => {
  // Stages of failed tests, which would keep the file running.
  for (const close of OPEN_STAGES) await close(0);
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
      const url = await (await cluster).createDatabase();
      const dataDir = join(folder, `${(folders += 1)}`);
      return { database_url: url, data_dir: dataDir, encryption_keys: `hex:${"5e".repeat(32)}` };
    },
  },
];

/** Starts the service on an empty SQLite database; `settings` are configuration keys. */
export async function startStage(settings: Record<string, unknown> = {}): Promise<Stage> {
  return startStageOn({ ...(await STAGE_KINDS[0]!.prepare()), ...settings });
}

/** Starts the service with the settings of a prepared database. */
export async function startStageOn(settings: Record<string, unknown>): Promise<Stage> {
  const config = buildSchema(notifyDefinition.keys).parse({
    addr: "127.0.0.1:0",
    send_wait_ms: 20_000,
    "smtp.tls": "off",
    "smtp.hostname": "notify.test",
    public_url: "https://mail.test/notify",
    ...settings,
  });
  const log: string[] = [];
  let aheadMs = 0;
  let correctionMs = 0;
  const clock = {
    now: () => systemClock.now() + aheadMs + correctionMs,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
  };
  const logger = createLogger({
    service: "notify",
    level: "debug",
    format: "json",
    write: (line) => void log.push(line),
  });
  const lifecycle = createEmbeddedLifecycle(logger);
  const close = async (drainMs = 5_000): Promise<void> => {
    if (OPEN_STAGES.delete(close)) await lifecycle.close(drainMs);
  };
  OPEN_STAGES.add(close);
  const service = await startNotify({ config, clock, log: logger, lifecycle });
  const smtpPort = lifecycle.listeners.find(({ name }) => name === "smtp")?.port ?? 0;
  return {
    ...service,
    smtpPort,
    advance: (ms) => void (aheadMs += ms),
    setCalendar: (ms) => void (correctionMs += ms),
    log,
    settings,
    close,
    call: (method, path, body, headers = {}) => call(service.url, method, path, body, headers),
  };
}

async function call(
  url: string,
  method: string,
  path: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<Answer> {
  const isRaw = typeof body === "string";
  const response = await fetch(new URL(path, url), {
    method,
    headers: {
      ...(body === undefined || isRaw ? {} : { "Content-Type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  const parsed: unknown = isJson && text !== "" ? JSON.parse(text) : undefined;
  return { status: response.status, headers: response.headers, body: parsed, text };
}
