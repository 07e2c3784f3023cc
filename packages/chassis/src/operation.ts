// The operator's side of a service: its console, its live feeds and its backups.
import { ServiceConsole, type ServiceConsoleOptions } from "@platform/console";
import { createBackupRoute, type BackupRouteOptions } from "@platform/kernel/backup";
import { AdminFeeds, type AdminFeedsOptions, type KeptSpan } from "@platform/kernel/feeds";
import type { ApiRoute, Guard } from "@platform/kernel/http";
import type { Secret } from "@platform/kernel/secrets";
import type { SpanKeeper } from "@platform/kernel/trace";

/** Options of `Service.openOperation`. */
export interface OperationOptions extends Pick<
  AdminFeedsOptions,
  "figures" | "requests" | "conditions" | "access"
> {
  /** Identifies callers by the service's own credentials. Default: bearer tokens. */
  guard?: Guard;
  /** The service's console; undefined without one. */
  console?:
    | (Pick<ServiceConsoleOptions, "features" | "credentials" | "check" | "renew" | "end"> & {
        /** Default: `console_url` of the configuration. */
        publicUrl?: string | undefined;
      })
    | undefined;
  /** Finds spans of a trace that other threads or processes keep, besides those of this one. */
  findOtherSpans?: ((traceId: string) => Promise<readonly KeptSpan[]>) | undefined;
  /** Backups of the running service; undefined if it keeps no state. */
  backup?: Pick<BackupRouteOptions, "dataFormat" | "takeSnapshot">;
}

/** The open parts. */
export interface Operation {
  /** Accepts the sessions of the console beside the service's own credentials. */
  readonly guard: Guard;
  readonly feeds: AdminFeeds;
  /** Routes of feeds, console and backup. */
  readonly routes: readonly ApiRoute[];
}

/** The parts of the service that all of them need. */
export interface OperationContext extends Pick<
  AdminFeedsOptions,
  "service" | "version" | "registry" | "health" | "clock" | "logger"
> {
  guard: Guard;
  consoleUrl: string | undefined;
  isTls: boolean;
  backupToken: Secret | undefined;
  /** Keeps the spans of this process. */
  kept: Pick<SpanKeeper, "find">;
  stopping: AbortSignal;
}

/** Creates the parts. */
export function createOperation(context: OperationContext, options: OperationOptions): Operation {
  const { service, version, registry, health, clock, logger } = context;
  const { console: page, backup, findOtherSpans, guard: own = context.guard, ...figures } = options;
  const webConsole =
    page === undefined
      ? undefined
      : new ServiceConsole({
          publicUrl: context.consoleUrl,
          ...page,
          id: service as ServiceConsoleOptions["id"],
          version,
          guard: own,
          isTls: context.isTls,
          clock,
        });
  const guard = webConsole?.guard ?? own;
  const feeds = new AdminFeeds({
    ...figures,
    findSpans: async (traceId) => [
      ...context.kept.find(traceId).map((span) => ({ service, span })),
      ...((await findOtherSpans?.(traceId)) ?? []),
    ],
    service,
    version,
    registry,
    health,
    guard,
    clock,
    logger,
  });
  const routes = [...feeds.createRoutes(), ...(webConsole?.createRoutes() ?? [])];
  if (backup !== undefined) {
    const { backupToken: token, stopping } = context;
    routes.push(
      createBackupRoute({ ...backup, service, version, token, stopping, clock, metrics: registry }),
    );
  }
  return { guard, feeds, routes };
}
