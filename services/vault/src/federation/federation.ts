// Federated buckets: local policies decide first, then the request goes to the remote.
import type { Clock } from "@platform/kernel/time";
import type { Logger } from "@platform/kernel/log";
import type { FederationRule } from "../model/federation.ts";
import { S3Error } from "../model/s3-error.ts";
import type { Store } from "../object-store.ts";
import type { S3Answer } from "../s3/answer.ts";
import {
  authorize,
  type BodyValues,
  requirePermission,
  toLockValues,
  toTagValues,
} from "../s3/authorization.ts";
import type { FederatedBucket, ObjectFederation, OperationContext } from "../s3/context.ts";
import { receiveDocument } from "../s3/payload.ts";
import { OBJECT_TAGS_MAX, parseTagging } from "../s3/tagging-document.ts";
import { parseCopySource } from "../s3/wire/copy-source.ts";
import { parseXml } from "../s3/wire/xml.ts";
import { FarBuckets } from "./far-buckets.ts";
import { FederatedCopies } from "./federated-copies.ts";
import { Forwarder } from "./forwarder.ts";

const DOCUMENT_BYTES_MAX = 4 * 1024 * 1024;
const KEYS_MAX = 1_000;
const COPIES: ReadonlySet<string> = new Set(["CopyObject", "UploadPartCopy"]);
/** Decisions about access, and moves of bytes by themselves, belong to the store that has the bucket. */
const REFUSED: ReadonlySet<string> = new Set(
  [
    "GetBucketPolicy PutBucketPolicy DeleteBucketPolicy GetBucketPolicyStatus GetBucketAcl PutBucketAcl GetObjectAcl PutObjectAcl",
    "GetBucketReplication PutBucketReplication DeleteBucketReplication InitiateObjectReplication",
    "GetBucketColdTier PutBucketColdTier DeleteBucketColdTier SweepBucketColdTier GetBucketColdTierSweep",
    "GetBucketTriggers PutBucketTriggers DeleteBucketTriggers",
    "GetBucketGeoPlacement PutBucketGeoPlacement DeleteBucketGeoPlacement",
    // Its fields are signed with a key of this store, which is checked with the bucket.
    "PostObject",
  ].flatMap((names) => names.split(" ")),
);
/** Further permissions that headers of a new version need. */
const HEADER_ACTIONS: readonly (readonly [field: string, action: string])[] = [
  ["x-amz-tagging", "s3:PutObjectTagging"],
  ["x-amz-object-lock-mode", "s3:PutObjectRetention"],
  ["x-amz-object-lock-legal-hold", "s3:PutObjectLegalHold"],
  ["x-amz-bypass-governance-retention", "s3:BypassGovernanceRetention"],
  ["x-amz-source-version-id", "s3:ReplicateObject"],
];

/** Options of {@link Federation}. */
export interface FederationOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

export class Federation implements ObjectFederation {
  readonly #store: Store;
  readonly #forwarder: Forwarder;
  readonly #copies: FederatedCopies;
  readonly buckets: FarBuckets;

  constructor({ store, clock, log }: FederationOptions) {
    this.#store = store;
    this.#forwarder = new Forwarder({ store, log });
    this.#copies = new FederatedCopies(store, this.#forwarder);
    this.buckets = new FarBuckets({ store, forwarder: this.#forwarder, clock, log });
  }

  find(bucket: string): FederationRule | undefined {
    if (this.#store.buckets.find(bucket) !== undefined) return undefined;
    return this.#store.federation.find(bucket);
  }

  listBuckets(): Promise<readonly FederatedBucket[]> {
    return this.buckets.list();
  }

  /** Authorizes a request by the policies of its caller, and passes it on. */
  async run(context: OperationContext, rule: FederationRule): Promise<S3Answer> {
    const { operation, caller } = context;
    if (caller.kind === "anonymous") throw new S3Error("AccessDenied");
    if (REFUSED.has(operation.name))
      throw new S3Error(
        "AccessDenied",
        `${operation.name} is not available for a federated bucket: ask the store that has it.`,
      );
    const document = await this.#authorize(context);
    await requireHeaderRights(context);
    if (!COPIES.has(operation.name)) return this.#forwarder.forward(context, rule, document);
    return this.#copies.copyOut(context, rule, this.#findSource(context));
  }

  /** Copies from a federated bucket into a local one; `undefined` if the source of the request is local. */
  copyIn(context: OperationContext): Promise<S3Answer> | undefined {
    const rule = this.#findSource(context);
    return rule === undefined ? undefined : this.#copies.copyIn(context, rule);
  }

  #findSource({ fields }: OperationContext): FederationRule | undefined {
    const source = parseCopySource(fields.get("x-amz-copy-source") ?? "");
    return source === undefined ? undefined : this.find(source.bucketName);
  }

  // Policies may depend on the body, which is read then.
  async #authorize(context: OperationContext): Promise<Buffer | undefined> {
    const { operation } = context;
    if (operation.name === "DeleteObjects") return authorizeDeletions(context);
    if (operation.decidedByBody === undefined) {
      await authorize(context);
      return undefined;
    }
    const body = await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX });
    await authorize(context, readBodyValues(context, body));
    return body;
  }
}

async function authorizeDeletions(context: OperationContext): Promise<Buffer> {
  const { bucketName, fields } = context;
  const body = await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX });
  const items = parseXml(body, "Delete").list("Object");
  if (items.length === 0 || items.length > KEYS_MAX) throw new S3Error("MalformedXML");
  const bypasses = fields.has("x-amz-bypass-governance-retention");
  for (const item of items) {
    const key = item.getText("Key");
    const versionId = item.findText("VersionId");
    const subject = { bucket: undefined, bucketName, key, versionId };
    const action = versionId === undefined ? "s3:DeleteObject" : "s3:DeleteObjectVersion";
    await requirePermission(context, { ...subject, action });
    if (bypasses)
      await requirePermission(context, { ...subject, action: "s3:BypassGovernanceRetention" });
  }
  return body;
}

function readBodyValues({ operation, api }: OperationContext, body: Buffer): BodyValues {
  const nowMs = api.clock.now();
  switch (operation.name) {
    case "PutObjectTagging":
      return toTagValues(parseTagging(body, OBJECT_TAGS_MAX));
    case "PutObjectRetention": {
      const root = parseXml(body, "Retention");
      const [mode, until] = [root.findText("Mode"), root.findText("RetainUntilDate")];
      return toLockValues({ mode, until }, nowMs);
    }
    case "PutObjectLegalHold":
      return toLockValues({ legalHold: parseXml(body, "LegalHold").getText("Status") }, nowMs);
    case "CreateBucket": {
      if (body.length === 0) return new Map();
      const constraint = parseXml(body, "CreateBucketConfiguration").findText("LocationConstraint");
      return constraint === undefined
        ? new Map()
        : new Map([["s3:locationconstraint", [constraint]]]);
    }
    default:
      throw new S3Error("InternalError");
  }
}

async function requireHeaderRights(context: OperationContext): Promise<void> {
  const { fields, bucketName, key } = context;
  const subject = { bucket: undefined, bucketName, key };
  for (const [field, action] of HEADER_ACTIONS) {
    if (fields.getFilled(field) !== undefined)
      await requirePermission(context, { ...subject, action });
  }
  const isAcl = [...fields.entries()].some(
    ([name]) => name === "x-amz-acl" || name.startsWith("x-amz-grant-"),
  );
  if (!isAcl) return;
  const action = key === "" ? "s3:PutBucketAcl" : "s3:PutObjectAcl";
  await requirePermission(context, { ...subject, action });
}
