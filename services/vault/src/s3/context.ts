// The context of operations: the parts of the service, and one request with its caller.
import type { Logger } from "@platform/kernel/log";
import type { AddressSet } from "@platform/kernel/network";
import { formatTraceHeaders } from "@platform/kernel/trace";
import type { Clock } from "@platform/kernel/time";
import {
  type Authorizer,
  type Caller,
  nameSession,
  type StorageScope,
} from "../access/authorizer.ts";
import type { TenantBudgets } from "../access/budget.ts";
import type { WebIdentity } from "../access/web-identity.ts";
import type { UnknownParts } from "../access/policy.ts";
import type { AclPermission } from "../model/acl.ts";
import type { Bucket, Owner } from "../model/bucket.ts";
import type { Actor } from "../model/event.ts";
import type { FederationRule } from "../model/federation.ts";
import type { ModulePin } from "../model/guest.ts";
import type { JobFilter } from "../model/job.ts";
import type { StoredRequester } from "../model/requester.ts";
import type { KnownAttributes, OpenObject } from "../model/object.ts";
import type { ReplicationRule } from "../model/replication.ts";
import { S3Error } from "../model/s3-error.ts";
import type { TriggerRun } from "../model/task.ts";
import type { Store } from "../object-store.ts";
import type { AskEndpoint } from "../search/ask/endpoint.ts";
import type { Submit } from "../transaction/writer.ts";
import type { GuestRun } from "@platform/wasm/stream";
import type { MetadataQuestions } from "../search/metadata-questions.ts";
import type { createAskCounter } from "../search/search-metrics.ts";
import type { VectorQuestions } from "../search/vector-questions.ts";
import type { SelectPool } from "../select/select-pool.ts";
import type { EventPolicy } from "../delivery/target.ts";
import type { S3Answer } from "./answer.ts";
import type { RequestMemory } from "./request-memory.ts";
import type { OperationRequest } from "./request.ts";
import type { PayloadMode, SignatureKind, SignatureVerifier } from "./sigv4/index.ts";
import type { Level } from "./wire/address.ts";
import type { RequestQuery } from "./wire/query.ts";
import type { RequestFields } from "./wire/fields.ts";

/** Parts that live as long as the service. */
export interface ObjectApi {
  readonly store: Store;
  readonly authorizer: Authorizer;
  readonly verifier: SignatureVerifier<Caller>;
  readonly budgets: TenantBudgets;
  readonly clock: Clock;
  readonly log: Logger;
  readonly region: string;
  /** The domain of virtual-host style requests, in lower case. */
  readonly domain: string | undefined;
  /** The domain of websites. */
  readonly websiteDomain: string | undefined;
  /** The addresses that events may be sent to. */
  readonly eventPolicy: EventPolicy;
  /** True if a user with this name exists. */
  readonly isUser: (name: string) => boolean;
  /** Proxies whose forwarded headers are trusted. */
  readonly trustedProxies: AddressSet;
  /** Memory for documents and forms. */
  readonly memory: RequestMemory;
  /** Answers questions about the content of objects. */
  readonly select: SelectPool;
  /** Answers questions about the metadata of buckets. */
  readonly metadata: MetadataQuestions;
  /** Counts a question in plain words. */
  readonly countAsk: ReturnType<typeof createAskCounter>;
  /** Interprets plain questions before the grammar, if it is configured. */
  readonly askEndpoint: AskEndpoint | undefined;
  /** True if an endpoint computes vectors, false for the lexical embedding. */
  readonly embedsByModel: boolean;
  /** Answers searches of vectors. */
  readonly vectors: VectorQuestions;
  /** Exchanges tokens for session keys. */
  readonly webIdentity: WebIdentity;
  readonly guests: ObjectGuests;
  readonly jobs: ObjectJobs;
  readonly replication: ObjectReplication;
  readonly federation: ObjectFederation;
}

/** Buckets that are those of remotes. */
export interface ObjectFederation {
  /** The rule of a bucket that is not here. */
  find(bucket: string): FederationRule | undefined;
  /** Authorizes a request about such a bucket, and passes it on. */
  run(context: OperationContext, rule: FederationRule): Promise<S3Answer>;
  /** Copies from a federated bucket into a local one; `undefined` if the source of the request is local. */
  copyIn(context: OperationContext): Promise<S3Answer> | undefined;
  /** The buckets of all rules. */
  listBuckets(): Promise<readonly FederatedBucket[]>;
}

/** A bucket of a remote, as it lists it. */
export interface FederatedBucket {
  readonly name: string;
  readonly createdMs: number;
  readonly region: string | undefined;
}

/** Replication, for the settings of buckets. */
export interface ObjectReplication {
  /** Asks a remote about a bucket. Throws InvalidRequest if it does not answer, or does not have it. */
  inspect(remote: string, bucket: string): Promise<DestinationBucket>;
  /** The state of each rule of a bucket. */
  describe(bucket: string, rules: readonly ReplicationRule[]): Promise<ReplicationRuleState[]>;
  /** Starts a job that sends the versions from before the rules of a bucket. */
  startExisting(bucket: string, requester: StoredRequester): Promise<void>;
  readonly submit: Submit;
}

/** A bucket of a remote. */
export interface DestinationBucket {
  readonly versioning: "Enabled" | "Suspended" | "Unset";
  readonly objectLockEnabled: boolean;
}

/** The state of a rule; members have the names of the document. */
export interface ReplicationRuleState {
  readonly rule: ReplicationRule;
  readonly pending: number;
  readonly failed: number;
  /** Versions and changes that were sent since `counted_since`. */
  readonly completed: number;
  readonly completed_bytes: number;
  /** The start of the service, RFC 3339: counts of what was sent begin again with it. */
  readonly counted_since: string;
  /** Age of the oldest that waits, in seconds. */
  readonly lag_seconds: number;
  /** The reason why the rule sends nothing, in a store that was restored. */
  readonly suspended: string | null;
  /** The remote does not answer: the next trial is at this time, RFC 3339. */
  readonly paused_until: string | null;
  /** Some of what has failed. */
  readonly failures: readonly {
    readonly key: string;
    readonly version_id: string;
    readonly reason: string;
    readonly attempts: number;
    readonly failed_at: string;
  }[];
}

/** Jobs that operations start. */
export interface ObjectJobs {
  /** Queues a pipeline. Returns the id of its job. Throws SlowDown if too many are queued. */
  startPipeline(pipeline: PipelineRequest): Promise<string>;
}

/** A pipeline: modules on the objects of a bucket. */
export interface PipelineRequest {
  readonly bucket: string;
  readonly prefix: string;
  readonly targetBucket: string;
  readonly targetPrefix: string;
  readonly filter: JobFilter;
  readonly pins: readonly ModulePin[];
  readonly requester: StoredRequester;
}

/** Guests on objects. */
export interface ObjectGuests {
  /** Finds the modules that references like `name`, `name@latest` and `name@sha256` mean. Throws InvalidRequest. */
  pin(references: readonly string[]): ModulePin[];
  /** Runs a chain of modules on an open object, whose body it closes. */
  run(pins: readonly ModulePin[], source: GuestSource): Promise<GuestRun>;
  /** The last runs of the triggers of a bucket, newest first. */
  listRuns(bucket: string): TriggerRun[];
}

/** The object that guests read. */
export interface GuestSource {
  readonly object: OpenObject;
  /** Name of the event, for the guest. */
  readonly event: string;
  /** Added to the wall time. */
  readonly moreMs?: number;
}

/** The context of one operation. */
export interface OperationContext {
  readonly api: ObjectApi;
  readonly request: OperationRequest;
  readonly operation: Operation;
  readonly caller: Caller;
  /** The tenant whose budget and memory the request uses. */
  readonly tenant: string;
  /** Undefined for anonymous requests. */
  readonly signature: SignatureKind | undefined;
  readonly payload: PayloadMode;
  readonly bucketName: string;
  /** "" on bucket level. */
  readonly key: string;
  readonly fields: RequestFields;
  readonly query: RequestQuery;
  /** The bucket of the request; undefined for ListBuckets and CreateBucket. */
  readonly bucket: Bucket | undefined;
  /** Commits changes of objects together with other work. */
  readonly submit?: Submit | undefined;
  /** A change of the bucket's settings is refused unless they are still those of this bucket. */
  readonly expectedBucket?: Bucket;
  /** A change of tags, retention or legal hold is refused unless the object still has these. */
  readonly expectedObject?: KnownAttributes;
  /** Set if the bucket is that of a remote: then nothing is authorized yet. */
  readonly federated?: FederationRule;
}

/** Runs the operation of a context: here, or at the remote of a federated bucket. */
export function runOperation(context: OperationContext): Promise<S3Answer> | S3Answer {
  const { federated, api, operation } = context;
  return federated === undefined
    ? operation.handler(context)
    : api.federation.run(context, federated);
}

/** Runs an operation. A thrown error becomes the response. */
export type OperationHandler = (context: OperationContext) => Promise<S3Answer> | S3Answer;

/** The form of error documents. */
export type ErrorForm = "s3" | "sts" | "json";

/** A row of the table of operations. */
export interface Operation {
  /** The scope of session keys that it requires; `token`: the request contains a token, which decides. */
  readonly requires: StorageScope | "token";
  /** As the API reference names it. */
  readonly name: string;
  readonly level: Level;
  readonly method: string;
  /** Query parameters that must all be present; `copy` stands for a header `x-amz-copy-source`. */
  readonly parameters: readonly string[];
  /** The action that policies must allow; `versionAction` replaces it if the request has a `versionId`. */
  readonly action: string;
  readonly versionAction: string | undefined;
  /** A second action that policies must allow, too. */
  readonly also: { readonly action: string; readonly versionAction: string } | undefined;
  /** The ACL that can allow the operation instead, and the permission that it must grant. */
  readonly acl: readonly [of: "bucket" | "object", permission: AclPermission] | undefined;
  /** The handler authorizes the request, because the decision depends on the body. */
  readonly authorizesItself: boolean;
  /** The parts of that decision that the body contains: callers that no body could help are refused before it is read. */
  readonly decidedByBody: UnknownParts | undefined;
  /** The bucket need not exist. */
  readonly isBucketOptional: boolean;
  /** All answers name the region of the bucket, refusals too: SDKs look for it with unsigned requests. */
  readonly answersRegion: boolean;
  /** Callers that may list the bucket learn that an object is missing, even if they may not read it. */
  readonly revealsMissing: boolean;
  /** The form of its errors: S3's, that of STS, or JSON. */
  readonly errorForm: ErrorForm;
  /** The initiator of the upload may run it, unless a policy denies. */
  readonly allowsInitiator: boolean;
  /** Anonymous callers are refused, regardless of policies. */
  readonly refusesAnonymous: boolean;
  /** The operation creates a version, so it cannot address an existing one. */
  readonly createsVersion: boolean;
  readonly handler: OperationHandler;
}

/** The bucket of an operation; it exists unless `isBucketOptional`. */
export function getBucket(context: OperationContext): Bucket {
  return context.bucket ?? context.api.store.buckets.require(context.bucketName);
}

/** The owner of everything: the account. */
export function getOwner(api: ObjectApi): Owner {
  const { canonicalId, displayName } = api.authorizer.account;
  return { id: canonicalId, displayName };
}

/** The caller, for events. */
export function getActor({ caller, request, bucket }: OperationContext): Actor {
  const { trace } = request;
  // Only events carry it on; most buckets have no subscriptions.
  const hasEvents = bucket?.settings.notification !== undefined && trace !== undefined;
  return {
    principalId: namePrincipal(caller),
    sourceIp: request.clientAddress,
    requestId: request.id,
    ...(hasEvents ? { trace: formatTraceHeaders(trace) } : {}),
  };
}

function namePrincipal(caller: Caller): string {
  switch (caller.kind) {
    case "anonymous":
      return "Anonymous";
    case "root":
      return "root";
    case "user":
      return caller.name;
    case "session":
      return nameSession(caller);
    default:
      return caller satisfies never;
  }
}

/** The form of a version id: 24 random bytes, or `null`. */
const VERSION_ID = /^(?:null|[A-Za-z0-9_-]{32})$/;

/** True if a text has the form of a version id. */
export function isVersionId(text: string): boolean {
  return VERSION_ID.test(text);
}

/** The `versionId` of a request; `undefined` for the live version. Throws InvalidArgument if it has another form. */
export function readVersionId(query: RequestQuery): string | undefined {
  const versionId = query.get("versionId");
  if (versionId !== undefined) requireVersionId(versionId);
  return versionId;
}

/** Throws InvalidArgument for a text without the form of a version id; `name` is the name of the parameter. */
export function requireVersionId(versionId: string, name = "versionId"): void {
  if (isVersionId(versionId)) return;
  throw new S3Error("InvalidArgument", {
    message:
      versionId === "" ? "Version id cannot be the empty string" : "Invalid version id specified",
    elements: [
      ["ArgumentName", name],
      ["ArgumentValue", versionId.slice(0, 128)],
    ],
  });
}
