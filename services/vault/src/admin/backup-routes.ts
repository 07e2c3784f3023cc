// Backups in the admin API: jobs that write snapshots into repositories, and that restore buckets from them.
import { BackupError, Repository } from "@platform/kernel/backup";
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { describeRepository } from "../backup/back-up.ts";
import { requireBackupAllowed } from "../backup/repository-place.ts";
import type { BackupParts } from "../backup/other-run.ts";
import type { JobEngine } from "../job/job-engine.ts";
import { isOwnBucket } from "../model/bucket.ts";
import type { RepositoryAddress, RestoreSpec } from "../model/job.ts";
import { S3Error } from "../model/s3-error.ts";
import type { Store } from "../object-store.ts";
import { requireBucketName } from "../store/bucket-catalogue.ts";
import { toRequester } from "./batch-job-routes.ts";
import type { ConsoleOperations } from "./bucket/console-operations.ts";
import { asProblem } from "./problem.ts";

const TAG = "Backups";
const BUCKETS_MAX = 10_000;
const KEEP_MAX = 10_000;
const count = z.int().min(0);
const bucketName = z.string().min(1).max(63);
const path = z
  .string()
  .min(1)
  .max(4_096)
  .describe("Folder below `backup_dir`; relative paths begin there.");
const remotePlace = {
  remote: z.string().min(1).max(80).describe("Name of a registered remote."),
  bucket: z.string().min(3).max(63).describe("Bucket there."),
  prefix: z.string().max(512).default("").describe("Folder there, after the prefix of the remote."),
};
const repository = z.union([z.strictObject({ path }), z.strictObject(remotePlace)]);
const repositoryQuery = z.strictObject({
  path: path.optional(),
  remote: remotePlace.remote.optional(),
  bucket: remotePlace.bucket.optional(),
  prefix: remotePlace.prefix,
});
const kept = z.int().min(0).max(KEEP_MAX).optional();
const created = z.object({ job_id: z.string() });

const backupBody = z.strictObject({
  repository,
  keep: z
    .strictObject({ last: kept, daily: kept, weekly: kept })
    .refine((keep) => Object.values(keep).some((number) => (number ?? 0) > 0), {
      error: "expected at least one snapshot",
    })
    .optional()
    .describe(
      "Snapshots that are kept: the last ones, and the last ones of days and weeks. Default: all.",
    ),
});

const restoreBody = z.strictObject({
  repository,
  snapshot: z.string().min(1).max(64).optional().describe("Default: the last one."),
  buckets: z
    .array(bucketName)
    .min(1)
    .max(BUCKETS_MAX)
    .optional()
    .describe("Default: all but those that storage makes itself."),
  as: z
    .record(bucketName, bucketName)
    .default({})
    .describe("New names of buckets, by the names that they had."),
});

const snapshotAnswer = z.object({
  id: z.string(),
  created_at: z.string().describe("RFC 3339."),
  files: count,
  bytes: count,
  added_bytes: count.describe("Bytes that the repository did not have before."),
});

/** Options of the routes. */
export interface BackupRouteOptions {
  readonly store: Store;
  readonly engine: JobEngine;
  readonly backups: BackupParts;
  /** Identifies callers. */
  readonly console: ConsoleOperations;
}

/** Routes that back up, list snapshots, and restore. */
export function createBackupRoutes(options: BackupRouteOptions): ApiRoute[] {
  return [createBackupRoute(options), createSnapshotsRoute(options), createRestoreRoute(options)];
}

function createBackupRoute(options: BackupRouteOptions): ApiRoute {
  const { engine, backups } = options;
  return defineRoute({
    method: "POST",
    path: "/admin/backup",
    tag: TAG,
    summary: "Back up into a repository",
    description:
      "Starts a job, which `GET /admin/batch/{id}` shows. It stores what the repository does not have. With `backup_passphrase_file` a new repository is encrypted.",
    body: backupBody,
    status: 202,
    answer: created,
    problems: { 409: "A backup is queued or running", 429: "Too many queued jobs" },
    handle: async (request) => {
      const { repository: address, keep } = request.body;
      await explain(asProblem(checkPlace(backups, address)));
      if (engine.has("backup")) throw new PlatformError("conflict", "A backup is in progress.");
      const requester = toRequester(options, request);
      const spec = { operation: "backup", repository: address, keep, requester } as const;
      return { job_id: await asProblem(engine.submit(spec, 0)) };
    },
  });
}

function createSnapshotsRoute({ backups }: BackupRouteOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/admin/backup/snapshots",
    tag: TAG,
    summary: "Snapshots of a repository, the oldest first",
    query: repositoryQuery,
    answer: z.object({ items: z.array(snapshotAnswer) }),
    problems: { 404: "No such repository" },
    handle: async ({ query }) => {
      const opened = await open(backups, toAddress(query));
      const items: z.input<typeof snapshotAnswer>[] = [];
      for (const id of await explain(opened.listIds())) {
        const { manifest, mark } = await explain(opened.load(id));
        const { files, bytes, added: added_bytes } = mark;
        items.push({ id, created_at: manifest.created_at, files, bytes, added_bytes });
      }
      return { items };
    },
  });
}

function createRestoreRoute(options: BackupRouteOptions): ApiRoute {
  const { engine, backups, store } = options;
  return defineRoute({
    method: "POST",
    path: "/admin/backup/restore",
    tag: TAG,
    summary: "Restore buckets of a snapshot",
    description:
      "Starts a job, which `GET /admin/batch/{id}` shows. It verifies the whole snapshot, then imports buckets; each appears when all of its versions are there. Versions keep their ids, times, tags, locks and checksums; no events are sent and no triggers run.",
    body: restoreBody,
    status: 202,
    answer: created,
    problems: {
      404: "No such repository or snapshot",
      409: "A bucket exists",
      429: "Too many queued jobs",
    },
    handle: async (request) => {
      const { repository: address, snapshot, buckets, as } = request.body;
      await asProblem(checkNames(store, request.body));
      const opened = await open(backups, address);
      const { id, mark } = await explain(opened.load(snapshot), "not_found");
      // Names that the snapshot had are checked again by the job, which reads all of it.
      for (const name of buckets === undefined ? readNames(mark.point) : []) {
        requireFree(store, as[name] ?? name);
      }
      const requester = toRequester(options, request);
      const spec: RestoreSpec = {
        operation: "restore",
        repository: address,
        snapshot: id,
        ...(buckets === undefined ? {} : { buckets: [...new Set(buckets)] }),
        as,
        requester,
      };
      return { job_id: await asProblem(engine.submit(spec, 0)) };
    },
  });
}

async function checkPlace(
  { openPlace, store }: BackupParts,
  address: RepositoryAddress,
): Promise<void> {
  await openPlace(address).measure("repository.json");
  await requireBackupAllowed(store, address);
}

function toAddress({
  path: folder,
  remote,
  bucket,
  prefix,
}: z.output<typeof repositoryQuery>): RepositoryAddress {
  const isFolder = folder !== undefined && remote === undefined && bucket === undefined;
  if (isFolder) return { path: folder };
  if (folder === undefined && remote !== undefined && bucket !== undefined)
    return { remote, bucket, prefix };
  throw new PlatformError("bad_request", "expected either path, or remote and bucket");
}

// Without its passphrase only the manifests can be read, which is enough here.
async function open({ openPlace }: BackupParts, address: RepositoryAddress): Promise<Repository> {
  const storage = await asProblem(Promise.resolve().then(() => openPlace(address)));
  return explain(Repository.open(describeRepository(storage, undefined)), "not_found");
}

async function explain<T>(
  work: Promise<T>,
  code: "not_found" | "conflict" = "conflict",
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    throw new PlatformError(code, error.message, { cause: error });
  }
}

async function checkNames(
  store: Store,
  { buckets, as }: Pick<z.output<typeof restoreBody>, "buckets" | "as">,
): Promise<void> {
  const invalid = (reason: string): S3Error => new S3Error("InvalidArgument", reason);
  for (const [name, target] of Object.entries(as)) {
    requireBucketName(target);
    if (isOwnBucket(target)) throw invalid(`as: ${target} is a bucket of storage itself.`);
    if (buckets !== undefined && !buckets.includes(name)) {
      throw invalid(`as: ${name} is not among buckets.`);
    }
  }
  const targets = [...(buckets ?? Object.keys(as))].map((name) => as[name] ?? name);
  if (new Set(targets).size < targets.length) throw invalid("as: two buckets have one name.");
  for (const target of targets) {
    if (isOwnBucket(target)) throw invalid(`buckets: ${target} needs a new name in as.`);
    requireFree(store, target);
  }
}

function requireFree(store: Store, name: string): void {
  if (store.buckets.find(name) === undefined) return;
  throw new PlatformError("conflict", `The bucket ${name} exists: give a new name in as.`);
}

function readNames(point: unknown): string[] {
  const { buckets = [] } = point as { buckets?: string[] };
  return buckets.filter((name) => !isOwnBucket(name));
}
