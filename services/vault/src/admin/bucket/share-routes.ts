// Links to objects: presigned URLs with the key of the caller, or with a session key for the user of a token.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import type { Caller as StorageCaller } from "../../access/authorizer.ts";
import type { WebIdentity } from "../../access/web-identity.ts";
import { encodeUri, presignTarget } from "@platform/s3/signature";
import { asProblem } from "../problem.ts";
import {
  bucketParams,
  BUCKET_PROBLEMS,
  keySchema,
  OBJECT_TAG,
  versionSchema,
} from "./bucket-schema.ts";
import { type ConsoleOperations, onAnyKey } from "./console-operations.ts";

/** The maximum of Signature Version 4. */
const SECONDS_MAX = 604_800;
/** Limits of session keys. */
const SESSION_SECONDS = { min: 900, max: 43_200 } as const;

const shareBody = z
  .strictObject({
    key: keySchema,
    version: versionSchema.optional(),
    method: z.enum(["GET", "PUT"]).default("GET").describe("PUT: the link accepts an upload."),
    expires_seconds: z.int().min(1).max(SECONDS_MAX).default(3_600),
    download: z
      .boolean()
      .default(true)
      .describe("Browsers save the object, instead of showing it."),
  })
  .refine(({ method, version }) => method === "GET" || version === undefined, {
    message: "an upload has no version",
    path: ["version"],
  })
  .refine(({ key }) => !key.split("/").some((segment) => segment === "." || segment === ".."), {
    message: "browsers resolve the segments . and .., so that no link reaches this key",
    path: ["key"],
  });
const shareAnswer = z.object({
  url: z.string(),
  expires_at: z.string().describe("At most the end of the caller's session."),
});

/** Credentials that sign a link. */
interface Signer {
  accessKey: string;
  secret: string;
  sessionToken?: string;
  /** The end of the credentials. */
  expiresMs?: number;
}

/** Options of the route. */
export interface ShareOptions {
  operations: ConsoleOperations;
  /** The secret of root's key, or of a user's. */
  findSecret: (accessKey: string) => string | undefined;
  webIdentity: WebIdentity;
  region: string;
  /** The address of the object API as clients know it; by default the host of the request with `port`. */
  publicUrl: string | undefined;
  objectPort: number;
  clock: Clock;
}

/** The route that creates a link. */
export function createShareRoute(options: ShareOptions): ApiRoute {
  const { operations, clock, region } = options;
  return defineRoute({
    method: "POST",
    path: "/api/v1/buckets/{bucket}/share",
    summary: "Create a link to an object, which works without a sign-in",
    description:
      "The link has the rights of its creator and ends with their key, or with their session at identity after at most 12 hours. " +
      "These rights come from policies; the ACL of an object alone is not enough.",
    tag: OBJECT_TAG,
    access: "guarded",
    params: bucketParams,
    authorize: operations.createCheck(({ params: { bucket = "" } }) => [
      onAnyKey({ method: "HEAD", bucket }, "s3:versionid"),
      onAnyKey({ method: "PUT", bucket }),
    ]),
    body: shareBody,
    answer: shareAnswer,
    status: 201,
    problems: { ...BUCKET_PROBLEMS, 404: "The bucket or the object does not exist." },
    handle: async (request) => {
      const { bucket } = request.params;
      const { key, version, method, expires_seconds: seconds, download } = request.body;
      const query = version === undefined ? {} : { versionId: version };
      // A link to an object that is missing, or that its creator may not read, is a mistake.
      const asked = { method: method === "GET" ? "HEAD" : method, bucket, key, query };
      const caller = await operations.perform(request, asked, async (context) => {
        if (method === "GET") await context.operation.handler(context);
        return context.caller;
      });
      const signer = await findSigner(options, request.caller, caller, seconds);
      const nowMs = clock.now();
      const endMs = Math.min(nowMs + seconds * 1_000, signer.expiresMs ?? Infinity);
      const url = new URL(
        options.publicUrl ?? deriveUrl(request.headers, request.request, options),
      );
      const parameters = [
        ...Object.entries(query),
        ...(method === "GET" && download ? [["response-content-disposition", "attachment"]] : []),
        ...(signer.sessionToken === undefined
          ? []
          : [["X-Amz-Security-Token", signer.sessionToken]]),
      ].map(([name, value]) => `${name}=${encodeUri(value!)}`);
      const path = `${url.pathname.replace(/\/$/, "")}/${bucket}/${encodeUri(key, true)}`;
      const target = presignTarget(
        { accessKey: signer.accessKey, secret: signer.secret, region },
        {
          method,
          target: parameters.length === 0 ? path : `${path}?${parameters.join("&")}`,
          headers: { host: url.host },
          timeMs: nowMs,
          expiresSeconds: Math.max(1, Math.floor((endMs - nowMs) / 1_000)),
        },
      );
      return { url: `${url.origin}${target}`, expires_at: new Date(endMs).toISOString() };
    },
  });
}

async function findSigner(
  { findSecret, webIdentity }: ShareOptions,
  sender: Caller,
  caller: StorageCaller,
  seconds: number,
): Promise<Signer> {
  if (caller.kind === "anonymous") throw new PlatformError("forbidden", "Sign in first.");
  if (caller.kind !== "session") {
    const secret = findSecret(caller.accessKey);
    if (secret !== undefined) return { accessKey: caller.accessKey, secret };
  } else if (sender.kind === "user" && sender.claims.iss !== undefined) {
    const { min, max } = SESSION_SECONDS;
    const { key } = await asProblem(
      webIdentity.issue(sender.claims, {
        role: caller.role,
        sessionName: caller.session.sessionName,
        durationSeconds: Math.min(max, Math.max(min, seconds)),
        policy: undefined,
      }),
    );
    return key;
  }
  throw new PlatformError("conflict", "A session key cannot create links; sign them yourself.");
}

function deriveUrl(headers: Headers, request: Request, { objectPort }: ShareOptions): string {
  const url = new URL(request.url);
  const host = URL.parse(`http://${headers.get("host") ?? ""}`)?.hostname ?? url.hostname;
  return `${url.protocol}//${host}:${objectPort}`;
}
