// Reads and commits of replication: versions with their marks, and the ends of attempts.
import type { IndexConnection } from "../index/schema.ts";
import { encodeKey, type ObjectDetail } from "../index/records.ts";
import type { ObjectAddress, ObjectInfo } from "../model/object.ts";
import type { ReplicationMarks } from "../model/replication.ts";
import { StoreError } from "../model/store-error.ts";
import type { Operation, OperationResult } from "../transaction/operations.ts";
import type { FinishReplicationOperation } from "../transaction/replication-operations.ts";
import type { ObjectService, ServiceEnvironment } from "./object-service.ts";

/** A version that is to be replicated: an object or a delete marker. */
export type ReplicableVersion =
  | { readonly kind: "object"; readonly object: ObjectInfo; readonly marks: ReplicationMarks }
  | { readonly kind: "marker"; readonly modifiedMs: number; readonly marks: ReplicationMarks };

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

  /** Commits an operation. */
  submit<T extends Operation>(operation: T): Promise<OperationResult<T>> {
    return this.#env.writer.submit(operation);
  }
}
