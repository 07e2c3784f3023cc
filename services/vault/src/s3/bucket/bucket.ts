// ListBuckets, CreateBucket, DeleteBucket, HeadBucket, GetBucketLocation
import { isOwnersAlone } from "../../access/acl.ts";
import type { BucketSettings } from "../../model/bucket-settings.ts";
import { type CreateBucketRequest, isOwnBucket } from "../../model/bucket.ts";
import { S3Error } from "../../model/s3-error.ts";
import { StoreError } from "../../model/store-error.ts";
import { readAclFields } from "../acl-document.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { authorize, requirePermission } from "../authorization.ts";
import { getBucket, getOwner, type OperationContext, type OperationHandler } from "../context.ts";
import { formatToken, parseToken } from "../listing.ts";
import { readInteger } from "../object/conditions.ts";
import { receiveDocument } from "../payload.ts";
import { BUCKET_TAGS_MAX, readTags } from "../tagging-document.ts";
import {
  escapeXml,
  parseXml,
  tag,
  wrap,
  XML_DECLARATION,
  XML_NAMESPACE,
  xmlDocument,
} from "../wire/xml.ts";
import { checkOwnership } from "./ownership.ts";

const DEFAULT_REGION = "us-east-1";
const BUCKETS_PAGE_MAX = 10_000;
const CONFIGURATION_BYTES_MAX = 65_536;
/** Location constraints that are not names of regions. */
const REGION_NAMES: Readonly<Record<string, string>> = { EU: "eu-west-1" };

/** With the buckets of remotes that rules of federation have. */
export const listBuckets: OperationHandler = async (context) => {
  const { api, query } = context;
  const prefix = query.get("prefix") ?? "";
  const region = query.get("bucket-region");
  const token = query.get("continuation-token") ?? "";
  const after = token === "" ? "" : parseToken(token).value;
  const max =
    readInteger(query.get("max-buckets"), "max-buckets", 1, BUCKETS_PAGE_MAX) ?? BUCKETS_PAGE_MAX;
  const far = (await api.federation.listBuckets()).map((bucket) => ({
    ...bucket,
    region: bucket.region ?? api.region,
  }));
  const here = api.store.buckets.list();
  const all =
    far.length === 0 ? here : [...here, ...far].sort((a, b) => (a.name < b.name ? -1 : 1));
  const found = all.filter(
    (bucket) =>
      bucket.name.startsWith(prefix) &&
      bucket.name > after &&
      (region === undefined || bucket.region === region),
  );
  const page = found.slice(0, max);
  const rows = page.map((bucket) =>
    wrap(
      "Bucket",
      tag("Name", bucket.name) +
        tag("CreationDate", new Date(bucket.createdMs).toISOString()) +
        tag("BucketRegion", bucket.region),
    ),
  );
  const owner = getOwner(api);
  const inner =
    wrap("Owner", tag("ID", owner.id) + tag("DisplayName", owner.displayName)) +
    wrap("Buckets", rows.join("")) +
    (found.length > page.length
      ? tag("ContinuationToken", formatToken({ value: page.at(-1)!.name, isPrefix: false }))
      : "") +
    (prefix === "" ? "" : tag("Prefix", prefix));
  return answerXml(xmlDocument("ListAllMyBucketsResult", inner));
};

/** CreateBucket: policies may use the region, so the request is authorized after its body is read. */
export const createBucket: OperationHandler = async (context) => {
  const { api, fields, bucketName } = context;
  if (isOwnBucket(bucketName)) {
    throw new S3Error("BucketAlreadyExists");
  }
  const owner = getOwner(api);
  const bytesMax = CONFIGURATION_BYTES_MAX;
  const body = await receiveDocument(context, { bytesMax });
  const { constraint, region, tags } = readConfiguration(body, api.region);
  const isNamed = constraint !== "";
  await authorize(context, new Map(isNamed ? [["s3:locationconstraint", [constraint]]] : []));
  const settings: Partial<BucketSettings> = {};
  if (tags !== undefined) {
    await requireAlso(context, "s3:PutBucketTagging");
    settings.tagging = tags;
  }
  const ownership = fields.get("x-amz-object-ownership");
  if (ownership !== undefined) {
    await requireAlso(context, "s3:PutBucketOwnershipControls");
    settings.ownership = { objectOwnership: checkOwnership(ownership) };
  }
  const acl = readAclFields(fields, undefined, api);
  if (acl !== undefined && ownership === "BucketOwnerEnforced" && !isOwnersAlone(acl, owner)) {
    throw new S3Error("InvalidBucketAclWithObjectOwnership");
  }
  if (acl !== undefined) await requireAlso(context, "s3:PutBucketAcl");
  if (acl !== undefined) settings.acl = { grants: acl.grants.map((grant) => ({ ...grant })) };
  const objectLockEnabled = readLockField(fields.get("x-amz-bucket-object-lock-enabled"));
  if (objectLockEnabled) {
    await requireAlso(context, "s3:PutBucketObjectLockConfiguration");
    await requireAlso(context, "s3:PutBucketVersioning");
  }
  const request: CreateBucketRequest = {
    bucket: bucketName,
    owner,
    region,
    settings,
    objectLockEnabled,
  };
  try {
    await api.store.buckets.create(request);
  } catch (error) {
    const asksMore = Object.keys(settings).length > 0 || objectLockEnabled;
    if (asksMore || !isOwnInDefaultRegion(context, error, region)) throw error;
  }
  return answerEmpty(200, [["Location", `/${bucketName}`]]);
};

// As in S3, creating one's own bucket again succeeds in us-east-1 only. Settings that it would ignore are refused.
function isOwnInDefaultRegion(
  { api, bucketName }: OperationContext,
  error: unknown,
  region: string,
) {
  if (!(error instanceof StoreError) || error.code !== "BucketAlreadyOwnedByYou") return false;
  return region === DEFAULT_REGION && api.store.buckets.find(bucketName)?.region === DEFAULT_REGION;
}

// A malformed value must not create a bucket without object lock.
function readLockField(text: string | undefined): boolean {
  const value = text?.toLowerCase() ?? "false";
  if (value === "true" || value === "false") return value === "true";
  throw new S3Error("InvalidArgument", {
    message: "x-amz-bucket-object-lock-enabled must be true or false",
    elements: [
      ["ArgumentName", "x-amz-bucket-object-lock-enabled"],
      ["ArgumentValue", value.slice(0, 64)],
    ],
  });
}

// The settings of a new bucket require their own permissions.
function requireAlso(context: OperationContext, action: string): Promise<void> {
  const { bucketName } = context;
  return requirePermission(context, { action, bucket: undefined, bucketName, key: "" });
}

function readConfiguration(
  body: Buffer,
  region: string,
): { constraint: string; region: string; tags?: Record<string, string> } {
  if (body.length === 0) return { constraint: "", region };
  const root = parseXml(body, "CreateBucketConfiguration");
  if (root.find("Bucket") !== undefined || root.find("Location") !== undefined)
    throw new S3Error("NotImplemented", "Directory buckets are not implemented.");
  root.allow("LocationConstraint", "Tags");
  const constraint = root.findText("LocationConstraint") ?? "";
  if (!/^(?:[a-z0-9-]{1,64})?$/i.test(constraint)) throw new S3Error("InvalidLocationConstraint");
  const tags = root.find("Tags");
  return {
    constraint,
    region: REGION_NAMES[constraint] ?? (constraint === "" ? region : constraint),
    ...(tags === undefined ? {} : { tags: readTags(tags, BUCKET_TAGS_MAX) }),
  };
}

export const deleteBucket: OperationHandler = async (context) => {
  await context.api.store.buckets.delete(context.bucketName);
  return answerEmpty();
};

export const headBucket: OperationHandler = () =>
  answerEmpty(200, [["x-amz-access-point-alias", "false"]]);

export const getBucketLocation: OperationHandler = (context) => {
  const { region } = getBucket(context);
  const text = region === DEFAULT_REGION ? "" : escapeXml(region);
  return answerXml(
    `${XML_DECLARATION}<LocationConstraint xmlns="${XML_NAMESPACE}">${text}</LocationConstraint>`,
  );
};
