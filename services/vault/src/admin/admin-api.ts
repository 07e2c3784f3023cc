// The admin API: health, buckets, subscriptions, users and keys, console sessions.
import { PlatformError } from "@platform/kernel/errors";
import { createApi, defineRoute } from "@platform/kernel/http";
import type { Api, ApiOptions, ApiRoute, Peer } from "@platform/kernel/http";
import { z } from "zod";
import { accessKeySchema, secretKeySchema, userNameSchema } from "../access/directory.ts";
import type { Directory, KeyRecord, UserRecord } from "../access/directory.ts";
import { VERSION } from "../config.ts";
import { StoreError } from "../store.ts";
import type { NotificationRule, Owner, Store } from "../store.ts";
import { toS3Error } from "../http/answer.ts";
import {
  subscriptionSchema,
  toNotificationRule,
  toSubscription,
} from "../http/bucket/notification.ts";
import type { ObjectApi } from "../http/context.ts";
import { S3Error } from "../wire/error.ts";
import { deriveWebhookSecret } from "../delivery/webhook.ts";
import type { AdminGuard } from "./admin-guard.ts";
import { requireSameOrigin } from "./admin-guard.ts";
import type { ConsoleSessions } from "./sessions.ts";

/** What the API is made of. */
export interface AdminOptions extends Pick<
  ApiOptions,
  "health" | "metrics" | "logger" | "tracer" | "clock"
> {
  api: ObjectApi;
  owner: Owner;
  directory: Directory;
  /** Undefined where the console is switched off. */
  sessions: ConsoleSessions | undefined;
  guard: AdminGuard;
  masterKey: Buffer;
  startedMs: number;
}

const bucketNameBody = z.strictObject({ name: z.string().min(1).max(63) });
const keyBody = z.strictObject({
  user: userNameSchema,
  access_key: accessKeySchema.optional(),
  secret_key: secretKeySchema.optional(),
  description: z.string().max(256).optional(),
});
const keyChange = z.strictObject({
  enabled: z.boolean().optional(),
  description: z.string().max(256).optional(),
});
const userBody = z.strictObject({
  enabled: z.boolean().default(true),
  policies: z.record(z.string().min(1).max(128), z.record(z.string(), z.unknown())).default({}),
  namespaces: z.array(z.string().min(1).max(128)).max(100).default([]),
});
const loginBody = z.union([
  z.strictObject({ access_key: z.string().max(256), secret_key: z.string().max(256) }),
  z
    .strictObject({ username: z.string().max(256), password: z.string().max(256) })
    .transform(({ username, password }) => ({ access_key: username, secret_key: password })),
]);
const userParams = z.object({ name: userNameSchema });
const keyParams = z.object({ access_key: accessKeySchema });
const NOT_YET: readonly (readonly ["GET" | "POST", string, string])[] = [
  ["POST", "/admin/backup", "Back up"],
  ["POST", "/admin/backup/restore", "Restore a backup"],
  ["POST", "/admin/federation", "Add a federation rule"],
  ["GET", "/admin/federation", "List federation rules"],
  ["POST", "/admin/batch", "Start a batch job"],
  ["GET", "/admin/batch/{id}", "State of a batch job"],
  ["GET", "/ui", "Web console"],
];

/** Makes the API; its fetch checks signatures before the rest sees a request. */
export function createAdminApi(options: AdminOptions): Api {
  const { health, metrics, logger, tracer, clock, guard } = options;
  const api = createApi({
    service: "vault",
    version: VERSION,
    title: "Vault admin API",
    routes: [
      createHealthRoute(options),
      ...createBucketRoutes(options),
      createSubscribeRoute(options),
      createSubscriptionsRoute(options),
      ...createUserRoutes(options.directory),
      ...createKeyRoutes(options.directory),
      ...(options.sessions === undefined ? [] : createConsoleRoutes(options.sessions)),
      ...NOT_YET.map(createMissingRoute),
    ],
    guard: guard.guard,
    health,
    metrics,
    logger,
    tracer,
    clock,
    metricsAccess: "public",
  });
  return {
    openApi: api.openApi,
    fetch: async (request, bindings) => {
      let admitted = request;
      try {
        admitted = await guard.admit(request);
      } catch (error) {
        if (!(error instanceof PlatformError)) throw error;
        // The guard refuses it below with the API's own problem document; a wrong signature must not pass as none.
        return refuse(error, request);
      }
      return api.fetch(admitted, bindings);
    },
  };
}

function refuse(error: PlatformError, request: Request): Response {
  const body = {
    type: `urn:platform:error:${error.code}`,
    title: error.code,
    status: error.status,
    detail: error.message,
    instance: new URL(request.url).pathname,
    code: error.code,
    error: error.message,
  };
  return Response.json(body, {
    status: error.status,
    headers: { ...error.headers, "content-type": "application/problem+json" },
  });
}

function createHealthRoute({ api, clock, startedMs }: AdminOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/health",
    summary: "Health, version and age",
    access: "public",
    handle: () => ({
      status: "UP",
      version: VERSION,
      uptime_sec: Math.floor((clock.monotonicMs() - startedMs) / 1000),
      bucket_count: api.store.listBuckets().length,
      daemon: "platform-vaultd",
    }),
  });
}

function createBucketRoutes({ api, owner }: AdminOptions): ApiRoute[] {
  const { store, region } = api;
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/buckets",
      summary: "Names of all buckets",
      handle: () => store.listBuckets().map((bucket) => bucket.name),
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/buckets",
      summary: "Make a bucket",
      body: bucketNameBody,
      status: 201,
      handle: async ({ body }) => {
        await asProblem(store.createBucket({ bucket: body.name, owner, region }));
        return { name: body.name };
      },
    }),
  ];
}

function createSubscribeRoute({ api, masterKey }: AdminOptions): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/events/subscribe",
    summary: "Add a notification subscription",
    description: "The answer holds the secret that webhooks are signed with.",
    body: subscriptionSchema,
    status: 201,
    handle: async ({ body }) => {
      const bucket = body.bucket ?? "";
      const { store } = api;
      const rule = await asProblem(
        Promise.resolve().then(() => toNotificationRule(body, "objstore", api.eventPolicy)),
      );
      const rules = (await asProblem(readRules(store, bucket))).filter(({ id }) => id !== rule.id);
      if (rules.length >= 100)
        throw new PlatformError("conflict", "The bucket has 100 subscriptions already.");
      await asProblem(store.setBucketSetting(bucket, "notification", { rules: [...rules, rule] }));
      return showSubscription(masterKey, bucket, rule);
    },
  });
}

function createSubscriptionsRoute({ api, masterKey }: AdminOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/events/subscriptions",
    summary: "Subscriptions of a bucket, with the secrets that webhooks are signed with",
    description: "Also those that were made with PutBucketNotificationConfiguration.",
    query: z.object({ bucket: z.string().min(1).max(63) }),
    handle: async ({ query: { bucket } }) => {
      const rules = await asProblem(readRules(api.store, bucket));
      return { subscriptions: rules.map((rule) => showSubscription(masterKey, bucket, rule)) };
    },
  });
}

function showSubscription(masterKey: Buffer, bucket: string, rule: NotificationRule) {
  const { kind, url } = rule.target as { kind: string; url: string };
  const secret = kind === "webhook" ? { secret: deriveWebhookSecret(masterKey, bucket, url) } : {};
  return { ...toSubscription(bucket, rule), ...secret };
}

async function readRules(store: Store, bucket: string) {
  return store.headBucket(bucket).settings.notification?.rules ?? [];
}

function createUserRoutes(directory: Directory): ApiRoute[] {
  const tag = "Users";
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/users",
      summary: "All users",
      tag,
      handle: () => ({ users: directory.listUsers().map(showUser) }),
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/users/{name}",
      summary: "One user",
      tag,
      params: userParams,
      handle: ({ params }) => showUser(directory.getUser(params.name)),
    }),
    defineRoute({
      method: "PUT",
      path: "/api/v1/users/{name}",
      summary: "Make or replace a user",
      tag,
      params: userParams,
      body: userBody,
      handle: ({ params, body }) =>
        asProblem(
          Promise.resolve().then(() => showUser(directory.putUser({ name: params.name, ...body }))),
        ),
    }),
    defineRoute({
      method: "DELETE",
      path: "/api/v1/users/{name}",
      summary: "Delete a user with its keys",
      tag,
      params: userParams,
      handle: ({ params }) => directory.deleteUser(params.name),
    }),
  ];
}

function createKeyRoutes(directory: Directory): ApiRoute[] {
  const tag = "Keys";
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/keys",
      summary: "All access keys, without their secrets",
      tag,
      query: z.object({ user: userNameSchema.optional() }),
      handle: ({ query }) => ({ keys: directory.listKeys(query.user).map(showKey) }),
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/keys",
      summary: "Make an access key",
      description: "The secret is in this answer and never again.",
      tag,
      body: keyBody,
      status: 201,
      handle: ({ body }) => {
        const key = directory.createKey({
          user: body.user,
          accessKey: body.access_key,
          secretKey: body.secret_key,
          description: body.description,
        });
        return { ...showKey(key), secret_key: key.secretKey };
      },
    }),
    defineRoute({
      method: "PATCH",
      path: "/api/v1/keys/{access_key}",
      summary: "Switch an access key on or off",
      tag,
      params: keyParams,
      body: keyChange,
      handle: ({ params, body }) => showKey(directory.updateKey(params.access_key, body)),
    }),
    defineRoute({
      method: "DELETE",
      path: "/api/v1/keys/{access_key}",
      summary: "Delete an access key",
      tag,
      params: keyParams,
      handle: ({ params }) => directory.deleteKey(params.access_key),
    }),
  ];
}

function createConsoleRoutes(sessions: ConsoleSessions): ApiRoute[] {
  const tag = "Console";
  return [
    defineRoute({
      method: "POST",
      path: "/console/login",
      summary: "Begin a session",
      tag,
      access: "public",
      body: loginBody,
      handle: ({ body, headers, peer, answerHeaders }) => {
        requireSameOrigin(headers);
        const { cookie, session } = sessions.login(
          namePeer(peer),
          body.access_key,
          body.secret_key,
        );
        answerHeaders.append("set-cookie", cookie);
        return { user: session.user, expires_at: new Date(session.expiresMs).toISOString() };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/console/logout",
      summary: "End the session",
      tag,
      access: "public",
      handle: ({ headers, answerHeaders }) => {
        requireSameOrigin(headers);
        answerHeaders.append("set-cookie", sessions.logout(headers.get("cookie")));
      },
    }),
    defineRoute({
      method: "GET",
      path: "/console/session",
      summary: "The session in force",
      tag,
      access: "public",
      handle: ({ headers }) => {
        const session = sessions.find(headers.get("cookie"));
        if (session === undefined) throw new PlatformError("unauthorized", "There is no session.");
        return { user: session.user, expires_at: new Date(session.expiresMs).toISOString() };
      },
    }),
  ];
}

function createMissingRoute([method, path, summary]: (typeof NOT_YET)[number]): ApiRoute {
  return defineRoute({
    method,
    path,
    summary: `${summary}. Not available yet.`,
    handle: () => {
      throw new PlatformError("not_available_yet", `${method} ${path} is not available yet.`);
    },
  });
}

function namePeer(peer: Peer): string {
  return peer.kind === "tcp" ? peer.address : peer.kind;
}

function showUser(user: UserRecord) {
  const { createdMs, ...rest } = user;
  return { ...rest, created_at: new Date(createdMs).toISOString() };
}

function showKey(key: KeyRecord) {
  const { accessKey, user, enabled, description, createdMs } = key;
  return {
    access_key: accessKey,
    user,
    enabled,
    description,
    created_at: new Date(createdMs).toISOString(),
  };
}

/** What the store and policies refuse, as problems. */
async function asProblem<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof StoreError || error instanceof S3Error)) throw error;
    const { status, code, message } = toS3Error(error);
    const kinds = {
      404: "not_found",
      409: "conflict",
      403: "forbidden",
      507: "insufficient_storage",
    } as const;
    const kind =
      kinds[status as keyof typeof kinds] ?? (status < 500 ? "validation_failed" : "unavailable");
    throw new PlatformError(kind, `${code}: ${message}`);
  }
}
