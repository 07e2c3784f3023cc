// Settings of a bucket in the admin API, as JSON.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { subscriptionSchema } from "../../s3/bucket/notification.ts";
import { bucketParams, BUCKET_PROBLEMS, BUCKET_TAG } from "./bucket-schema.ts";
import type { ConsoleOperations } from "./console-operations.ts";
import {
  CORS,
  LIFECYCLE,
  OBJECT_LOCK,
  type SettingDocument,
  TAGS,
  VERSIONING,
  WEBSITE,
} from "./setting-document.ts";

const SUBSCRIPTIONS_MAX = 100;

/** A setting: its name in paths, and its operations in S3. */
interface Setting {
  readonly name: string;
  readonly title: string;
  /** The subresource in S3. */
  readonly subresource: string;
  readonly document: SettingDocument;
  /** The document that stands for no setting, if S3 has no operation to remove it; `null` if it cannot be removed. */
  readonly empty?: unknown;
}

/** Documents that S3 has in JSON already. */
const POLICY: SettingDocument = asJson(z.record(z.string(), z.unknown()));
const EVENTS: SettingDocument = asJson(
  z.strictObject({ subscriptions: z.array(subscriptionSchema).max(SUBSCRIPTIONS_MAX) }),
);

const SETTINGS: readonly Setting[] = [
  {
    name: "versioning",
    subresource: "versioning",
    document: VERSIONING,
    empty: null,
    title: "Versioning; without `Status` until it is enabled for the first time",
  },
  {
    name: "lifecycle",
    subresource: "lifecycle",
    document: LIFECYCLE,
    title: "Lifecycle rules",
  },
  { name: "policy", subresource: "policy", document: POLICY, title: "Bucket policy" },
  { name: "cors", subresource: "cors", document: CORS, title: "CORS rules" },
  { name: "tags", subresource: "tagging", document: TAGS, title: "Tags" },
  {
    name: "lock",
    subresource: "object-lock",
    document: OBJECT_LOCK,
    empty: null,
    title: "Default retention of object lock",
  },
  { name: "website", subresource: "website", document: WEBSITE, title: "Static website" },
  {
    name: "events",
    subresource: "notification",
    document: EVENTS,
    title: "Notification subscriptions, without passwords",
    empty: { subscriptions: [] },
  },
];

/** Routes that read, replace and remove settings. */
export function createSettingRoutes(operations: ConsoleOperations): ApiRoute[] {
  return SETTINGS.flatMap((setting) => [
    createGetRoute(operations, setting),
    createPutRoute(operations, setting),
    ...(setting.empty === null ? [] : [createDeleteRoute(operations, setting)]),
  ]);
}

function createGetRoute(operations: ConsoleOperations, setting: Setting): ApiRoute {
  return defineRoute({
    ...describe(setting),
    method: "GET",
    summary: setting.title,
    problems: { ...BUCKET_PROBLEMS, 404: "The bucket or the setting does not exist." },
    answer: setting.document.schema,
    handle: async (request) => {
      const answer = await operations.run(request, {
        ...toCall("GET", request.params.bucket, setting),
        fields: [["accept", "application/json"]],
      });
      return setting.document.fromBody(Buffer.from(answer.body ?? ""));
    },
  });
}

function createPutRoute(operations: ConsoleOperations, setting: Setting): ApiRoute {
  return defineRoute({
    ...describe(setting),
    method: "PUT",
    summary: `Replace: ${setting.title}`,
    description: "Members are named as in the SDKs and the command line of AWS.",
    body: setting.document.schema,
    problems: BUCKET_PROBLEMS,
    handle: (request) => put(operations, request, request.params.bucket, setting, request.body),
  });
}

function createDeleteRoute(operations: ConsoleOperations, setting: Setting): ApiRoute {
  return defineRoute({
    ...describe(setting),
    method: "DELETE",
    summary: `Remove: ${setting.title}`,
    problems: BUCKET_PROBLEMS,
    handle: async (request) => {
      const { bucket } = request.params;
      if (setting.empty !== undefined) {
        return put(operations, request, bucket, setting, setting.empty);
      }
      await operations.run(request, toCall("DELETE", bucket, setting));
      return undefined;
    },
  });
}

async function put(
  operations: ConsoleOperations,
  request: Parameters<ConsoleOperations["run"]>[0],
  bucket: string,
  setting: Setting,
  document: unknown,
): Promise<undefined> {
  const body = setting.document.toBody(document);
  await operations.run(request, { ...toCall("PUT", bucket, setting), body });
}

function describe({ name }: Setting) {
  return {
    path: `/api/v1/buckets/{bucket}/config/${name}`,
    tag: BUCKET_TAG,
    access: "guarded",
    params: bucketParams,
  } as const;
}

function toCall(method: string, bucket: string, { subresource }: Setting) {
  return { method, bucket, query: { [subresource]: "" } };
}

function asJson(schema: z.ZodType): SettingDocument {
  return {
    schema,
    toBody: (document) => JSON.stringify(document),
    fromBody: (bytes) => JSON.parse(bytes.toString()) as unknown,
  };
}
