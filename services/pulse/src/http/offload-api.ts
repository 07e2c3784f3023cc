// The object store of closed segments: set, look, stop.
import { z } from "zod";
import { defineRoute, NO_BODY, type ApiRoute } from "@platform/kernel/http";
import type { Offload } from "../offload/offload.ts";
import { isBucket, isEndpoint, isPrefix, isRegion, parseToken } from "../offload-target.ts";
import { requireOperator } from "./admission.ts";

const PATH = "/api/v1/admin/offloader";
const time = z.iso.datetime().nullable();

const statusAnswer = z
  .object({
    enabled: z.boolean().describe("False: nothing is uploaded; segments in the store are read."),
    source: z.enum(["config", "api"]).nullable().describe("Null without a store."),
    s3_endpoint: z.string().nullable(),
    s3_bucket: z.string().nullable(),
    s3_prefix: z.string().nullable(),
    s3_region: z.string().nullable(),
    remote_segments: z.int(),
    remote_bytes: z.int(),
    pending_segments: z.int().describe("Closed segments that wait for their upload."),
    pending_bytes: z.int(),
    oldest_pending_at: time,
    last_upload_at: time,
    last_error: z
      .object({
        operation: z.enum(["upload", "read", "remove", "list"]),
        code: z.string(),
        at: z.iso.datetime(),
      })
      .nullable(),
    cache_bytes: z.int(),
  })
  .meta({ id: "OffloadStatus" });

const settings = z.object({
  s3_endpoint: z.string().refine(isEndpoint, "an http or https URL without a path"),
  s3_bucket: z.string().refine(isBucket, "not the name of a bucket"),
  s3_token: z
    .string()
    .refine(
      (token) => parseToken(token) !== undefined,
      "ACCESS_KEY:SECRET_KEY[:SESSION_TOKEN], of printable characters",
    ),
  s3_region: z.string().refine(isRegion, "not the name of a region").default("us-east-1"),
  s3_prefix: z.string().refine(isPrefix, "empty, or a prefix that ends in /").default(""),
  enabled: z.boolean().default(true),
  moved: z
    .boolean()
    .default(false)
    .describe("The objects were copied to the new place: each is looked for there."),
});

/** The routes, for the operator and administrators. */
export function createOffloadRoutes(offload: Offload): ApiRoute[] {
  const own = { tag: "Offload", access: requireOperator, path: PATH } as const;
  return [
    defineRoute({
      ...own,
      method: "GET",
      summary: "Object storage of closed segments, and what was moved there",
      answer: statusAnswer,
      handle: () => describeOffload(offload),
    }),
    defineRoute({
      ...own,
      method: "POST",
      summary: "Set the object storage for closed segments",
      description:
        "The store is tried with a put, a ranged read and a deletion before anything is stored. Private addresses must be in " +
        "egress_networks. The token is kept in the data folder and never returned.",
      body: settings,
      problems: {
        409: "The configuration sets the store (`configured`), or segments are in another one (`remote_segments_exist`).",
        422: "The store cannot be used (`offload_unreachable`); `store_code` is its own code. Or a notification of the bucket sends uploads to this broker (`offload_loop`).",
      },
      answer: statusAnswer,
      handle: async ({ body }) => {
        const { enabled, moved } = body;
        const target = {
          endpoint: body.s3_endpoint,
          bucket: body.s3_bucket,
          token: body.s3_token,
          region: body.s3_region,
          prefix: body.s3_prefix,
        };
        await offload.set(target, enabled, moved);
        return describeOffload(offload);
      },
    }),
    defineRoute({
      ...own,
      method: "DELETE",
      summary: "Stop moving segments to object storage",
      description:
        "Segments that are there are read on and removed by retention. Without any, the store is forgotten.",
      query: z.object({
        force: z
          .enum(["", "true", "false"])
          .optional()
          .describe("Also while segments are in the store."),
      }),
      status: 204,
      answer: NO_BODY,
      problems: {
        409: "The configuration sets the store (`configured`), or segments are there (`remote_segments_exist`).",
      },
      handle: async ({ query }) => {
        await offload.stop(query.force !== undefined && query.force !== "false");
      },
    }),
  ];
}

function describeOffload(offload: Offload): z.output<typeof statusAnswer> {
  const { target, isUploading, source } = offload.setting;
  const { status } = offload;
  const { lastError } = status;
  return {
    enabled: isUploading,
    source: source ?? null,
    s3_endpoint: target?.endpoint ?? null,
    s3_bucket: target?.bucket ?? null,
    s3_prefix: target?.prefix ?? null,
    s3_region: target?.region ?? null,
    remote_segments: status.remoteSegments,
    remote_bytes: status.remoteBytes,
    pending_segments: status.pendingSegments,
    pending_bytes: status.pendingBytes,
    oldest_pending_at: formatTime(status.oldestPendingAtMs),
    last_upload_at: formatTime(status.lastUploadAtMs),
    last_error:
      lastError === undefined
        ? null
        : {
            operation: lastError.operation,
            code: lastError.code,
            at: new Date(lastError.atMs).toISOString(),
          },
    cache_bytes: status.cacheBytes,
  };
}

function formatTime(epochMs: number | undefined): string | null {
  return epochMs === undefined ? null : new Date(epochMs).toISOString();
}
