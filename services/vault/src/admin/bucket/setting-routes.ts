// Settings of a bucket in the admin API, as JSON.
import { PlatformError } from "@platform/kernel/errors";
import {
  type ApiRoute,
  createEtag,
  defineRoute,
  requirePreconditions,
  NO_BODY,
} from "@platform/kernel/http";
import { z } from "zod";
import { S3Error } from "../../model/s3-error.ts";
import { coldTierSchema } from "../../s3/bucket/cold-tier.ts";
import { subscriptionSchema } from "../../s3/bucket/notification.ts";
import { receivePolicy } from "../../s3/bucket/policy.ts";
import { getBucket } from "../../s3/context.ts";
import type { OperationCall } from "../../s3/inner-operations.ts";
import { bucketParams, BUCKET_PROBLEMS, BUCKET_TAG } from "./bucket-schema.ts";
import type { ConsoleOperations, SentRequest } from "./console-operations.ts";
import { namePlace } from "./document-fault.ts";
import {
  CORS,
  LIFECYCLE,
  OBJECT_LOCK,
  REPLICATION,
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

const POLICY_SETTING: Setting = {
  name: "policy",
  subresource: "policy",
  document: POLICY,
  title: "Bucket policy",
};
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
  POLICY_SETTING,
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
    title:
      "Notification subscriptions, without passwords; a subscription that is put without its password keeps it",
    empty: { subscriptions: [] },
  },
  {
    name: "replication",
    subresource: "replication",
    document: REPLICATION,
    title: "Replication rules",
  },
  {
    name: "cold-tier",
    subresource: "cold-tier",
    document: asJson(coldTierSchema),
    title: "Cold tier, without keys; only the root user may put an endpoint of its own",
  },
];
const WRITE_PROBLEMS = {
  ...BUCKET_PROBLEMS,
  412: "The setting, or another one of the bucket, has changed since the ETag in If-Match, or since there was none.",
};

/** Routes that read, replace and remove settings. */
export function createSettingRoutes(operations: ConsoleOperations): ApiRoute[] {
  return [
    ...SETTINGS.flatMap((setting) => [
      createGetRoute(operations, setting),
      createPutRoute(operations, setting),
      ...(setting.empty === null ? [] : [createDeleteRoute(operations, setting)]),
    ]),
    createPolicyCheckRoute(operations),
  ];
}

function createGetRoute(operations: ConsoleOperations, setting: Setting): ApiRoute {
  return defineRoute({
    ...describe(setting),
    method: "GET",
    summary: setting.title,
    description: "The answer has an ETag for If-Match.",
    problems: { ...BUCKET_PROBLEMS, 404: "The bucket or the setting does not exist." },
    answer: setting.document.schema,
    handle: async (request) => {
      const document = await read(operations, request, request.params.bucket, setting);
      request.answerHeaders.set("ETag", createDocumentTag(document));
      return document;
    },
  });
}

function createPutRoute(operations: ConsoleOperations, setting: Setting): ApiRoute {
  return defineRoute({
    ...describe(setting),
    method: "PUT",
    summary: `Replace: ${setting.title}`,
    description:
      "Members are named as in the SDKs and the command line of AWS. With If-Match, only if the setting is still the one " +
      "with this ETag; with `If-None-Match: *`, only if it is not set.",
    authorize: operations.createCheck(({ params: { bucket = "" } }) => [
      toCall("PUT", bucket, setting),
    ]),
    body: setting.document.schema,
    problems: WRITE_PROBLEMS,
    answer: NO_BODY,
    handle: (request) => put(operations, request, request.params.bucket, setting, request.body),
  });
}

function createDeleteRoute(operations: ConsoleOperations, setting: Setting): ApiRoute {
  return defineRoute({
    ...describe(setting),
    method: "DELETE",
    summary: `Remove: ${setting.title}`,
    problems: WRITE_PROBLEMS,
    answer: NO_BODY,
    handle: async (request) => {
      const { bucket } = request.params;
      if (setting.empty !== undefined) {
        return put(operations, request, bucket, setting, setting.empty);
      }
      return change(operations, request, setting, toCall("DELETE", bucket, setting));
    },
  });
}

function createPolicyCheckRoute(operations: ConsoleOperations): ApiRoute {
  return defineRoute({
    ...describe(POLICY_SETTING),
    path: "/api/v1/buckets/{bucket}/config/policy/check",
    method: "POST",
    summary:
      "Validate a policy without setting it, and find out whether it makes the bucket public",
    description: "Requires the permission s3:PutBucketPolicy.",
    authorize: operations.createCheck(({ params: { bucket = "" } }) => [
      toCall("PUT", bucket, POLICY_SETTING),
    ]),
    body: POLICY.schema,
    answer: z.object({
      is_public: z
        .boolean()
        .describe("True if it allows everyone something, apart from conditions on fixed values."),
    }),
    problems: BUCKET_PROBLEMS,
    handle: (request) => {
      const call = toCall("PUT", request.params.bucket, POLICY_SETTING);
      const body = POLICY.toBody(request.body);
      return namePlace(
        POLICY.locate,
        operations.perform(request, { ...call, body }, async (context) => ({
          is_public: (await receivePolicy(context)).isPublic,
        })),
      );
    },
  });
}

async function read(
  operations: ConsoleOperations,
  request: SentRequest,
  bucket: string,
  setting: Setting,
): Promise<unknown> {
  const answer = await operations.run(request, {
    ...toCall("GET", bucket, setting),
    fields: [["accept", "application/json"]],
  });
  return setting.document.fromBody(Buffer.from(answer.body ?? ""));
}

function put(
  operations: ConsoleOperations,
  request: SentRequest,
  bucket: string,
  setting: Setting,
  document: unknown,
): Promise<undefined> {
  const body = setting.document.toBody(document);
  return change(operations, request, setting, { ...toCall("PUT", bucket, setting), body });
}

/** Changes a setting, with a precondition only if it is the one that the caller knows: the writer compares the settings once more. */
async function change(
  operations: ConsoleOperations,
  request: SentRequest,
  setting: Setting,
  call: OperationCall,
): Promise<undefined> {
  const hasCondition = ["if-match", "if-none-match"].some(
    (name) => request.headers.get(name) !== null,
  );
  const work = operations.perform(request, call, async (context) => {
    if (!hasCondition) {
      await context.operation.handler(context);
      return;
    }
    const expectedBucket = getBucket(context);
    const document = await read(operations, request, call.bucket, setting).catch(ignoreMissing);
    const current = document === undefined ? undefined : createDocumentTag(document);
    requirePreconditions(request.headers, current);
    await context.operation.handler({ ...context, expectedBucket });
  });
  await namePlace(setting.document.locate, work);
}

function ignoreMissing(error: unknown): undefined {
  const isMissing =
    error instanceof PlatformError &&
    error.cause instanceof S3Error &&
    error.cause.status === 404 &&
    error.cause.code !== "NoSuchBucket";
  if (!isMissing) throw error;
}

function createDocumentTag(document: unknown): string {
  return createEtag(JSON.stringify(document));
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
    locate: (place) => [...place],
  };
}
