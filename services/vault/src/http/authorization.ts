// Asks the authorizer about a request: the values that conditions of policies look at, and the object's own list.
import { actionTable } from "../access/action.ts";
import type { AccessQuestion } from "../access/authorizer.ts";
import { StoreError } from "../store.ts";
import type { Bucket } from "../store.ts";
import { parseCopySource } from "../wire/copy-source.ts";
import { S3Error } from "../wire/error.ts";
import type { OperationContext } from "./context.ts";
import { readVersionId } from "./context.ts";
import { readTagging } from "./tagging-document.ts";

/** What a permission is for. */
interface Subject {
  bucket: Bucket | undefined;
  bucketName: string;
  /** "" on bucket level. */
  key: string;
  versionId?: string | undefined;
}

/** Something other than the operation itself that a request needs a permission for. */
export interface ExtraQuestion extends Subject {
  action: string;
  /** The permission of an ACL that is enough as well. */
  acl?: AccessQuestion["acl"];
}

/**
 * Throws AccessDenied unless the caller may carry the operation out. `tags` are those that the request's body brings, for
 * operations that ask when they have read it.
 */
export async function authorize(
  context: OperationContext,
  tags?: Readonly<Record<string, string>>,
): Promise<void> {
  const { caller, bucket, api } = context;
  // What most requests are: nothing of the following can matter.
  if (caller.kind === "root" && bucket?.settings.policy === undefined) return;
  const rule = actionTable[context.name];
  const versionId = readVersionId(context.query);
  const { bucketName, key } = context;
  const subject: Subject = { bucket, bucketName, key, versionId };
  const action = versionId === undefined ? rule.action : (rule.versionAction ?? rule.action);
  const question: AccessQuestion = {
    caller,
    action,
    bucket,
    bucketName,
    key,
    values: await readConditionValues(context, subject, tags),
  };
  if (rule.acl?.[0] === "bucket") question.acl = { of: "bucket", permission: rule.acl[1] };
  if (api.authorizer.isAllowed(question)) return;
  if (rule.acl?.[0] === "object" && bucket !== undefined) {
    const objectAcl = (await findObject(context, subject))?.acl;
    question.acl = { of: "object", permission: rule.acl[1], objectAcl };
    if (api.authorizer.isAllowed(question)) return;
  }
  throw new S3Error("AccessDenied");
}

/** Whether the caller has another permission as well. */
export async function isPermitted(
  context: OperationContext,
  extra: ExtraQuestion,
): Promise<boolean> {
  const { caller, api } = context;
  if (caller.kind === "root" && extra.bucket?.settings.policy === undefined) return true;
  const { versionId: _, ...question } = extra;
  const values = await readConditionValues(context, extra);
  return api.authorizer.isAllowed({ caller, ...question, values });
}

/** As `isPermitted`; throws AccessDenied. */
export async function requirePermission(
  context: OperationContext,
  extra: ExtraQuestion,
): Promise<void> {
  if (!(await isPermitted(context, extra))) throw new S3Error("AccessDenied");
}

async function findObject({ api }: OperationContext, { bucketName, key, versionId }: Subject) {
  try {
    return await api.store.describeObject({
      bucket: bucketName,
      key,
      ...(versionId === undefined ? {} : { versionId }),
    });
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
}

/** The condition keys of a request, in lower case. */
async function readConditionValues(
  context: OperationContext,
  subject: Subject,
  bodyTags?: Readonly<Record<string, string>>,
): Promise<Map<string, string[]>> {
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
    const name = caller.kind === "root" ? "root" : `user/${caller.name}`;
    set("aws:principalaccount", accountId);
    set("aws:principalarn", `arn:aws:iam::${accountId}:${name}`);
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
  set("s3:object-lock-mode", fields.get("x-amz-object-lock-mode"));
  set("s3:object-lock-retain-until-date", fields.get("x-amz-object-lock-retain-until-date"));
  set("s3:object-lock-legal-hold", fields.get("x-amz-object-lock-legal-hold"));
  set("s3:x-amz-copy-source", toPlainSource(fields.get("x-amz-copy-source")));
  const tagging = fields.get("x-amz-tagging");
  const tags = bodyTags ?? (tagging === undefined ? undefined : readTagging(tagging));
  if (tags !== undefined) {
    for (const [name, value] of Object.entries(tags)) set(`s3:requestobjecttag/${name}`, value);
    values.set("s3:requestobjecttagkeys", Object.keys(tags));
  }
  await addExistingTags(context, subject, values);
  return values;
}

const PRINCIPAL_TYPES = { anonymous: "Anonymous", root: "Account", user: "User" } as const;

/** Fields that are condition keys under their own name. */
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
  "x-amz-server-side-encryption-aws-kms-key-id",
  "x-amz-server-side-encryption-customer-algorithm",
  "x-amz-storage-class",
  "x-amz-website-redirect-location",
];

// Policies name a source as bucket/key, however the field spells it.
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
    (caller.kind === "user" && caller.policies.some((policy) => policy.usesExistingTags));
  if (!isAsked) return;
  const info = await findObject(context, subject);
  for (const [name, value] of Object.entries(info?.tags ?? {})) {
    values.set(`s3:existingobjecttag/${name}`, [value]);
  }
}
