// The declarations of a service.
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock, type Clock } from "@platform/kernel/time";
import type { GatewayRules } from "@platform/kernel/route-rules";
import { Cache, type CacheOptions } from "../cache/cache.ts";
import { Database, type DatabaseOptions } from "../database/database.ts";
import { checkOptionNames } from "../error/option-names.ts";
import { markPosition } from "../error/position.ts";
import {
  checkRoute,
  type BodyOf,
  type BodyOption,
  type Handler,
  type QueryOf,
  type RouteDefinition,
  type RouteMethod,
  type RouteOptions,
} from "../http/definition.ts";
import { Router } from "../route/router.ts";
import { Schedule, type ScheduleOptions, type Work } from "../schedule/schedule.ts";
import type { Schema } from "../schema/validate.ts";
import type { Identity } from "./identity.ts";
import { readSettings, type Settings } from "./settings.ts";

/** Options of a server. */
export interface ServerOptions {
  /** Default 3000; 0 selects a free port. PLATFORM_SERVICE_PORT and PORT replace it. */
  port?: number;
  /** Address to listen on; default all. PLATFORM_SERVICE_HOST and HOST replace it. */
  host?: string;
  /** Maximum size of a request body in bytes; default 10 485 760 (413). */
  bodyBytesMax?: number;
  /** Maximum time to the result of a handler in ms; default 30 000. */
  timeoutMs?: number;
  /** Maximum number of requests whose handlers run; default 10 000. Further ones receive 503. */
  requestsMax?: number;
  /** True makes `/api/docs` public; by default only programs on this machine may read it. */
  publicDocs?: boolean;
}

/** A server as declared, with defaults. */
export type ServerSettings = Readonly<Required<Omit<ServerOptions, "host">>> & {
  readonly host: string | undefined;
};

/** Environment of a service; tests and commands pass their own. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** True in tests: databases are in memory. */
  readonly inMemory: boolean;
}

/** A service whose files are watched. */
export interface Development {
  /** True if programs on this machine get the details of errors in answers. */
  readonly hasDetails: boolean;
  /** The platform's console, whose log has the details, for requests through the gateway. */
  readonly consoleUrl?: string | undefined;
}

const DEFAULT_PORT = 3_000;
const ROUTES_MAX = 10_000;

/** The declarations of one service, in the order in which its files are loaded. */
export class Service {
  readonly routes: RouteDefinition[] = [];
  readonly databases: Database[] = [];
  readonly caches: Cache[] = [];
  readonly schedules: Schedule[] = [];
  /** Address that a server listens on if nothing else names one; undefined: all interfaces. */
  hostByDefault: string | undefined;
  environment: Environment = { env: process.env, clock: systemClock, inMemory: false };
  /** Set while the author develops the service: errors are shown with the lines of the author's files. */
  development: Development | undefined;
  /** Set in built programs, which have no package.json. */
  identity: Identity | undefined;
  readonly #router = new Router<RouteDefinition>();
  #server: { readonly options: ServerOptions; readonly locate: () => string } | undefined;
  #gateway: { readonly rules: GatewayRules; readonly locate: () => string } | undefined;
  #settings: Settings | undefined;

  /** The settings of the environment, read once. */
  get settings(): Settings {
    return (this.#settings ??= readSettings(this.environment.env));
  }

  /** The declared server, or the default one. */
  get serverSettings(): ServerSettings {
    const { options = {} } = this.#server ?? {};
    return {
      port: this.settings.port ?? options.port ?? DEFAULT_PORT,
      host: this.settings.host ?? options.host ?? this.hostByDefault,
      bodyBytesMax: options.bodyBytesMax ?? 10_485_760,
      timeoutMs: options.timeoutMs ?? 30_000,
      requestsMax: options.requestsMax ?? 10_000,
      publicDocs: options.publicDocs ?? false,
    };
  }

  /** `path:line:column` of the declared server; "" if there is none. */
  get serverDeclaredAt(): string {
    return this.#server?.locate() ?? "";
  }

  /** Folders of migrations, for tools that watch them. */
  get migrationFolders(): string[] {
    return this.databases.flatMap(({ options: { migrations } }) => {
      if (migrations instanceof URL) return [fileURLToPath(migrations)];
      return typeof migrations === "string" ? [resolve(migrations)] : [];
    });
  }

  /** Declares the server. Throws if there is one already, or if a value is invalid. */
  declareServer(options: ServerOptions): void {
    const locate = markPosition();
    if (this.#server !== undefined) {
      throw new TypeError(`a service has one server: it is declared at ${this.#server.locate()}`);
    }
    checkServer(options);
    this.#server = { options, locate };
  }

  /** The rules for all routes at the gateway, and `path:line:column` of their declaration. */
  get gatewayRules(): { readonly rules: GatewayRules; readonly declaredAt: string } | undefined {
    const declaration = this.#gateway;
    return declaration && { rules: declaration.rules, declaredAt: declaration.locate() };
  }

  /** Declares the rules for all routes at the gateway; they are checked when the service starts. Throws if there are some. */
  declareGateway(rules: GatewayRules): void {
    const locate = markPosition();
    if (this.#gateway !== undefined) {
      throw new TypeError(`a service has one gateway: it is declared at ${this.#gateway.locate()}`);
    }
    this.#gateway = { rules, locate };
  }

  /** Declares a route. Throws if it is invalid or declared twice. */
  declareRoute<
    Path extends string,
    Body extends BodyOption | undefined = undefined,
    Query extends Schema | undefined = undefined,
  >(
    method: RouteMethod,
    path: Path,
    options: RouteOptions<Body, Query>,
    handler: Handler<Path, BodyOf<Body>, QueryOf<Query>>,
  ): void {
    const locate = markPosition();
    const route: RouteDefinition = {
      method,
      path,
      options,
      handler,
      get declaredAt() {
        return locate();
      },
    };
    checkRoute(route);
    if (this.routes.length >= ROUTES_MAX) {
      throw new TypeError(`a service has at most ${ROUTES_MAX} routes`);
    }
    this.#router.add(route);
    this.routes.push(route);
  }

  /** Declares a database; a relative folder of migrations is relative to `from`, the URL of the declaring file. */
  declareDatabase(
    declaredName: string,
    options: DatabaseOptions,
    from: string | undefined,
  ): Database {
    const { name = declaredName } = options;
    if (this.databases.some((other) => other.name === name)) {
      throw new TypeError(`database ${name} is declared twice`);
    }
    checkOptionNames(`database ${name}`, options, "database");
    const { migrations } = options;
    const isRelative = typeof migrations === "string" && from !== undefined;
    const resolved = isRelative ? { ...options, migrations: new URL(migrations, from) } : options;
    const database = new Database(name, resolved, () => ({
      url: this.settings.database_url,
      dataFolder: this.settings.data,
      declared: this.databases.map((other) => other.name),
      inMemory: this.environment.inMemory,
      acceptLoss: this.settings.accept_loss,
    }));
    this.databases.push(database);
    return database;
  }

  /** Declares a cache. */
  declareCache(options: CacheOptions): Cache {
    checkOptionNames("cache", options, "cache");
    const clock = { monotonicMs: () => this.environment.clock.monotonicMs() };
    const cache = new Cache(options, clock);
    this.caches.push(cache);
    return cache;
  }

  /** Declares a schedule. Throws if the timing is invalid or the name is taken. */
  declareSchedule(timing: string, work: Work, options: ScheduleOptions): void {
    checkOptionNames(`every ${timing}`, options, "every");
    const count = this.schedules.filter((other) => other.timing === timing).length;
    const name = options.name ?? (count === 0 ? timing : `${timing} ${count + 1}`);
    if (this.schedules.some((other) => other.name === name)) {
      throw new TypeError(`schedule "${name}" is declared twice`);
    }
    this.schedules.push(new Schedule(timing, work, name));
  }
}

function checkServer(options: ServerOptions): void {
  const { port, ...bounds } = options;
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    throw new TypeError(`server: port must be an integer from 0 to 65535, not ${String(port)}`);
  }
  for (const name of ["bodyBytesMax", "timeoutMs", "requestsMax"] as const) {
    const value = bounds[name];
    if (value === undefined || (Number.isInteger(value) && value > 0)) continue;
    throw new TypeError(`server: ${name} must be an integer above 0, not ${String(value)}`);
  }
  checkOptionNames("server", options, "server");
}
