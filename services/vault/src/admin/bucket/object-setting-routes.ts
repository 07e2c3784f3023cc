// Tags, retention and legal hold of objects in the admin API. The key is in the query, because URLs cannot express all keys.
import {
  type ApiRoute,
  createEtag,
  defineRoute,
  requirePreconditions,
  NO_BODY,
} from "@platform/kernel/http";
import { z } from "zod";
import type { ObjectInfo } from "../../model/object.ts";
import { getBucket, type OperationContext } from "../../s3/context.ts";
import type { OperationCall } from "../../s3/inner-operations.ts";
import { describeObject } from "../../s3/object/describe.ts";
import { describeLockable } from "../../s3/object/lock.ts";
import { tag, wrap, xmlDocument } from "../../s3/wire/xml.ts";
import { bucketParams, keySchema, OBJECT_TAG, versionSchema } from "./bucket-schema.ts";
import type { ConsoleOperations, SentRequest } from "./console-operations.ts";
import { namePlace } from "./document-fault.ts";
import { OBJECT_PROBLEMS } from "./object-routes.ts";

/** Above the limit of S3, whose error is clearer than that of a schema. */
const TAGS_MAX = 100;
const TEXT_MAX = 1_024;
const READ_NOTE = "The answer has an ETag for If-Match.";

const target = z.object({
  key: keySchema,
  version: versionSchema.optional().describe("Version id; the live version without it."),
});
const tagsDocument = z.strictObject({
  tags: z
    .array(z.strictObject({ key: z.string().max(TEXT_MAX), value: z.string().max(TEXT_MAX) }))
    .max(TAGS_MAX),
});
const retentionBody = z.strictObject({
  mode: z.enum(["GOVERNANCE", "COMPLIANCE"]),
  until: z.iso.datetime({ offset: true }).describe("The end, in RFC 3339."),
});
const retentionAnswer = z.object({
  mode: retentionBody.shape.mode.nullable(),
  until: z.string().nullable(),
});
const holdDocument = z.strictObject({ held: z.boolean() });
const versioned = { version: z.string().nullable() };
const bypassQuery = target.extend({
  bypass_governance: z
    .enum(["", "true", "false"])
    .transform((text) => text !== "false")
    .default(false)
    .describe("Shortens a GOVERNANCE retention. Requires s3:BypassGovernanceRetention."),
});

type Target = z.output<typeof target>;
interface SettingRequest extends SentRequest {
  params: { bucket: string };
  query: Target;
}

/** An attribute of an object: its name in paths and in S3, and its value as JSON. */
interface ObjectSetting<Value extends object> {
  readonly part: string;
  readonly subresource: string;
  readonly describe: (context: OperationContext) => Promise<ObjectInfo>;
  readonly toValue: (object: ObjectInfo) => Value;
}

const TAGS: ObjectSetting<z.output<typeof tagsDocument>> = {
  part: "tags",
  subresource: "tagging",
  describe: describeObject,
  toValue: ({ tags }) => ({ tags: Object.entries(tags).map(([key, value]) => ({ key, value })) }),
};
const RETENTION: ObjectSetting<z.input<typeof retentionAnswer>> = {
  part: "retention",
  subresource: "retention",
  describe: describeLockable,
  toValue: ({ retention }) => ({
    mode: retention?.mode ?? null,
    until: retention === undefined ? null : new Date(retention.untilMs).toISOString(),
  }),
};
const LEGAL_HOLD: ObjectSetting<z.output<typeof holdDocument>> = {
  part: "legal-hold",
  subresource: "legal-hold",
  describe: describeLockable,
  toValue: ({ legalHold = false }) => ({ held: legalHold }),
};
const WRITE_PROBLEMS = {
  ...OBJECT_PROBLEMS,
  412: "It has changed since the ETag in If-Match, or another version is the live one.",
};
const LOCK_PROBLEMS = { 400: "The bucket has no object lock, or the end is in the past." };

/** Routes of tags and locks. */
export function createObjectSettingRoutes(operations: ConsoleOperations): ApiRoute[] {
  return [...createTagRoutes(operations), ...createLockRoutes(operations)];
}

function createTagRoutes(operations: ConsoleOperations): ApiRoute[] {
  return [
    defineRoute({
      ...describe(TAGS),
      method: "GET",
      summary: "The tags of an object or a version",
      description: READ_NOTE,
      query: target,
      answer: tagsDocument.extend(versioned),
      handle: (request) => read(operations, request, TAGS),
    }),
    defineRoute({
      ...describe(TAGS),
      method: "PUT",
      summary: "Replace the tags of an object or a version",
      description:
        "At most 10, keys of 1 to 128 and values of up to 256 characters: letters, digits, spaces and `_.:/=+-@`.",
      query: target,
      authorize: authorizeChange(operations, TAGS),
      body: tagsDocument,
      problems: WRITE_PROBLEMS,
      answer: NO_BODY,
      handle: async (request) => {
        const items = request.body.tags.map(({ key, value }) =>
          wrap("Tag", tag("Key", key) + tag("Value", value)),
        );
        const body = xmlDocument("Tagging", wrap("TagSet", items.join("")));
        const call = { ...toCall("PUT", request, TAGS), body };
        await namePlace(locateTag, change(operations, request, TAGS, call));
      },
    }),
    defineRoute({
      ...describe(TAGS),
      method: "DELETE",
      summary: "Remove the tags of an object or a version",
      query: target,
      problems: WRITE_PROBLEMS,
      answer: NO_BODY,
      handle: (request) => change(operations, request, TAGS, toCall("DELETE", request, TAGS)),
    }),
  ];
}

function createLockRoutes(operations: ConsoleOperations): ApiRoute[] {
  const problems = { ...WRITE_PROBLEMS, ...LOCK_PROBLEMS };
  const putRetention = (
    request: SettingRequest & { query: z.output<typeof bypassQuery> },
    content: string,
  ) =>
    change(operations, request, RETENTION, {
      ...toCall("PUT", request, RETENTION),
      fields: request.query.bypass_governance
        ? [["x-amz-bypass-governance-retention", "true"]]
        : [],
      body: xmlDocument("Retention", content),
    });
  return [
    defineRoute({
      ...describe(RETENTION),
      method: "GET",
      summary: "The retention of an object or a version",
      description: `\`mode\` and \`until\` are null without one. ${READ_NOTE}`,
      query: target,
      answer: retentionAnswer.extend(versioned),
      problems: { ...OBJECT_PROBLEMS, 400: "The bucket has no object lock." },
      handle: (request) => read(operations, request, RETENTION),
    }),
    defineRoute({
      ...describe(RETENTION),
      method: "PUT",
      summary: "Set the retention of an object or a version",
      description: "A COMPLIANCE retention can only be extended, by nobody shortened.",
      query: bypassQuery,
      authorize: authorizeChange(operations, RETENTION),
      body: retentionBody,
      problems,
      answer: NO_BODY,
      handle: (request) => {
        const { mode, until } = request.body;
        const end = tag("RetainUntilDate", new Date(until).toISOString());
        return putRetention(request, tag("Mode", mode) + end);
      },
    }),
    defineRoute({
      ...describe(RETENTION),
      method: "DELETE",
      summary: "End the GOVERNANCE retention of an object or a version",
      query: bypassQuery,
      problems,
      answer: NO_BODY,
      handle: (request) => putRetention(request, ""),
    }),
    defineRoute({
      ...describe(LEGAL_HOLD),
      method: "GET",
      summary: "The legal hold of an object or a version",
      description: READ_NOTE,
      query: target,
      answer: holdDocument.extend(versioned),
      problems: { ...OBJECT_PROBLEMS, 400: "The bucket has no object lock." },
      handle: (request) => read(operations, request, LEGAL_HOLD),
    }),
    defineRoute({
      ...describe(LEGAL_HOLD),
      method: "PUT",
      summary: "Place or release the legal hold of an object or a version",
      query: target,
      authorize: authorizeChange(operations, LEGAL_HOLD),
      body: holdDocument,
      problems,
      answer: NO_BODY,
      handle: (request) =>
        change(operations, request, LEGAL_HOLD, {
          ...toCall("PUT", request, LEGAL_HOLD),
          body: xmlDocument("LegalHold", tag("Status", request.body.held ? "ON" : "OFF")),
        }),
    }),
  ];
}

function readObject(
  operations: ConsoleOperations,
  request: SettingRequest,
  setting: ObjectSetting<object>,
) {
  return operations.perform(request, toCall("GET", request, setting), async (context) => {
    const object = await setting.describe(context);
    return { object, isVersioned: getBucket(context).versioning !== "Unset" };
  });
}

async function read<Value extends object>(
  operations: ConsoleOperations,
  request: SettingRequest & { answerHeaders: Headers },
  setting: ObjectSetting<Value>,
): Promise<Value & { version: string | null }> {
  const { object, isVersioned } = await readObject(operations, request, setting);
  request.answerHeaders.set("ETag", tagOf(object, setting));
  return { ...setting.toValue(object), version: isVersioned ? object.versionId : null };
}

/** Changes an attribute, with a precondition only if it is the one that the caller has read: the writer compares it once more. */
async function change(
  operations: ConsoleOperations,
  request: SettingRequest,
  setting: ObjectSetting<object>,
  call: OperationCall,
): Promise<undefined> {
  const { headers } = request;
  // Only conditional requests need the permission to read.
  if (headers.get("if-match") === null && headers.get("if-none-match") === null) {
    await operations.run(request, call);
    return;
  }
  const { object: expectedObject } = await readObject(operations, request, setting);
  requirePreconditions(headers, tagOf(expectedObject, setting));
  await operations.perform(request, call, async (context) => {
    await context.operation.handler({ ...context, expectedObject });
  });
}

// The version belongs to it: a change of what was read must not reach an object that was written since.
function tagOf<Value extends object>(object: ObjectInfo, { toValue }: ObjectSetting<Value>) {
  return createEtag(JSON.stringify([object.versionId, toValue(object)]));
}

function describe({ part }: { part: string }) {
  return {
    path: `/api/v1/buckets/{bucket}/object/${part}`,
    tag: OBJECT_TAG,
    access: "guarded",
    params: bucketParams,
    problems: OBJECT_PROBLEMS,
  } as const;
}

function authorizeChange(operations: ConsoleOperations, setting: ObjectSetting<object>) {
  return operations.createCheck(({ params: { bucket = "" }, search }) => {
    const { data: query } = target.safeParse(Object.fromEntries(new URLSearchParams(search)));
    // An invalid query is refused by the route itself.
    return query === undefined ? [] : [toCall("PUT", { params: { bucket }, query }, setting)];
  });
}

function toCall(
  method: string,
  { params, query }: Pick<SettingRequest, "params" | "query">,
  { subresource }: { subresource: string },
) {
  const { key, version } = query;
  const named = version === undefined ? {} : { versionId: version };
  return { method, bucket: params.bucket, key, query: { [subresource]: "", ...named } };
}

/** `TagSet.Tag.2.Key` is `tags.2.key` here. */
function locateTag([, , index, part]: readonly (string | number)[]): (string | number)[] {
  if (index === undefined) return ["tags"];
  return ["tags", index, ...(part === undefined ? [] : [String(part).toLowerCase()])];
}
