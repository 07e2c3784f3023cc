// Jobs: long work on many objects, stored with its progress.
import type { ModulePin } from "./guest.ts";
import type { StoredRequester } from "./requester.ts";

/** Operations of jobs on objects. */
export const OBJECT_JOBS = [
  "copy",
  "delete",
  "tag",
  "untag",
  "rewind",
  "pipeline",
  "replicate",
] as const;

type ObjectJob = (typeof OBJECT_JOBS)[number];

export const JOB_STATES = [
  "queued",
  "running",
  "paused",
  "completed",
  "failed",
  "cancelled",
] as const;

/** The state of a job; the last three are final. */
export type JobState = (typeof JOB_STATES)[number];

/** Objects that a job leaves out. */
export interface JobFilter {
  /** Bounds in epoch ms, which are left out, too. */
  readonly createdAfterMs?: number | undefined;
  readonly createdBeforeMs?: number | undefined;
  readonly sizeMin?: number | undefined;
  readonly sizeMax?: number | undefined;
  readonly suffix?: string | undefined;
  /** All of these. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  readonly storageClass?: string | undefined;
}

/** A list of objects in an object. */
export interface JobManifest {
  readonly bucket: string;
  readonly key: string;
  readonly format: "csv" | "ndjson";
  /** The version that the job began with. */
  readonly versionId?: string;
  readonly etag?: string;
}

/** A job as it was requested. */
export interface JobSpec {
  readonly operation: ObjectJob;
  readonly bucket: string;
  /** Selects objects, unless there are keys or a manifest. */
  readonly prefix: string;
  readonly keys?: readonly string[] | undefined;
  readonly manifest?: JobManifest | undefined;
  readonly versions: "live" | "all";
  readonly filter: JobFilter;
  readonly targetBucket?: string | undefined;
  readonly targetPrefix: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly pins: readonly ModulePin[];
  /** The moment to go back to, epoch ms. */
  readonly pointMs?: number | undefined;
  readonly isDryRun: boolean;
  readonly failurePercentMax: number;
  readonly report?: { readonly bucket: string; readonly prefix: string } | undefined;
  readonly reportsSuccesses: boolean;
  readonly requester: StoredRequester;
}

/** A backup as it was requested. */
export interface BackupSpec {
  readonly operation: "backup";
  readonly repository: RepositoryAddress;
  readonly keep?:
    | { last?: number | undefined; daily?: number | undefined; weekly?: number | undefined }
    | undefined;
  readonly requester: StoredRequester;
}

/** A restore of buckets as it was requested. */
export interface RestoreSpec {
  readonly operation: "restore";
  readonly repository: RepositoryAddress;
  /** Id of the snapshot. */
  readonly snapshot: string;
  /** Names of buckets in the snapshot; all of users without it. */
  readonly buckets?: readonly string[] | undefined;
  /** New names of buckets, by the names that they had. */
  readonly as: Readonly<Record<string, string>>;
  readonly requester: StoredRequester;
}

/** The place of a repository: a folder below `backup_dir`, or a bucket of a remote. */
export type RepositoryAddress =
  | { readonly path: string }
  | { readonly remote: string; readonly bucket: string; readonly prefix: string };

/** Any job as it was requested. */
export type StoredJobSpec = JobSpec | BackupSpec | RestoreSpec;

/** The place from which a job continues; empty at its beginning. */
export interface JobPosition {
  /** The last key in base64, and the sequence number of its last version. */
  readonly key?: string;
  readonly seq?: number;
  /** Number of keys of the list, or of buckets, that are done. */
  readonly listed?: number;
  /** Bytes of the manifest that are done. */
  readonly offset?: number;
  /** The line at `offset` is too long, and is passed over. */
  readonly isSkipping?: boolean;
}

/** Progress of a job. Times are in epoch ms. */
export interface JobProgress {
  readonly matched: number;
  readonly done: number;
  readonly failed: number;
  readonly bytes: number;
  readonly position: JobPosition;
  /** Keys that a dry run has found first. */
  readonly samples: readonly string[];
  /** Objects per second; 0 is no limit. */
  readonly rate: number;
  readonly startedMs?: number;
  readonly reason?: string;
  /** Id of the snapshot that a backup has made, or that a restore reads. */
  readonly snapshot?: string;
  readonly report?: { readonly bucket: string; readonly key: string };
  /** Bytes of its report so far. */
  readonly lineBytes: number;
}

/** A stored job without its specification, which may be large. */
export interface JobRow {
  readonly number: number;
  readonly id: string;
  readonly operation: string;
  readonly state: JobState;
  /** The person that made it. */
  readonly maker: string;
  readonly createdMs: number;
  readonly endedMs: number | undefined;
  /** It sees the versions up to this one; 0 before it begins. */
  readonly sequence: number;
  readonly progress: JobProgress;
}

/** An object of a job. */
export interface JobItem {
  readonly key: string;
  /** Undefined for the live object. */
  readonly version?: string | undefined;
  /** Its version id, live or not. */
  readonly seen: string;
  readonly etag: string;
  readonly bytes: number;
  readonly storageClass: string;
  /** Rewind only: the version to put on top, or the object to remove. */
  readonly rewind?: "restore" | "remove" | undefined;
}

/** A line of a report. */
export interface JobLine {
  readonly key: string;
  readonly version_id?: string | undefined;
  readonly outcome: "done" | "failed";
  readonly code?: string;
  readonly message?: string;
}

/** True for a state that no job leaves. */
export function isFinalState(state: JobState): boolean {
  return state === "completed" || state === "failed" || state === "cancelled";
}
