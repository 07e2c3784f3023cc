// The rows that a group of operations may change, for those who keep copies of rows.
import type { Operation } from "./operations.ts";

/**
 * Follows the groups on their way to the disk, one at a time. From `begin` to `end` it is unknown whether readers of the
 * index see the rows before or after the group; nothing has been acknowledged before `end`.
 */
export interface GroupWatcher {
  begin(operations: readonly Operation[]): void;
  end(): void;
}

/** The live row that an operation may change or remove: of one key, or those of a whole bucket. */
export interface ChangedRow {
  bucket: string;
  key?: string;
}

/** The live rows that an operation may change; `undefined` if there are none. */
export function findChangedRow(operation: Operation): ChangedRow | undefined {
  switch (operation.type) {
    case "put":
      return operation.object;
    case "delete":
    case "completeUpload":
      return operation.request;
    case "attribute":
    case "transition":
    case "requestRestore":
    case "finishRestore":
    case "endRestore":
      return operation.address;
    case "deleteBucket":
      return { bucket: operation.bucket };
    case "finishReplication":
    case "initiateReplication":
    case "noteLateReplication":
      return operation;
    // A blob that moves to another segment keeps its version, but the row of the blob changes: `RecentRows` keeps none of
    // these.
    case "moveBlob":
    // Rows with the former cipher stay readable while its key is kept; all are dropped before it is forgotten.
    case "rewrapBlobs":
    // Parts are not live before their upload is completed.
    case "createUpload":
    case "putPart":
    case "abortUpload":
    case "forgetUploads":
    case "createBucket":
    case "configureBucket":
    case "acknowledgeEvents":
    case "forgetGarbage":
    case "markDrive":
    // Vectors are no part of the rows.
    case "setVector":
    case "dropVectors":
    case "planEmbeddings":
    case "endTask":
    case "retryTask":
    case "settleDeadTasks":
    case "createJob":
    case "beginJob":
    case "advanceJob":
    case "changeJob":
    case "forgetJobs":
    // Nobody reads hidden buckets.
    case "importBucket":
    case "importVersions":
    case "publishBucket":
    case "dropImport":
    case "identifyStore":
    case "putRemote":
    case "removeRemote":
    case "addFederation":
    case "removeFederation":
    case "planRemoteKeys":
    case "dropRemoteKeys":
    case "retryReplication":
    case "confirm":
      return undefined;
    default:
      return operation satisfies never;
  }
}
