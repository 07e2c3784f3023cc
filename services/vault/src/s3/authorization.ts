// Authorizes requests: collects the values of condition keys, and looks up the ACL of the object.
import {
  type AccessQuestion,
  type Authorizer,
  type Caller,
  hasPolicies,
  identifyUser,
} from "../access/authorizer.ts";
import type { ConditionValues } from "../access/condition-keys.ts";
import type { UnknownParts } from "../access/policy.ts";
import { formatKeyArn } from "../keys/key-name.ts";
import { type Bucket, isReservedBucket } from "../model/bucket.ts";
import type { CheckKeyUse } from "../model/object.ts";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";
import { type OperationContext, readVersionId } from "./context.ts";
import { readTagging } from "./tagging-document.ts";
import { parseCopySource } from "./wire/copy-source.ts";

/** The resource of a permission. */
interface Subject {
  bucket: Bucket | undefined;
  bucketName: string;
  /** "" on bucket level. */
  key: string;
  versionId?: string | undefined;
}

/** Another permission that a request needs. */
export interface ExtraQuestion extends Subject {
  action: string;
  /** An ACL permission that is sufficient. */
  acl?: AccessQuestion["acl"];
}

/** Condition values from the body, for handlers that authorize after reading it. */
export type BodyValues = ReadonlyMap<string, readonly string[]>;

// The usual case: nothing can be refused.
function isFreeForRoot(caller: Caller, bucket: Bucket | undefined, bucketName: string): boolean {
  return (
    caller.kind === "root" && bucket?.settings.policy === undefined && !isReservedBucket(bucketName)
  );
}

/** Throws AccessDenied if the caller may not run the operation. */
export async function authorize(context: OperationContext, body?: BodyValues): Promise<void> {
  const { caller, bucket, operation } = context;
  if (isFreeForRoot(caller, bucket, context.bucketName)) return;
  const versionId = readVersionId(context.query);
  const { bucketName, key } = context;
  const subject: Subject = { bucket, bucketName, key, versionId };
  const values = await readConditionValues(context, subject);
  for (const [name, value] of body ?? []) values.set(name, [...value]);
  for (const { action, versionAction } of operation.also === undefined
    ? [operation]
    : [operation, operation.also]) {
    const named = versionId === undefined ? action : (versionAction ?? action);
    await requireAction(context, subject, {
      caller,
      action: named,
      bucket,
      bucketName,
      key,
      values,
    });
  }
}

/**
 * Throws AccessDenied if the caller may not run the operation whatever its body contains, so that the body need not be read.
 * Grants of the ACLs of objects do not count if the body names the object.
 */
export async function authorizeAhead(
  context: OperationContext,
  unknown: UnknownParts,
): Promise<void> {
  const { caller, bucket, operation } = context;
  if (isFreeForRoot(caller, bucket, context.bucketName)) return;
  const versionId = readVersionId(context.query);
  const bucketName = unknown.resource === "bucket" ? "" : context.bucketName;
  const key = unknown.resource === undefined ? context.key : "";
  const subject: Subject = { bucket, bucketName, key, versionId };
  const values = await readConditionValues(context, subject);
  const { action, versionAction = action } = operation;
  const actions =
    unknown.resource === "key"
      ? new Set([action, versionAction])
      : [versionId === undefined ? action : versionAction];
  let refusal: unknown;
  for (const one of actions) {
    const question = { caller, action: one, bucket, bucketName, key, values, unknown };
    try {
      return await requireAction(context, subject, question);
    } catch (error) {
      refusal = error;
    }
  }
  throw refusal;
}

async function requireAction(
  context: OperationContext,
  subject: Subject,
  question: AccessQuestion,
): Promise<void> {
  const { operation, caller } = context;
  const { authorizer } = context.api;
  if (caller.kind === "session" && !caller.session.scopes.includes(operation.requires)) {
    throw new S3Error("AccessDenied");
  }
  if (caller.kind === "anonymous" && operation.refusesAnonymous) throw new S3Error("AccessDenied");
  const [of, permission] = operation.acl ?? [];
  if (of === "bucket") question.acl = { of, permission: permission! };
  const answer = authorizer.decide(question);
  if (answer === "allow") return;
  if (of === "object" && answer === "none" && subject.bucket !== undefined && subject.key !== "") {
    const found = await findObject(context, subject);
    if (!(found instanceof StoreError)) {
      question.acl = { of, permission: permission!, objectAcl: found.acl };
      if (authorizer.isAllowed(question)) return;
    } else if (found.code === "NoSuchKey" && operation.revealsMissing) {
      if (await mayListBucket(context)) throw found;
    }
  }
  if (answer === "none" && operation.allowsInitiator && (await isInitiator(context))) return;
  throw new S3Error("AccessDenied");
}

// "Multipart upload API and permissions": the user that has started an upload may list its parts and abort it.
async function isInitiator({ api, caller, bucketName, key, query }: OperationContext) {
  const user = identifyUser(caller);
  const uploadId = query.get("uploadId") ?? "";
  if (user === undefined) return false;
  try {
    const { initiator } = await api.store.uploads.get({ bucket: bucketName, key, uploadId });
    return initiator?.user === user;
  } catch (error) {
    if (error instanceof StoreError && error.code === "NoSuchUpload") return false;
    throw error;
  }
}

/** Converts an error of a lookup: callers that may not list the bucket do not learn that a key is missing. */
export async function hideMissing(context: OperationContext, error: unknown): Promise<unknown> {
  if (!(error instanceof StoreError) || error.code !== "NoSuchKey") return error;
  const mayList = await mayListBucket(context, error.details.bucket);
  return mayList ? error : new S3Error("AccessDenied");
}

function mayListBucket(
  context: OperationContext,
  bucketName: string = context.bucketName,
): Promise<boolean> {
  const bucket = context.api.store.buckets.find(bucketName);
  const acl = { of: "bucket", permission: "READ" } as const;
  return isPermitted(context, { action: "s3:ListBucket", bucket, bucketName, key: "", acl });
}

/** True if the caller has another permission as well. */
export async function isPermitted(
  context: OperationContext,
  extra: ExtraQuestion,
): Promise<boolean> {
  const { caller, api } = context;
  if (isFreeForRoot(caller, extra.bucket, extra.bucketName)) return true;
  const { versionId: _, ...question } = extra;
  const values = await readConditionValues(context, extra);
  return api.authorizer.isAllowed({ caller, ...question, values });
}

/** Throws AccessDenied if the caller may not read another object that the request names, by policy or by ACL. */
export async function requireSourceRead(
  context: OperationContext,
  source: ExtraQuestion & { bucket: Bucket },
): Promise<void> {
  const { caller, api } = context;
  if (isFreeForRoot(caller, source.bucket, source.bucketName)) return;
  const { versionId: _, ...question } = source;
  const values = await readConditionValues(context, source);
  const asked: AccessQuestion = { caller, ...question, values };
  const answer = api.authorizer.decide(asked);
  if (answer === "allow") return;
  const found = answer === "none" ? await findObject(context, source) : undefined;
  if (found !== undefined && !(found instanceof StoreError)) {
    asked.acl = { of: "object", permission: "READ", objectAcl: found.acl };
    if (api.authorizer.isAllowed(asked)) return;
  }
  throw new S3Error("AccessDenied");
}

/** As `isPermitted`, but throws AccessDenied. */
export async function requirePermission(
  context: OperationContext,
  extra: ExtraQuestion,
): Promise<void> {
  if (!(await isPermitted(context, extra))) throw new S3Error("AccessDenied");
}

// The object, or the error of its lookup.
async function findObject({ api }: OperationContext, { bucketName, key, versionId }: Subject) {
  try {
    return await api.store.objects.describe({
      bucket: bucketName,
      key,
      ...(versionId === undefined ? {} : { versionId }),
    });
  } catch (error) {
    if (error instanceof StoreError) return error;
    throw error;
  }
}

/**
 * The check of a named key, for the moment when a request knows that it needs it. It throws AccessDenied unless policies allow
 * `action` on the key, and InvalidArgument for callers without a signature of version 4.
 */
export function checkKeyUse(
  context: OperationContext,
  action: "kms:Decrypt" | "kms:GenerateDataKey",
): CheckKeyUse {
  return (keyId) => {
    const { api, caller, signature } = context;
    if (caller.kind === "anonymous" || signature?.version === "AWS") {
      throw new S3Error(
        "InvalidArgument",
        "Requests specifying Server Side Encryption with AWS KMS managed keys require AWS Signature Version 4.",
      );
    }
    if (caller.kind === "root") return;
    const policy = api.store.keys.findPolicy(keyId);
    const values: ConditionValues = api.authorizer.usesKeyValues(caller, policy)
      ? readPlainValues(context, { bucket: undefined, bucketName: "", key: "" })
      : new Map();
    if (!api.authorizer.mayUseKey({ caller, action, keyId, policy, values }))
      throw new S3Error("AccessDenied", describeKeyRefusal(api.authorizer, caller, action, keyId));
  };
}

function describeKeyRefusal(
  authorizer: Authorizer,
  caller: Caller,
  action: string,
  keyId: string,
): string {
  const { id } = authorizer.describe(caller);
  return `User: ${id} is not authorized to perform: ${action} on resource: ${formatKeyArn(keyId)}`;
}

/** The condition values of a request, keys in lower case; empty if no policy uses them. */
async function readConditionValues(
  context: OperationContext,
  subject: Subject,
): Promise<Map<string, string[]>> {
  const { api, caller } = context;
  if (!api.authorizer.usesValues(caller, subject.bucket)) return new Map();
  const values = readPlainValues(context, subject);
  await addExistingTags(context, subject, values);
  return values;
}

// Those that need no lookup.
function readPlainValues(context: OperationContext, subject: Subject): Map<string, string[]> {
  const { api, request, caller, fields, query, signature } = context;
  const values = new Map<string, string[]>();
  const set = (name: string, value: string | undefined): void => {
    if (value !== undefined) values.set(name, [value]);
  };
  const nowMs = api.clock.now();
  set("aws:sourceip", request.clientAddress);
  set("aws:securetransport", String(request.secure));
  set("aws:currenttime", new Date(nowMs).toISOString());
  set("aws:epochtime", String(Math.floor(nowMs / 1000)));
  set("aws:useragent", fields.get("user-agent"));
  set("aws:referer", fields.get("referer"));
  set("aws:principaltype", PRINCIPAL_TYPES[caller.kind]);
  set("aws:principalisawsservice", "false");
  set("aws:viaawsservice", "false");
  const { accountId } = api.authorizer.account;
  set("aws:resourceaccount", accountId);
  set("s3:resourceaccount", accountId);
  set("aws:requestedregion", subject.bucket?.region ?? api.region);
  if (caller.kind !== "anonymous") {
    set("aws:principalaccount", accountId);
    set("aws:principalarn", `arn:aws:iam::${accountId}:${namePrincipal(caller)}`);
  }
  if (caller.kind === "session") {
    const { session } = caller;
    set("aws:userid", `${caller.role}:${session.sessionName}`);
    set("aws:federatedprovider", session.issuer);
    set("aws:tokenissuetime", new Date(session.issuedMs).toISOString());
    set("aws:principaltag/tenant", session.tenant);
    set("aws:principaltag/username", session.username);
    set("aws:principaltag/sub", session.sub);
  }
  if (caller.kind === "user") {
    set("aws:username", caller.name);
    set("aws:userid", caller.name);
  }
  set("s3:authtype", signature?.type);
  set("s3:signatureversion", signature?.version);
  const signedAtMs = signature?.signedAtMs;
  if (signedAtMs !== undefined) set("s3:signatureage", String(Math.max(0, nowMs - signedAtMs)));
  for (const name of ["prefix", "delimiter", "max-keys"]) set(`s3:${name}`, query.get(name));
  set("s3:versionid", subject.versionId);
  for (const name of CONDITION_FIELDS) set(`s3:${name}`, fields.get(name));
  set(`s3:${KEY_FIELD}`, toKeyArn(context, fields.get(KEY_FIELD)));
  const lock = {
    mode: fields.get("x-amz-object-lock-mode"),
    until: fields.get("x-amz-object-lock-retain-until-date"),
    legalHold: fields.get("x-amz-object-lock-legal-hold"),
  };
  for (const [name, value] of toLockValues(lock, nowMs)) values.set(name, value);
  set("s3:x-amz-copy-source", toPlainSource(fields.get("x-amz-copy-source")));
  const tagging = fields.get("x-amz-tagging");
  if (tagging !== undefined) {
    for (const [name, value] of toTagValues(readTagging(tagging))) values.set(name, value);
  }
  return values;
}

/** The condition values of tags in a request. */
export function toTagValues(tags: Readonly<Record<string, string>>): Map<string, string[]> {
  const values = new Map([["s3:requestobjecttagkeys", Object.keys(tags)]]);
  for (const [name, value] of Object.entries(tags))
    values.set(`s3:requestobjecttag/${name}`, [value]);
  return values;
}

/** The condition values of a retention and a legal hold in a request; times are in ISO 8601. */
export function toLockValues(
  lock: {
    mode?: string | undefined;
    until?: string | undefined;
    legalHold?: string | undefined;
  },
  nowMs: number,
): Map<string, string[]> {
  const values = new Map<string, string[]>();
  if (lock.mode !== undefined) values.set("s3:object-lock-mode", [lock.mode]);
  if (lock.legalHold !== undefined) values.set("s3:object-lock-legal-hold", [lock.legalHold]);
  if (lock.until !== undefined) {
    const days = Math.ceil((Date.parse(lock.until) - nowMs) / DAY_MS);
    values.set("s3:object-lock-retain-until-date", [lock.until]);
    values.set("s3:object-lock-remaining-retention-days", [String(days)]);
  }
  return values;
}

const DAY_MS = 86_400_000;
const PRINCIPAL_TYPES = {
  anonymous: "Anonymous",
  root: "Account",
  user: "User",
  session: "AssumedRole",
} as const;

function namePrincipal(caller: Exclude<Caller, { kind: "anonymous" }>): string {
  switch (caller.kind) {
    case "root":
      return "root";
    case "user":
      return `user/${caller.name}`;
    case "session":
      return `role/${caller.role}`;
    default:
      return caller satisfies never;
  }
}

/** Headers that are condition keys under their own name. */
const CONDITION_FIELDS = [
  "if-match",
  "if-none-match",
  "x-amz-acl",
  "x-amz-content-sha256",
  "x-amz-grant-full-control",
  "x-amz-grant-read",
  "x-amz-grant-read-acp",
  "x-amz-grant-write",
  "x-amz-grant-write-acp",
  "x-amz-metadata-directive",
  "x-amz-object-ownership",
  "x-amz-server-side-encryption",
  "x-amz-server-side-encryption-customer-algorithm",
  "x-amz-storage-class",
  "x-amz-website-redirect-location",
];

const KEY_FIELD = "x-amz-server-side-encryption-aws-kms-key-id";

// Policies name a key by its ARN, regardless of the form of the header.
function toKeyArn({ api }: OperationContext, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return formatKeyArn(api.store.keys.resolve(text));
  } catch (error) {
    // The request fails for it later.
    if (error instanceof StoreError) return text;
    throw error;
  }
}

// Policies name a source as bucket/key, regardless of the form of the header.
function toPlainSource(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const source = parseCopySource(text);
  return source === undefined ? undefined : `${source.bucketName}/${source.key}`;
}

async function addExistingTags(
  context: OperationContext,
  subject: Subject,
  values: Map<string, string[]>,
): Promise<void> {
  const { caller, api } = context;
  const { bucket, key } = subject;
  if (key === "" || bucket === undefined) return;
  const isAsked =
    api.authorizer.getBucketPolicy(bucket)?.usesExistingTags === true ||
    (hasPolicies(caller) && caller.policies.some((policy) => policy.usesExistingTags)) ||
    (caller.kind === "session" && caller.limit?.usesExistingTags === true);
  if (!isAsked) return;
  const found = await findObject(context, subject);
  if (found instanceof StoreError) return;
  for (const [name, value] of Object.entries(found.tags)) {
    values.set(`s3:existingobjecttag/${name}`, [value]);
  }
}
