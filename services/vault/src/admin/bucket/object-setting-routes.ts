// Tags, retention and legal hold of objects in the admin API. The key is in the query, because URLs cannot express all keys.
import {
  type ApiRoute,
  createEtag,
  defineRoute,
  requirePreconditions,
} from "@platform/kernel/http";
import { z } from "zod";
import { parseXml, tag, wrap, xmlDocument } from "../../s3/wire/xml.ts";
import { bucketParams, keySchema, OBJECT_TAG, versionSchema } from "./bucket-schema.ts";
import type { ConsoleOperations } from "./console-operations.ts";
import { namePlace } from "./document-fault.ts";
import { readHeader } from "./object-answer.ts";
import { OBJECT_PROBLEMS } from "./object-routes.ts";

/** Above the limit of S3, whose error is clearer than that of a schema. */
const TAGS_MAX = 100;
const TEXT_MAX = 1_024;

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
const bypassQuery = target.extend({
  bypass_governance: z
    .enum(["", "true", "false"])
    .transform((text) => text !== "false")
    .default(false)
    .describe("Shortens a GOVERNANCE retention. Requires s3:BypassGovernanceRetention."),
});

type Target = z.output<typeof target>;
type ReadRequest = Parameters<ConsoleOperations["run"]>[0];
type WriteRequest = ReadRequest & { headers: Headers };

/** Routes of tags and locks. */
export function createObjectSettingRoutes(operations: ConsoleOperations): ApiRoute[] {
  return [...createTagRoutes(operations), ...createLockRoutes(operations)];
}

function createTagRoutes(operations: ConsoleOperations): ApiRoute[] {
  const common = describe("tags");
  const answer = tagsDocument.extend({ version: z.string().nullable() });
  const read = async (request: ReadRequest, params: { bucket: string }, query: Target) => {
    const result = await operations.run(request, toCall("GET", params, query, "tagging"));
    const set = parseXml(Buffer.from(result.body ?? ""), "Tagging").find("TagSet");
    const tags = (set?.list("Tag") ?? []).map((item) => ({
      key: item.getText("Key"),
      value: item.getText("Value"),
    }));
    return { tags, version: readHeader(result, "x-amz-version-id") ?? null };
  };
  // Only conditional requests need the permission to read.
  const requireKnown = async (request: WriteRequest, params: { bucket: string }, query: Target) => {
    const { headers } = request;
    if (headers.get("if-match") === null && headers.get("if-none-match") === null) return;
    requirePreconditions(headers, tagOf((await read(request, params, query)).tags));
  };
  const problems = { ...OBJECT_PROBLEMS, 412: "The tags have changed since the ETag in If-Match." };
  return [
    defineRoute({
      ...common,
      method: "GET",
      summary: "The tags of an object or a version",
      description: "The answer has an ETag for If-Match.",
      query: target,
      answer,
      handle: async (request) => {
        const found = await read(request, request.params, request.query);
        request.answerHeaders.set("ETag", tagOf(found.tags));
        return found;
      },
    }),
    defineRoute({
      ...common,
      method: "PUT",
      summary: "Replace the tags of an object or a version",
      description:
        "At most 10, keys of 1 to 128 and values of up to 256 characters: letters, digits, spaces and `_.:/=+-@`.",
      query: target,
      body: tagsDocument,
      problems,
      handle: async (request) => {
        const { params, query } = request;
        await requireKnown(request, params, query);
        const call = toCall("PUT", params, query, "tagging");
        const items = request.body.tags.map(({ key, value }) =>
          wrap("Tag", tag("Key", key) + tag("Value", value)),
        );
        const body = xmlDocument("Tagging", wrap("TagSet", items.join("")));
        await namePlace(locateTag, operations.run(request, { ...call, body }));
      },
    }),
    defineRoute({
      ...common,
      method: "DELETE",
      summary: "Remove the tags of an object or a version",
      query: target,
      problems,
      handle: async (request) => {
        await requireKnown(request, request.params, request.query);
        await operations.run(request, toCall("DELETE", request.params, request.query, "tagging"));
      },
    }),
  ];
}

function createLockRoutes(operations: ConsoleOperations): ApiRoute[] {
  const retention = {
    ...describe("retention"),
    query: bypassQuery,
    problems: {
      ...OBJECT_PROBLEMS,
      400: "The bucket has no object lock, or the end is in the past.",
    },
  };
  const putRetention = (
    request: Parameters<ConsoleOperations["run"]>[0],
    params: { bucket: string },
    { bypass_governance: bypass, ...query }: z.output<typeof bypassQuery>,
    content: string,
  ) =>
    operations.run(request, {
      ...toCall("PUT", params, query, "retention"),
      fields: bypass ? [["x-amz-bypass-governance-retention", "true"]] : [],
      body: xmlDocument("Retention", content),
    });
  return [
    defineRoute({
      ...retention,
      method: "PUT",
      summary: "Set the retention of an object or a version",
      description: "A COMPLIANCE retention can only be extended, by nobody shortened.",
      body: retentionBody,
      handle: async (request) => {
        const { params, query, body } = request;
        const until = new Date(body.until).toISOString();
        const content = tag("Mode", body.mode) + tag("RetainUntilDate", until);
        await putRetention(request, params, query, content);
      },
    }),
    defineRoute({
      ...retention,
      method: "DELETE",
      summary: "End the GOVERNANCE retention of an object or a version",
      handle: async (request) => {
        await putRetention(request, request.params, request.query, "");
      },
    }),
    defineRoute({
      ...describe("legal-hold"),
      method: "PUT",
      summary: "Place or release the legal hold of an object or a version",
      query: target,
      body: z.strictObject({ held: z.boolean() }),
      handle: async (request) => {
        const { params, query, body } = request;
        await operations.run(request, {
          ...toCall("PUT", params, query, "legal-hold"),
          body: xmlDocument("LegalHold", tag("Status", body.held ? "ON" : "OFF")),
        });
      },
    }),
  ];
}

function tagOf(tags: readonly { key: string; value: string }[]): string {
  return createEtag(JSON.stringify(tags));
}

function describe(part: string) {
  return {
    path: `/api/v1/buckets/{bucket}/object/${part}`,
    tag: OBJECT_TAG,
    access: "guarded",
    params: bucketParams,
    problems: OBJECT_PROBLEMS,
  } as const;
}

function toCall(
  method: string,
  { bucket }: { bucket: string },
  { key, version }: Target,
  subresource: string,
) {
  const query = { [subresource]: "", ...(version === undefined ? {} : { versionId: version }) };
  return { method, bucket, key, query };
}

/** `TagSet.Tag.2.Key` is `tags.2.key` here. */
function locateTag([, , index, part]: readonly (string | number)[]): (string | number)[] {
  if (index === undefined) return ["tags"];
  return ["tags", index, ...(part === undefined ? [] : [String(part).toLowerCase()])];
}
