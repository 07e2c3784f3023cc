// The operation by which a running service sends a backup of itself.
import type { ServerResponse } from "node:http";
import { PassThrough, Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { PlatformError } from "../errors/index.ts";
import {
  alreadyAnswered,
  bytes,
  createTokenCheck,
  defineRoute,
  type ApiRoute,
} from "../http/index.ts";
import type { Logger } from "../log/index.ts";
import type { MetricRegistry } from "../metrics/index.ts";
import type { Secret } from "../secrets/index.ts";
import type { Clock } from "../time/index.ts";
import type { Snapshot } from "./snapshot.ts";
import { streamBackup } from "./stream.ts";

/** Path of the operation. */
export const BACKUP_PATH = "/api/v1/admin/backup";
/** Response header with the approximate size of the files, for progress. */
export const BACKUP_BYTES_HEADER = "x-platform-backup-bytes";
/** A snapshot keeps deleted data on the disk, so a client that never ends must not hold one for ever. */
const STREAM_MS_MAX = 24 * 3_600_000;

export interface BackupRouteOptions {
  service: string;
  /** Version of the service. */
  version: string;
  /** Version of the service's files. */
  dataFormat: number;
  /** `backup_token` of the configuration; without it all requests are refused. */
  token: Secret | undefined;
  /** Takes a snapshot. PlatformErrors are sent to the client. */
  takeSnapshot: () => Promise<Snapshot>;
  /** Aborts a backup in progress: the service stops. */
  stopping: AbortSignal;
  clock: Clock;
  metrics: MetricRegistry;
}

/**
 * Creates the operation: a tar archive of a complete backup folder, as `tar x` unpacks it. One backup at a time. Access
 * has a token of its own, because a backup contains everything, also what the API shows to no caller: private keys,
 * password hashes, all tenants' data.
 */
export function createBackupRoute(options: BackupRouteOptions): ApiRoute {
  const requireToken = createTokenCheck(options.token, "backup_token");
  const metrics = createMetrics(options.metrics);
  let isRunning = false;
  return defineRoute({
    method: "GET",
    path: BACKUP_PATH,
    summary: "Back up the running service: a tar archive with a manifest at its end",
    description:
      "Requires `backup_token` as a bearer token. The archive contains everything that was acknowledged before the request, and private keys. One backup at a time.",
    tag: "Operation",
    answer: bytes("application/x-tar"),
    access: "public",
    requires: "token",
    problems: { 401: "Not the backup token", 403: "Disabled", 409: "A backup is in progress" },
    handle: async (exchange) => {
      requireToken(exchange);
      if (exchange.method === "HEAD") return new Response(null, { status: 200 });
      if (isRunning) throw new PlatformError("conflict", "A backup is in progress.");
      isRunning = true;
      const run = new BackupRun(options, exchange.logger);
      let headers: Record<string, string>;
      try {
        headers = await run.begin();
      } catch (error) {
        isRunning = false;
        metrics.fail();
        throw error;
      }
      const { target, response } = openResponse(exchange.rawResponse, headers);
      void run
        .send(target)
        .then((bytes) => metrics.succeed(bytes, options.clock.now()), metrics.fail)
        .finally(() => {
          isRunning = false;
        });
      return response;
    },
  });
}

// Services with their own HTTP engine send the body of the Response.
function openResponse(
  raw: ServerResponse | undefined,
  headers: Record<string, string>,
): { target: Writable; response: Response } {
  if (raw !== undefined) {
    raw.writeHead(200, headers);
    return { target: raw, response: alreadyAnswered() };
  }
  const target = new PassThrough();
  const body = Readable.toWeb(target) as ReadableStream<Uint8Array>;
  return { target, response: new Response(body, { headers }) };
}

/** One backup: from the snapshot to its release. */
class BackupRun {
  readonly #options: BackupRouteOptions;
  readonly #logger: Logger;
  readonly #startedMs: number;
  #snapshot: Snapshot | undefined;
  #nowMs = 0;

  constructor(options: BackupRouteOptions, logger: Logger) {
    this.#options = options;
    this.#logger = logger;
    this.#startedMs = options.clock.monotonicMs();
  }

  /** Takes the snapshot and returns the head of the answer. Until this resolves, errors can be answered. */
  async begin(): Promise<Record<string, string>> {
    this.#nowMs = this.#options.clock.now();
    this.#logger.info("backup started");
    this.#snapshot = await this.#options.takeSnapshot();
    return {
      "Content-Type": "application/x-tar",
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      [BACKUP_BYTES_HEADER]: String(this.#snapshot.bytes),
    };
  }

  /** Sends everything; resolves to the bytes of the files. Rejects if the client has gone or the service stops. */
  async send(target: Writable): Promise<number> {
    const snapshot = this.#snapshot!;
    let bytes = 0;
    const onBytes = (more: number): void => void (bytes += more);
    const { service, version, dataFormat, stopping, clock } = this.#options;
    const archive = streamBackup(
      { service, version, dataFormat, nowMs: this.#nowMs, onBytes },
      snapshot,
    );
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(STREAM_MS_MAX)]);
    try {
      await pipeline(archive, target, { signal });
      const duration_ms = Math.round(clock.monotonicMs() - this.#startedMs);
      this.#logger.info("backup complete", { bytes, duration_ms });
      return bytes;
    } catch (error) {
      this.#logger.warn("backup interrupted", { bytes, error });
      throw error;
    } finally {
      await snapshot.release().catch((error: unknown) => {
        this.#logger.error("a snapshot could not be released", { error });
      });
    }
  }
}

function createMetrics(registry: MetricRegistry) {
  const outcomes = registry.counter({
    name: "platform_backups_total",
    help: "Backups sent, by outcome.",
    labels: ["outcome"],
  });
  const last = registry.gauge({
    name: "platform_backup_last_success_timestamp_seconds",
    help: "Time of the last complete backup since the start, in seconds since 1970; 0 if there was none.",
  });
  const size = registry.gauge({
    name: "platform_backup_last_bytes",
    help: "Size of the last complete backup.",
  });
  for (const outcome of ["complete", "failed"]) outcomes.with({ outcome }).add(0);
  return {
    fail: () => outcomes.with({ outcome: "failed" }).add(),
    succeed: (bytes: number, nowMs: number) => {
      outcomes.with({ outcome: "complete" }).add();
      last.set(nowMs / 1000);
      size.set(bytes);
    },
  };
}
