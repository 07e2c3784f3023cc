// Operations on a bucket or an object that the caller may not run: consoles disable their buttons and name the missing action.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import {
  BUCKET_TAG,
  bucketParams,
  BUCKET_PROBLEMS,
  keySchema,
  OBJECT_TAG,
  versionSchema,
} from "./bucket-schema.ts";
import type { ConsoleOperations, SentRequest } from "./console-operations.ts";

/** A request that an operation needs, with the action that policies must allow. */
interface NeededRequest {
  method: string;
  subresource?: string;
  action: string;
  /** The action for a version, if it is another one. */
  versionAction?: string;
}

const SETTINGS = {
  versioning: needSetting("versioning", "s3:GetBucketVersioning", "s3:PutBucketVersioning"),
  lifecycle: needSetting(
    "lifecycle",
    "s3:GetLifecycleConfiguration",
    "s3:PutLifecycleConfiguration",
  ),
  policy: needSetting("policy", "s3:GetBucketPolicy", "s3:PutBucketPolicy"),
  cors: needSetting("cors", "s3:GetBucketCORS", "s3:PutBucketCORS"),
  tags: needSetting("tagging", "s3:GetBucketTagging", "s3:PutBucketTagging"),
  lock: needSetting(
    "object-lock",
    "s3:GetBucketObjectLockConfiguration",
    "s3:PutBucketObjectLockConfiguration",
  ),
  website: needSetting("website", "s3:GetBucketWebsite", "s3:PutBucketWebsite"),
  events: needSetting("notification", "s3:GetBucketNotification", "s3:PutBucketNotification"),
  replication: needSetting(
    "replication",
    "s3:GetReplicationConfiguration",
    "s3:PutReplicationConfiguration",
  ),
  "cold-tier": needSetting(
    "cold-tier",
    "s3:GetLifecycleConfiguration",
    "s3:PutLifecycleConfiguration",
  ),
};
const OF_BUCKET = { delete: [{ method: "DELETE", action: "s3:DeleteBucket" }], ...SETTINGS };
/** Operations on the live object, whichever version is shown. */
const OF_KEY = {
  write: [{ method: "PUT", action: "s3:PutObject" }],
  delete: [{ method: "DELETE", action: "s3:DeleteObject" }],
};
const OF_ANY_VERSION = {
  read_version: [{ method: "GET", action: "s3:GetObjectVersion" }],
  delete_version: [{ method: "DELETE", action: "s3:DeleteObjectVersion" }],
};
const OF_VERSION = {
  tags: [
    {
      method: "GET",
      subresource: "tagging",
      action: "s3:GetObjectTagging",
      versionAction: "s3:GetObjectVersionTagging",
    },
    {
      method: "PUT",
      subresource: "tagging",
      action: "s3:PutObjectTagging",
      versionAction: "s3:PutObjectVersionTagging",
    },
  ],
  retention: needSetting("retention", "s3:GetObjectRetention", "s3:PutObjectRetention"),
  legal_hold: needSetting("legal-hold", "s3:GetObjectLegalHold", "s3:PutObjectLegalHold"),
};

const DESCRIPTION =
  "By operation, the action that no policy allows, or that one denies. Where a policy has conditions, operations that they " +
  "may decide by the content of the request are not listed.";

export function createPermissionRoutes(operations: ConsoleOperations): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/buckets/{bucket}/permissions",
      summary: "Operations on a bucket that the caller may not run",
      description: DESCRIPTION,
      tag: BUCKET_TAG,
      access: "guarded",
      params: bucketParams,
      answer: describeDenied(OF_BUCKET),
      problems: BUCKET_PROBLEMS,
      handle: async (request) => ({
        denied: await findDenied(operations, request, request.params.bucket, "", OF_BUCKET),
      }),
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/buckets/{bucket}/object/permissions",
      summary: "Operations on an object that the caller may not run",
      description: `${DESCRIPTION} The object need not exist.`,
      tag: OBJECT_TAG,
      access: "guarded",
      params: bucketParams,
      query: z.object({
        key: keySchema,
        version: versionSchema.optional().describe("Version id; the live version without it."),
      }),
      answer: describeDenied({ ...OF_KEY, ...OF_ANY_VERSION, ...OF_VERSION }),
      problems: BUCKET_PROBLEMS,
      handle: async (request) => {
        const { bucket } = request.params;
        const { key, version } = request.query;
        const find = <Name extends string>(needed: Needed<Name>, versionId?: string) =>
          findDenied(operations, request, bucket, key, needed, versionId);
        return {
          denied: {
            ...(await find(OF_KEY)),
            ...(await find(OF_ANY_VERSION, version ?? "null")),
            ...(await find(OF_VERSION, version)),
          },
        };
      },
    }),
  ];
}

type Needed<Name extends string> = Readonly<Record<Name, readonly NeededRequest[]>>;

/** The requests that read and replace a setting. */
function needSetting(subresource: string, read: string, write: string): NeededRequest[] {
  return [
    { method: "GET", subresource, action: read },
    { method: "PUT", subresource, action: write },
  ];
}

function describeDenied<Name extends string>(needed: Needed<Name>) {
  const names = Object.keys(needed) as Name[];
  return z.object({ denied: z.partialRecord(z.enum(names), z.string()) });
}

async function findDenied<Name extends string>(
  operations: ConsoleOperations,
  request: SentRequest,
  bucket: string,
  key: string,
  needed: Needed<Name>,
  versionId?: string,
): Promise<Partial<Record<Name, string>>> {
  const found: Partial<Record<Name, string>> = {};
  for (const name of Object.keys(needed) as Name[]) {
    for (const { method, subresource, action, versionAction } of needed[name]) {
      const query = {
        ...(subresource === undefined ? {} : { [subresource]: "" }),
        ...(versionId === undefined ? {} : { versionId }),
      };
      if (await operations.isAllowed(request, { method, bucket, key, query })) continue;
      found[name] ??= versionId === undefined ? action : (versionAction ?? action);
    }
  }
  return found;
}
