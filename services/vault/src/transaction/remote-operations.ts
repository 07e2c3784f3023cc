// Remotes inside the writer: their registration, and the intents of uploads to them.
import type { RemoteKey } from "../model/blob.ts";
import { StoreError } from "../model/store-error.ts";

import { sealRemote } from "../index/seal.ts";
import { listFederation } from "./federation-operations.ts";
import type { TaskAddress } from "../model/task.ts";
import { addDeletion } from "./remote-rows.ts";
import { countAddedTasks } from "./task-rows.ts";
import type { WriterContext } from "./writer-context.ts";

/** Gives the store an id in remotes, unless it has one. */
export interface IdentifyStoreOperation {
  type: "identifyStore";
  id: string;
}

/** Registers a remote, or changes one. */
export interface PutRemoteOperation {
  type: "putRemote";
  name: string;
  /** JSON of a `RemoteDocument`. */
  document: string;
  /** Refuses to replace one. */
  isNew: boolean;
}

/** Removes a remote that is not used. */
export interface RemoveRemoteOperation {
  type: "removeRemote";
  name: string;
}

/**
 * Announces keys that are about to be written: each has a task that deletes it, which the operation that makes the key part of
 * the store ends. So no interrupted upload leaves a key behind.
 */
export interface PlanRemoteKeysOperation {
  type: "planRemoteKeys";
  keys: readonly RemoteKey[];
  dueMs: number;
}

/** Gives up keys that were announced: their tasks are due now, unless an operation has ended them. */
export interface DropRemoteKeysOperation {
  type: "dropRemoteKeys";
  /** Undefined at the start, when no upload runs: all. */
  tasks: readonly TaskAddress[] | undefined;
  nowMs: number;
}

const REMOTES_MAX = 100;

/** Applies the identification. Returns the id. */
export function applyIdentifyStore(
  context: WriterContext,
  { id }: IdentifyStoreOperation,
): { id: string } {
  context.sql("insert or ignore into facts values ('store', ?)").run(id);
  const row = context.sql("select value from facts where name = 'store'").get();
  return { id: String(row?.["value"]) };
}

/** Applies a registration. Throws InvalidRequest if `isNew` finds one with the name, or at the limit of 100. */
export function applyPutRemote(
  context: WriterContext,
  { name, document, isNew }: PutRemoteOperation,
): null {
  const found = context.sql("select 1 from remotes where name = ?").get(name) !== undefined;
  if (isNew && found) throw new StoreError("InvalidRequest", `The remote ${name} exists.`);
  const counted = context.sql("select count(*) as n from remotes").get();
  if (!found && Number(counted?.["n"]) >= REMOTES_MAX)
    throw new StoreError("InvalidRequest", `There can be ${REMOTES_MAX} remotes.`);
  const seal = sealRemote(name, document);
  // The counts of one that was lost are those of the bodies in it.
  context
    .sql(
      "insert into remotes select ?1, ?2, count(*), coalesce(sum(bytes), 0), ?3 from remote_blobs where remote = ?1 " +
        "on conflict do update set document = excluded.document, seal = excluded.seal",
    )
    .run(name, document, seal);
  return null;
}

/** Applies a removal. Throws InvalidRequest if the remote is used. */
export function applyRemoveRemote(context: WriterContext, { name }: RemoveRemoteOperation): null {
  const use = findUse(context, name);
  if (use !== undefined)
    throw new StoreError("OperationAborted", `The remote ${name} is used by ${use}.`);
  context.sql("delete from remotes where name = ?").run(name);
  return null;
}

function findUse(context: WriterContext, name: string): string | undefined {
  for (const { bucket } of context.buckets.values()) {
    if (bucket.settings.coldTier?.remote === name) return `the cold tier of ${bucket.name}`;
    const { rules = [] } = bucket.settings.replication ?? {};
    if (rules.some(({ destination }) => destination.remote === name))
      return `the replication of ${bucket.name}`;
  }
  if (listFederation(context).some(({ remote }) => remote === name)) return "a rule of federation";
  const blob = context.sql("select 1 from remote_blobs where remote = ? limit 1").get(name);
  if (blob !== undefined) return "objects";
  const task = context
    .sql("select 1 from tasks where kind = 'delete-remote' and rule = ? limit 1")
    .get(name);
  return task === undefined ? undefined : "deletions that are not complete";
}

/** Applies the announcement. Returns the tasks, in the order of the keys. */
export function applyPlanRemoteKeys(
  context: WriterContext,
  { keys, dueMs }: PlanRemoteKeysOperation,
): { tasks: TaskAddress[] } {
  return { tasks: keys.map((key) => addDeletion(context, key, dueMs)) };
}

/** Applies the end of announced keys. */
export function applyDropRemoteKeys(
  context: WriterContext,
  { tasks, nowMs }: DropRemoteKeysOperation,
): null {
  if (tasks === undefined) {
    context
      .sql("update tasks set due = ?1 where kind = 'delete-remote' and attempts = 0 and due > ?1")
      .run(nowMs);
    return null;
  }
  for (const { id, seq } of tasks) {
    context.sql("update tasks set due = ? where id = ? and seq = ?").run(nowMs, id, seq);
  }
  countAddedTasks(context, "delete-remote", tasks.length);
  return null;
}
