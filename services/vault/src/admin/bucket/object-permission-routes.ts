// Operations on an object that the caller may not run: consoles disable their buttons and name the action that is missing.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import {
  bucketParams,
  BUCKET_PROBLEMS,
  keySchema,
  OBJECT_TAG,
  versionSchema,
} from "./bucket-schema.ts";
import type { ConsoleOperations } from "./console-operations.ts";

/** A request that an operation needs, with the action that policies must allow. */
interface NeededRequest {
  method: string;
  subresource?: string;
  action: string;
  /** The action for a version, if it is another one. */
  versionAction?: string;
  /** It addresses a version in any case. */
  isOfVersion?: true;
}

const NEEDED = {
  read_version: [
    { method: "GET", action: "", versionAction: "s3:GetObjectVersion", isOfVersion: true },
  ],
  write: [{ method: "PUT", action: "s3:PutObject" }],
  delete: [{ method: "DELETE", action: "s3:DeleteObject" }],
  delete_version: [
    { method: "DELETE", action: "", versionAction: "s3:DeleteObjectVersion", isOfVersion: true },
  ],
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
  retention: [
    { method: "GET", subresource: "retention", action: "s3:GetObjectRetention" },
    { method: "PUT", subresource: "retention", action: "s3:PutObjectRetention" },
  ],
  legal_hold: [
    { method: "GET", subresource: "legal-hold", action: "s3:GetObjectLegalHold" },
    { method: "PUT", subresource: "legal-hold", action: "s3:PutObjectLegalHold" },
  ],
} as const satisfies Record<string, readonly NeededRequest[]>;
type Name = keyof typeof NEEDED;

const NAMES = Object.keys(NEEDED) as Name[];
const denied = z
  .partialRecord(z.enum(NAMES), z.string())
  .describe("By operation, the action that no policy allows, or that one denies.");

/** The route. */
export function createObjectPermissionRoute(operations: ConsoleOperations): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/buckets/{bucket}/object/permissions",
    summary: "Operations on an object that the caller may not run",
    description:
      "The object need not exist. Where a policy has conditions, a change of tags or locks is decided when it is made.",
    tag: OBJECT_TAG,
    access: "guarded",
    params: bucketParams,
    query: z.object({
      key: keySchema,
      version: versionSchema.optional().describe("Version id; the live version without it."),
    }),
    answer: z.object({ denied }),
    problems: BUCKET_PROBLEMS,
    handle: async (request) => {
      const { bucket } = request.params;
      const { key, version } = request.query;
      const found: Partial<Record<Name, string>> = {};
      for (const name of NAMES) {
        const needed: readonly NeededRequest[] = NEEDED[name];
        for (const { method, subresource, isOfVersion, action, versionAction } of needed) {
          const isCurrent = name === "write" || name === "delete";
          const versionId = isOfVersion === true ? (version ?? "null") : version;
          const query = {
            ...(subresource === undefined ? {} : { [subresource]: "" }),
            ...(versionId === undefined || isCurrent ? {} : { versionId }),
          };
          if (await operations.isAllowed(request, { method, bucket, key, query })) continue;
          found[name] ??= versionId === undefined ? action : (versionAction ?? action);
        }
      }
      return { denied: found };
    },
  });
}
