// The table of operations that the writer can apply: type, handler, result.
import { applyConfigureBucket, applyCreateBucket, applyDeleteBucket } from "./bucket-operations.ts";
import { applyForgetGarbage, applyMoveBlob } from "./blob-operations.ts";
import { applyMarkDrive } from "./drive-operations.ts";
import { applyRewrapBlobs } from "./key-operations.ts";
import { applyAcknowledgeEvents } from "./acknowledge-operation.ts";
import { applyCompleteUpload } from "./complete-operation.ts";
import {
  applyAbortUpload,
  applyCreateUpload,
  applyForgetUploads,
  applyPutPart,
} from "./upload-operations.ts";
import { applyAttribute } from "./attribute-operations.ts";
import {
  applyDropImport,
  applyImportBucket,
  applyImportVersions,
  applyPublishBucket,
} from "./import-operations.ts";
import { applyDelete } from "./delete-operation.ts";
import {
  applyAdvanceJob,
  applyBeginJob,
  applyChangeJob,
  applyCreateJob,
  applyForgetJobs,
} from "./job-operations.ts";
import {
  applyDropVectors,
  applyEndTask,
  applyRetryTask,
  applySettleDeadTasks,
} from "./task-operations.ts";
import {
  applyDropRemoteKeys,
  applyIdentifyStore,
  applyPlanRemoteKeys,
  applyPutRemote,
  applyRemoveRemote,
} from "./remote-operations.ts";
import {
  applyEndRestore,
  applyFinishRestore,
  applyRequestRestore,
  applyTransition,
} from "./tier-operations.ts";
import { applyPlanEmbeddings, applySetVector } from "./vector-operations.ts";
import { applyAddFederation, applyRemoveFederation } from "./federation-operations.ts";
import { applyPut } from "./put-operation.ts";
import {
  applyFinishReplication,
  applyInitiateReplication,
  applyNoteLateReplication,
  applyRetryReplication,
} from "./replication-operations.ts";
import type { WriterContext } from "./writer-context.ts";

interface ConfirmOperation {
  type: "confirm";
}

/** The handlers by operation type. */
const OPERATION_HANDLERS = {
  createBucket: applyCreateBucket,
  deleteBucket: applyDeleteBucket,
  configureBucket: applyConfigureBucket,
  put: applyPut,
  delete: applyDelete,
  attribute: applyAttribute,
  setVector: applySetVector,
  dropVectors: applyDropVectors,
  planEmbeddings: applyPlanEmbeddings,
  endTask: applyEndTask,
  retryTask: applyRetryTask,
  settleDeadTasks: applySettleDeadTasks,
  createJob: applyCreateJob,
  beginJob: applyBeginJob,
  advanceJob: applyAdvanceJob,
  changeJob: applyChangeJob,
  forgetJobs: applyForgetJobs,
  importBucket: applyImportBucket,
  importVersions: applyImportVersions,
  publishBucket: applyPublishBucket,
  dropImport: applyDropImport,
  identifyStore: applyIdentifyStore,
  putRemote: applyPutRemote,
  removeRemote: applyRemoveRemote,
  addFederation: applyAddFederation,
  removeFederation: applyRemoveFederation,
  planRemoteKeys: applyPlanRemoteKeys,
  dropRemoteKeys: applyDropRemoteKeys,
  transition: applyTransition,
  requestRestore: applyRequestRestore,
  finishRestore: applyFinishRestore,
  endRestore: applyEndRestore,
  finishReplication: applyFinishReplication,
  initiateReplication: applyInitiateReplication,
  noteLateReplication: applyNoteLateReplication,
  retryReplication: applyRetryReplication,
  createUpload: applyCreateUpload,
  putPart: applyPutPart,
  completeUpload: applyCompleteUpload,
  abortUpload: applyAbortUpload,
  forgetUploads: applyForgetUploads,
  acknowledgeEvents: applyAcknowledgeEvents,
  forgetGarbage: applyForgetGarbage,
  moveBlob: applyMoveBlob,
  rewrapBlobs: applyRewrapBlobs,
  markDrive: applyMarkDrive,
  /** Changes nothing: once it is committed, all earlier operations are on enough drives. */
  confirm: (_context: WriterContext, _operation: ConfirmOperation) => null,
};

type Handlers = typeof OPERATION_HANDLERS;

/** The types of operations. */
type OperationType = keyof Handlers;

/** One operation. */
export type Operation = { [Type in OperationType]: Parameters<Handlers[Type]>[1] }[OperationType];

/** The result of an operation. */
export type OperationResult<T extends Operation> = ReturnType<Handlers[T["type"]]>;

/** Runs the handler of an operation. */
export function applyOperation(context: WriterContext, operation: Operation): unknown {
  const handler = OPERATION_HANDLERS[operation.type] as (
    context: WriterContext,
    operation: Operation,
  ) => unknown;
  return handler(context, operation);
}
