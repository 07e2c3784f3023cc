// Reads and commits of replication: versions with their marks, and the ends of attempts.
import type { IndexConnection } from "../index/schema.ts";
import { encodeKey, type ObjectDetail } from "../index/records.ts";
import type { ObjectAddress, ObjectInfo } from "../model/object.ts";
import type { ReplicationMarks } from "../model/replication.ts";
import { StoreError } from "../model/store-error.ts";
import type { Operation, OperationResult } from "../transaction/operations.ts";
import type {
  FinishReplicationOperation,
  NoteLateReplicationOperation,
} from "../transaction/replication-operations.ts";
import type { ObjectService, ServiceEnvironment } from "./object-service.ts";

/** A version that is to be replicated: an object or a delete marker. */
export type ReplicableVersion =
  | { readonly kind: "object"; readonly object: ObjectInfo; readonly marks: ReplicationMarks }
  | { readonly kind: "marker"; readonly modifiedMs: number; readonly marks: ReplicationMarks };

/** A task that waits. */
export interface WaitingReplication {
  readonly id: number;
  readonly bucket: number;
  readonly key: Uint8Array;
  readonly version: string;
  readonly rule: string;
  /** Epoch ms; null for tasks of earlier versions. */
  readonly added: number | null;
}

const WAITING_COLUMNS = "id, bucket, key, version, rule, added";
/** Tasks of any kind that are read in one go. */
const LOOKED_AT_ONCE = 500;
const RETRIES_AT_ONCE = 1_000;
const GONE: ReadonlySet<string> = new Set(["NoSuchBucket", "NoSuchKey", "NoSuchVersion"]);

/** Reads versions with their marks, and commits the ends of attempts. */
export class ReplicationService {
  readonly #env: ServiceEnvironment;
  readonly #objects: ObjectService;
  readonly #index: IndexConnection;

  constructor(environment: ServiceEnvironment, objects: ObjectService, index: IndexConnection) {
    this.#env = environment;
    this.#objects = objects;
    this.#index = index;
  }

  /** A version; `undefined` if it was deleted. */
  async find(
    address: ObjectAddress & { versionId: string },
  ): Promise<ReplicableVersion | undefined> {
    try {
      const object = await this.#objects.describe(address);
      return { kind: "object", object, marks: object.replication ?? {} };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (error.code === "MethodNotAllowed") return this.#findMarker(address);
      if (GONE.has(error.code)) return undefined;
      throw error;
    }
  }

  #findMarker({ bucket, key, versionId }: ObjectAddress & { versionId: string }) {
    const state = this.#env.buckets.findState(bucket);
    if (state === undefined) return undefined;
    const row = this.#index
      .sql("select modified, detail from versions where bucket = ? and key = ? and version = ?")
      .get(state.id, encodeKey(key), versionId);
    if (row === undefined) return undefined;
    const { replication: marks = {} } = JSON.parse(String(row["detail"])) as ObjectDetail;
    return { kind: "marker", modifiedMs: Number(row["modified"]), marks } as const;
  }

  /** Commits the end of an attempt. */
  async finish(end: Omit<FinishReplicationOperation, "type" | "nowMs">): Promise<void> {
    await this.submit({ type: "finishReplication", ...end, nowMs: this.#env.now() });
  }

  /** Lets failed versions run again whose last attempt is as old as `ageMs`. */
  async retryFailed(ageMs: number): Promise<void> {
    const type = "retryReplication";
    for (let tasks = RETRIES_AT_ONCE; tasks === RETRIES_AT_ONCE;) {
      const nowMs = this.#env.now();
      if (!this.#hasFailed(nowMs - ageMs)) return;
      const beforeMs = nowMs - ageMs;
      ({ tasks } = await this.submit({ type, beforeMs, tasksMax: RETRIES_AT_ONCE, nowMs }));
    }
  }

  #hasFailed(beforeMs: number): boolean {
    const text =
      "select 1 from tasks where state = 'dead' and kind = 'replicate' and due <= ? limit 1";
    return this.#index.sql(text).get(beforeMs) !== undefined;
  }

  /**
   * Tasks of replication that wait, with ids above `after`, in their order, up to the last one that was added before `beforeMs`:
   * those between that have begun again are among them. `last` is missing behind the last task.
   */
  listWaiting(
    after: number,
    beforeMs: number,
  ): { tasks: WaitingReplication[]; last: number | undefined } {
    const rows = this.#index
      .sql(
        `select ${WAITING_COLUMNS}, kind, state from (select * from tasks where id > ? order by id limit ?)`,
      )
      .all(after, LOOKED_AT_ONCE) as unknown as (WaitingReplication & {
      kind: string;
      state: string;
    })[];
    const isWaiting = ({ kind, state }: (typeof rows)[number]): boolean =>
      kind === "replicate" && state === "waiting";
    const isOld = ({ added }: WaitingReplication): boolean => (added ?? 0) <= beforeMs;
    const seen = rows.slice(0, rows.findLastIndex(isOld) + 1);
    return { tasks: seen.filter(isWaiting), last: seen.at(-1)?.id };
  }

  /** Those of some tasks that still wait. */
  findWaiting(ids: readonly number[]): WaitingReplication[] {
    return this.#index
      .sql(
        `select ${WAITING_COLUMNS} from tasks where id in (select value from json_each(?)) ` +
          "and kind = 'replicate' and state = 'waiting'",
      )
      .all(JSON.stringify(ids)) as unknown as WaitingReplication[];
  }

  /** Commits the event about a version that has waited for too long. */
  async noteLate(late: Omit<NoteLateReplicationOperation, "type" | "nowMs">): Promise<void> {
    await this.submit({ type: "noteLateReplication", ...late, nowMs: this.#env.now() });
  }

  /** Commits an operation. */
  submit<T extends Operation>(operation: T): Promise<OperationResult<T>> {
    return this.#env.writer.submit(operation);
  }
}
