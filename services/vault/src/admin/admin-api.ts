// The admin API: health, buckets, their usage, subscriptions, users and keys, console sessions.
import type { Operation, Service } from "@platform/chassis";
import { declareScopes } from "@platform/kernel/identity";
import { PlatformError, getProblemHeaders, toProblem } from "@platform/kernel/errors";
import { type Api, type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { STORAGE_SCOPES } from "../access/authorizer.ts";
import type { Directory } from "../access/directory.ts";
import type { Delivery } from "../delivery/delivery.ts";
import { VERSION } from "../config.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import type { SecretKeys } from "../keys/secret-keys.ts";
import type { ObjectApi } from "../s3/context.ts";
import type { AdminGuard } from "./admin-guard.ts";
import { createKeyRoutes, createRoleRoutes, createUserRoutes } from "./directory-routes.ts";
import { createBatchRoutes } from "./bucket/batch-routes.ts";
import { createBucketRoutes } from "./bucket/bucket-routes.ts";
import type { ConsoleOperations } from "./bucket/console-operations.ts";
import { createListingRoutes } from "./bucket/listing-routes.ts";
import { createObjectRoutes } from "./bucket/object-routes.ts";
import { createObjectSettingRoutes } from "./bucket/object-setting-routes.ts";
import { createPermissionRoutes } from "./bucket/permission-routes.ts";
import { createPlaceRoutes } from "./bucket/place-routes.ts";
import { createSettingRoutes } from "./bucket/setting-routes.ts";
import { createShareRoute, type ShareOptions } from "./bucket/share-routes.ts";
import { createUploadRoutes } from "./bucket/upload-routes.ts";
import { createDriveRoutes } from "./drive-routes.ts";
import { createEventRoutes } from "./event-routes.ts";
import { createJobRoutes } from "./job-routes.ts";
import { createKeyRingRoutes } from "./key-routes.ts";
import { createScrubRoutes } from "./scrub-routes.ts";
import type { JobEngine } from "../job/job-engine.ts";
import type { InnerOperations } from "../s3/inner-operations.ts";
import type { BackupParts } from "../backup/other-run.ts";
import { createBackupRoutes } from "./backup-routes.ts";
import { createBatchJobRoutes } from "./batch-job-routes.ts";
import type { ModuleRegistry } from "../guest/module-registry.ts";
import { createModuleRoutes } from "./module-routes.ts";
import { createFederationRoutes } from "./federation-routes.ts";
import { createRemoteRoutes } from "./remote-routes.ts";
import { createTaskRoutes } from "./task-routes.ts";
import { ADMIN_SCOPE, requireAdmin } from "./storage-callers.ts";
import { createUsageRoutes } from "./usage-routes.ts";

/** Options of the admin API. */
export interface AdminOptions {
  service: Service;
  operation: Operation;
  api: ObjectApi;
  directory: Directory;
  /** Verifies signed requests, whose callers it passes to `guard`. */
  adminGuard: AdminGuard;
  operations: ConsoleOperations;
  share: ShareOptions;
  /** The data folder. */
  dataDir: string;
  /** The key that secrets of webhooks are derived from. */
  masterKey: Buffer;
  ring: KeyRing;
  secrets: SecretKeys | undefined;
  delivery: Pick<Delivery, "describe" | "test">;
  modules: ModuleRegistry;
  jobs: JobEngine;
  backups: BackupParts;
  /** Operations for the requests of jobs. */
  inner: InnerOperations;
  startedMs: number;
}

/** Creates the API. Its fetch verifies signatures before any other check. */
export function createAdminApi(options: AdminOptions): Omit<Api, "intercept"> {
  const { service, operation, adminGuard } = options;
  const api = service.createApi({
    title: "Storage admin API",
    operation,
    routes: [
      ...createAdminRoutes(options).map(restrictToAdmin),
      ...createStorageRoutes(options).map((route) => requireIdentity(route, options)),
    ],
  });
  return {
    openApi: api.openApi,
    fetch: async (request, bindings) => {
      let admitted = request;
      try {
        admitted = await adminGuard.admit(request);
      } catch (error) {
        if (!(error instanceof PlatformError)) throw error;
        // The guard refuses the request later with the problem document of the API. A wrong signature must not count as a
        // missing one.
        return refuse(error, request);
      }
      return api.fetch(admitted, bindings);
    },
  };
}

function createAdminRoutes(options: AdminOptions): ApiRoute[] {
  const { api, directory, dataDir } = options;
  return [
    createHealthRoute(options),
    ...createEventRoutes(options),
    ...createScrubRoutes(api.store),
    ...createDriveRoutes({ store: api.store, dataDir }),
    ...createJobRoutes(api.store),
    ...createTaskRoutes(api.store),
    ...createRemoteRoutes(api.store),
    ...createKeyRingRoutes({ store: api.store, ring: options.ring, secrets: options.secrets }),
    ...createFederationRoutes(api.store),
    ...createModuleRoutes(options.modules),
    ...createBackupRoutes({
      store: api.store,
      engine: options.jobs,
      backups: options.backups,
      console: options.operations,
    }),
    ...createUsageRoutes(api.store),
    ...createUserRoutes(directory),
    ...createRoleRoutes(directory),
    ...createKeyRoutes(directory),
  ];
}

/** Routes for all callers that storage knows; S3's permissions decide. */
function createStorageRoutes(options: AdminOptions): ApiRoute[] {
  const { operations, share, api, jobs: engine, inner } = options;
  const { store, guests } = api;
  const now = (): number => api.clock.now();
  const jobs = { store, guests, operations: inner, now, engine, console: operations };
  return [
    ...createBatchJobRoutes(jobs),
    ...createBucketRoutes(operations, api),
    ...createListingRoutes(operations),
    ...createObjectRoutes(operations),
    ...createObjectSettingRoutes(operations),
    ...createPermissionRoutes(operations),
    ...createBatchRoutes(operations),
    ...createUploadRoutes(operations, api.store),
    ...createSettingRoutes(operations),
    ...createPlaceRoutes(operations),
    createShareRoute(share),
  ];
}

function restrictToAdmin(route: ApiRoute): ApiRoute {
  return route.access === undefined ? { ...route, access: requireAdmin } : route;
}

// Before the body is read: callers without an identity get no answer about it.
function requireIdentity(route: ApiRoute, { operations }: AdminOptions): ApiRoute {
  if (route.access !== "guarded") return route;
  return {
    ...route,
    access: declareScopes(
      (caller) => operations.requireIdentity(caller),
      ...Object.values(STORAGE_SCOPES),
      ADMIN_SCOPE,
    ),
  };
}

function refuse(error: PlatformError, request: Request): Response {
  const problem = toProblem(error, { instance: new URL(request.url).pathname });
  return Response.json(problem, { status: error.status, headers: getProblemHeaders(error) });
}

function createHealthRoute({ api, service: { clock }, startedMs }: AdminOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/health",
    tag: "Operation",
    summary: "Health, version and age",
    access: "public",
    answer: z.object({
      status: z.literal("UP"),
      version: z.string(),
      uptime_sec: z.int(),
      bucket_count: z.int(),
      daemon: z.string(),
    }),
    handle: () => ({
      status: "UP" as const,
      version: VERSION,
      uptime_sec: Math.floor((clock.monotonicMs() - startedMs) / 1000),
      bucket_count: api.store.buckets.list().length,
      daemon: "platform-vaultd",
    }),
  });
}
