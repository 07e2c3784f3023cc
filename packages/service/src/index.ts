// The API of services: declarations of the server, routes, databases, caches and schedules.
import type { GatewayRules } from "@platform/kernel/route-rules";
import type { Cache, CacheOptions } from "./cache/cache.ts";
import type { Database, DatabaseOptions } from "./database/database.ts";
import { runDeclaredService } from "./host.ts";
import type {
  BodyOf,
  BodyOption,
  Handler,
  QueryOf,
  RouteMethod,
  RouteOptions,
} from "./http/definition.ts";
import type { ScheduleOptions, Work } from "./schedule/schedule.ts";
import type { Schema } from "./schema/validate.ts";
import { declared } from "./service/declared.ts";
import type { ServerOptions } from "./service/service.ts";

export type { Caller, Claims } from "@platform/kernel/identity";
export type { Logger } from "@platform/kernel/log";
export type { GatewayRules } from "@platform/kernel/route-rules";
export type { Cache, CacheCounts, CacheOptions } from "./cache/cache.ts";
export type { Changes, Database, DatabaseOptions, Queries, Row } from "./database/database.ts";
export { sql, type SqlArgument, type SqlPart, type SqlValue } from "./database/sql.ts";
export { HttpError, type HttpErrorOptions } from "./error/http-error.ts";
export type { Handler, RouteMethod, RouteOptions } from "./http/definition.ts";
export type { Mail, MailAttachment, SendOptions, SentMail } from "./platform/mail.ts";
export type { Message, PublishOptions, SubscribeOptions } from "./platform/messaging.ts";
export { auth, mail, messages, objects } from "./platform/platform.ts";
export type {
  SignedInUser,
  SignInOptions,
  SignInRequest,
  SignOutOptions,
} from "./platform/sign-in.ts";
export type {
  DownloadUrlOptions,
  ListedObject,
  ListOptions,
  ObjectBody,
  ObjectPage,
  PutOptions,
  UrlOptions,
} from "./platform/storage.ts";
export type { CookieOptions } from "./request/cookies.ts";
export type { RequestHeaders } from "./request/headers.ts";
export type { FormFields, FormValue } from "./request/parse-body.ts";
export type { ServiceRequest } from "./request/request.ts";
export { events, type EventSource, type ServerEvent } from "./result/events.ts";
export type { EmbeddedFile, EmbeddedFolder } from "./result/embedded-files.ts";
export { files, type FilesOptions } from "./result/files.ts";
export { redirect, reply, type ReplyOptions } from "./result/reply.ts";
export { webSocket, type SocketHandlers, type SocketMessage } from "./result/web-socket.ts";
export type { PathParams } from "./route/path.ts";
export type { ScheduleOptions, Tick, Work } from "./schedule/schedule.ts";
export type { Schema } from "./schema/validate.ts";
export type { ServerOptions } from "./service/service.ts";

/** The declared server. */
export interface ServiceServer {
  /**
   * Starts the service as this process: it drains and exits on SIGTERM and SIGINT. Resolves with the port when it accepts
   * requests. `platform run` and tests start the service themselves; a second start has no effect.
   */
  start(): Promise<{ port: number }>;
}

/**
 * Declares the server; optional, at most once. Without it, `platform run` listens on port 3000.
 *
 * ```ts
 * await server({ port: 3000 }).start();
 * ```
 */
export function server(options: ServerOptions = {}): ServiceServer {
  declared.declareServer(options);
  return { start: () => runDeclaredService() };
}

/**
 * Declares a route. The handler's result is the answer: objects are JSON, strings text, a `Response` is sent as it is,
 * undefined is 204. Paths have parameters (`/notes/:id`) and may end with `*`, the rest of the path.
 *
 * ```ts
 * route("GET", "/notes/:id", ({ params }) => notes.one`select * from notes where id = ${params.id}`);
 * route("POST", "/notes", { body: NewNote, requires: "notes:write" }, ({ body }) => save(body));
 * ```
 */
export function route<Path extends string>(
  method: RouteMethod,
  path: Path,
  handler: Handler<Path>,
): void;
export function route<
  Path extends string,
  Body extends BodyOption | undefined = undefined,
  Query extends Schema | undefined = undefined,
>(
  method: RouteMethod,
  path: Path,
  options: RouteOptions<Body, Query>,
  handler: Handler<Path, BodyOf<Body>, QueryOf<Query>>,
): void;
export function route(
  method: RouteMethod,
  path: string,
  first: RouteOptions<undefined, undefined> | Handler,
  second?: Handler,
): void {
  if (typeof first === "function") declared.declareRoute(method, path, {}, first);
  else declared.declareRoute(method, path, first, second!);
}

/**
 * Declares rules that the platform's gateway applies to requests of all routes; at most once. The option `gateway` of a route
 * replaces them field by field, and the operator's values replace both. Without the gateway, the rules are not applied, and
 * routes whose rules restrict access admit only programs on this machine.
 *
 * ```ts
 * gateway({ rate_limit_rpm: 60, auth: { type: "bearer", required_scope: "notes:read" } });
 * route("GET", "/public", { gateway: { auth: { type: "none" } } }, () => "open");
 * ```
 */
export function gateway(rules: GatewayRules): void {
  declared.declareGateway(rules);
}

/**
 * Declares a database: `./data/<name>.sqlite`, or the PostgreSQL database of DATABASE_URL. Migrations are applied before
 * the service is ready. Pass `import.meta.url` as `from` if the folder of migrations is relative to the file.
 *
 * ```ts
 * const notes = database("notes", { migrations: "./migrations" }, import.meta.url);
 * ```
 */
export function database(name: string, options: DatabaseOptions = {}, from?: string): Database {
  return declared.declareDatabase(name, options, from);
}

/** Declares a cache in this process, empty after a start. */
export function cache(options: CacheOptions = {}): Cache {
  return declared.declareCache(options);
}

/**
 * Declares scheduled work: a duration (`30s`, `5m`, `2h`, `1d`) or a cron expression in UTC. Runs do not overlap; with a
 * database, one replica runs each tick, and missed ticks run once.
 *
 * ```ts
 * every("5m", () => notes.run`delete from notes where expires_at < ${Date.now()}`);
 * every("0 3 * * *", { name: "report" }, async ({ signal }) => sendReport(signal));
 * ```
 */
export function every(timing: string, work: Work): void;
export function every(timing: string, options: ScheduleOptions, work: Work): void;
export function every(timing: string, first: ScheduleOptions | Work, second?: Work): void {
  if (second === undefined) declared.declareSchedule(timing, first as Work, {});
  else declared.declareSchedule(timing, second, first as ScheduleOptions);
}
