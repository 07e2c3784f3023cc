// Turns every change into a desired state, persists it and sends the difference to the workers.
import { ConfigError } from "@platform/kernel/config";
import { PlatformError, toPlatformError } from "@platform/kernel/errors";
import { type HeaderReader, createEtag, requireIfMatch } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import type { GateConfig } from "../config/document.ts";
import { findSharedMethods } from "../config/route-methods.ts";
import type { RouteConfig } from "../config/route.ts";
import {
  type GlobalSpec,
  ROUTES_MAX,
  type RouteKey,
  makeRouteKey,
  makeRouteLabel,
} from "../shared-state/index.ts";
import { ChangeQueue } from "./change-queue.ts";
import { type ResolvedRoute, resolveRoute } from "./resolve-route.ts";
import { type RouteDiff, type RouteSet, diffRoutes, isEmptyDiff } from "./differ.ts";
import { readRouteDefaults, type UsedLogs } from "./globals.ts";
import {
  type Overlay,
  type RouteConfigs,
  type RouteName,
  applyOverlay,
  indexRoutes,
  registerRoutes,
  removeRoute,
  replaceRoutes,
  upsertRoute,
} from "./overlay.ts";
import type { NetworkLists } from "./network-lists.ts";
import type { OidcClientSpec } from "./oidc-provider.ts";
import type { OverlayStore } from "./overlay-file.ts";
import type { RoutePlanner } from "./planner.ts";
import { stringifySorted } from "./sorted-json.ts";
import type { Change } from "./worker-handle.ts";

const CHANGES_WAITING_MAX = 256;
/** Configuration keys that are read only at startup. */
const START_ONLY_KEYS = [
  "addr",
  "admin_addr",
  "workers",
  "ephemeral",
  "data_dir",
  "cookie_keys",
  "cache_size",
  "console_addr",
  "console_url",
  "console_services",
  "console_issuer",
  "console_client_id",
  "console_client_secret",
] as const;

/** The complete desired state of the gateway. */
export interface GateState {
  readonly config: GateConfig;
  /** Routes of the configuration without the overlay. */
  readonly base: RouteConfigs;
  readonly overlay: Overlay;
  /** The active routes. */
  readonly routes: RouteConfigs;
  readonly resolved: RouteSet;
  readonly globals: GlobalSpec;
  /** Entity tag of the active routes; equal for equal routes, also after a restart. */
  readonly etag: string;
}

/** Caller and precondition of a change. */
export interface ChangeRequest {
  /** Caller for the audit log: `operator`, `user <sub>`, `SIGHUP` … */
  caller: string;
  /** May contain If-Match: the change is refused with `precondition_failed` if the routes have a different tag. */
  headers?: HeaderReader;
}

/** Outcome of a change. */
export interface ChangeReport {
  added: number;
  updated: number;
  removed: number;
  etag: string;
  /** Changed keys that require a restart. */
  restartRequired: string[];
}

/** Options of {@link Controller}. */
export interface ControllerOptions {
  planner: RoutePlanner;
  store: OverlayStore;
  networks: NetworkLists;
  log: Logger;
  /** Reads the configuration again; throws ConfigError. */
  loadConfig: () => GateConfig;
  /** Builds the settings that do not belong to a route; throws ConfigError. */
  buildGlobals: (config: GateConfig, logs: UsedLogs) => GlobalSpec;
  /** Sends a change to every worker; resolves when all of them have applied it. */
  apply: (change: Change) => Promise<void>;
  /** Called with each applied change of routes, as one sentence, and its caller. */
  onChange?: (title: string, caller: string) => void;
}

/** Builds the state of a configuration and an overlay. Reuses lists of networks and the resolved routes of `known`. */
export function buildState(
  config: GateConfig,
  overlay: Overlay,
  buildGlobals: ControllerOptions["buildGlobals"],
  networks: NetworkLists,
  known?: RouteSet,
): GateState {
  if (known === undefined) networks.begin();
  const base = indexRoutes(config.routes);
  const routes = applyOverlay(base, overlay);
  if (routes.size > ROUTES_MAX) {
    throw new PlatformError(
      "validation_failed",
      `${routes.size} routes exceed the maximum of ${ROUTES_MAX}`,
    );
  }
  const [shared] = findSharedMethods([...routes.values()]);
  if (shared !== undefined) {
    throw new PlatformError(
      "validation_failed",
      `two routes with the same prefix and host have the method ${shared.method}`,
    );
  }
  const defaults = readRouteDefaults(config);
  const resolved = new Map<RouteKey, ResolvedRoute>();
  const logs: UsedLogs = { access: false, recording: false };
  for (const [key, route] of routes) {
    const before = known?.get(key);
    resolved.set(key, before?.config === route ? before : resolveRoute(route, defaults, networks));
    logs.access ||= route.access_log === true;
    logs.recording ||= resolved.get(key)!.spec.steps.record !== undefined;
  }
  const globals = buildGlobals(config, logs);
  return { config, base, overlay, routes, resolved, globals, etag: makeEtag(resolved) };
}

/** Changes the state of the gateway, one change at a time. */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #queue = new ChangeQueue(CHANGES_WAITING_MAX);
  readonly #started: GateConfig;
  #state: GateState;

  /** `state` is the state that the workers start with. */
  constructor(options: ControllerOptions, state: GateState) {
    this.#options = options;
    this.#started = state.config;
    this.#state = state;
    this.#warn([...state.resolved.values()]);
  }

  /** The active state. */
  get state(): GateState {
    return this.#state;
  }

  /** Adds a route, or replaces the one with its prefix and host. */
  setRoute(route: RouteConfig, request: ChangeRequest): Promise<ChangeReport> {
    return this.#queue.run(async () => {
      this.#checkMatch(request);
      const { config, base, overlay } = this.#state;
      return this.#change(config, upsertRoute(overlay, base, route), request, "route set");
    });
  }

  /** Removes a route; throws `not_found` if it does not exist. */
  removeRoute(name: RouteName, request: ChangeRequest): Promise<ChangeReport> {
    return this.#queue.run(async () => {
      this.#checkMatch(request);
      const { config, base, overlay, routes } = this.#state;
      if (!routes.has(makeRouteKey(name.host, name.prefix, name.methods))) {
        throw new PlatformError(
          "not_found",
          `route ${makeRouteLabel(name.host, name.prefix)} does not exist`,
        );
      }
      return this.#change(config, removeRoute(overlay, base, name), request, "route removed");
    });
  }

  /** Replaces the routes that a service has registered. */
  registerRoutes(
    service: string,
    routes: readonly RouteConfig[],
    request: ChangeRequest,
  ): Promise<ChangeReport> {
    return this.#queue.run(async () => {
      this.#checkMatch(request);
      const { config, base, overlay } = this.#state;
      const next = registerRoutes(overlay, base, service, indexRoutes(routes));
      return this.#change(config, next, request, "routes registered");
    });
  }

  /** Replaces the whole set of routes. */
  replaceRoutes(wanted: readonly RouteConfig[], request: ChangeRequest): Promise<ChangeReport> {
    return this.#queue.run(async () => {
      this.#checkMatch(request);
      const { config, base } = this.#state;
      const overlay = replaceRoutes(base, indexRoutes(wanted));
      return this.#change(config, overlay, request, "routes replaced");
    });
  }

  /** Reads configuration, overlay and certificate files again. If one of them is invalid, nothing changes. */
  reload(request: ChangeRequest): Promise<ChangeReport> {
    return this.#queue.run(async () => {
      this.#checkMatch(request);
      const { buildGlobals, networks } = this.#options;
      try {
        const config = this.#options.loadConfig();
        const overlay = await this.#options.store.read();
        const next = buildState(config, overlay, buildGlobals, networks);
        const report = await this.#transition(next, request, "configuration reloaded", false);
        return { ...report, restartRequired: this.#listStartOnly(config) };
      } catch (cause) {
        const error = explainReload(cause);
        this.#options.log.error("reload refused, nothing has changed", {
          caller: request.caller,
          reason: error.detail,
        });
        throw error;
      }
    });
  }

  /** The client of browser sign-in with this name, if an active route uses it. */
  findOidcClient(client: string): OidcClientSpec | undefined {
    for (const { oidc } of this.#state.resolved.values()) {
      if (oidc?.client === client) return oidc;
    }
    return undefined;
  }

  /** Runs work between two changes: those of workers must not overlap. */
  runExclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.run(work);
  }

  /** Resolves when no change is in progress. */
  settle(): Promise<void> {
    return this.#queue.settle();
  }

  #warn(routes: readonly ResolvedRoute[]): void {
    for (const { label, warnings } of routes) {
      for (const warning of warnings) this.#options.log.warn(warning, { route: label });
    }
  }

  #checkMatch({ headers }: ChangeRequest): void {
    if (headers !== undefined) requireIfMatch(headers, this.#state.etag);
  }

  #change(
    config: GateConfig,
    overlay: Overlay,
    request: ChangeRequest,
    what: string,
  ): Promise<ChangeReport> {
    const { buildGlobals, networks } = this.#options;
    const next = buildState(config, overlay, buildGlobals, networks, this.#state.resolved);
    return this.#transition(next, request, what, true);
  }

  async #transition(
    next: GateState,
    request: ChangeRequest,
    what: string,
    persist: boolean,
  ): Promise<ChangeReport> {
    const { planner, store } = this.#options;
    const before = this.#state;
    const diff = diffRoutes(before.resolved, next.resolved);
    const globalsChanged = stringifySorted(before.globals) !== stringifySorted(next.globals);
    const planned = planner.plan(diff);
    try {
      // Disk first: an acknowledged change survives a crash, and a change that cannot be stored does not start.
      if (persist) await store.write(next.overlay);
      if (!isEmptyDiff(diff) || globalsChanged) {
        await this.#options.apply({
          upsert: planned.upsert,
          remove: planned.remove,
          ...(globalsChanged ? { globals: next.globals } : {}),
        });
      }
    } catch (cause) {
      planned.rollBack();
      if (persist) await this.#restoreOverlay(before.overlay);
      throw cause;
    }
    planned.commit();
    this.#state = next;
    this.#warn([...diff.added, ...diff.updated]);
    this.#audit(what, request, diff, before, next);
    return {
      added: diff.added.length,
      updated: diff.updated.length,
      removed: diff.removed.length,
      etag: next.etag,
      restartRequired: [],
    };
  }

  async #restoreOverlay(overlay: Overlay): Promise<void> {
    try {
      await this.#options.store.write(overlay);
    } catch (cause) {
      this.#options.log.error("cannot restore the overlay", {
        reason: toPlatformError(cause).detail,
      });
    }
  }

  #audit(
    what: string,
    request: ChangeRequest,
    diff: RouteDiff,
    before: GateState,
    next: GateState,
  ): void {
    const changes = [...diff.added, ...diff.updated].map((route) => route.key);
    const [only, ...more] = [...changes, ...diff.removed];
    const single =
      only !== undefined && more.length === 0
        ? { before: before.routes.get(only) ?? null, after: next.routes.get(only) ?? null }
        : {};
    const { added, updated, removed } = diff;
    const counts = `${added.length} added, ${updated.length} updated, ${removed.length} removed`;
    this.#options.onChange?.(
      `${what}: ${only !== undefined && more.length === 0 ? only : counts}`,
      request.caller,
    );
    this.#options.log.info(what, {
      audit: true,
      caller: request.caller,
      added: diff.added.map((route) => route.label).slice(0, 100),
      updated: diff.updated.map((route) => route.label).slice(0, 100),
      removed: diff.removed.slice(0, 100),
      etag_before: before.etag,
      etag_after: next.etag,
      ...single,
    });
  }

  #listStartOnly(config: GateConfig): string[] {
    return START_ONLY_KEYS.filter(
      (name) => stringifySorted(this.#started[name]) !== stringifySorted(config[name]),
    );
  }
}

/** A strong entity tag of a set of routes, independent of their order. */
function makeEtag(routes: RouteSet): string {
  const texts = [...routes.keys()].sort().map((key) => routes.get(key)?.text);
  return createEtag(texts.join("\n"));
}

function explainReload(cause: unknown): PlatformError {
  if (cause instanceof PlatformError) return cause;
  if (cause instanceof ConfigError) {
    return new PlatformError("validation_failed", cause.message, { cause });
  }
  return new PlatformError(
    "validation_failed",
    cause instanceof Error ? cause.message : "the configuration cannot be read",
    { cause },
  );
}
