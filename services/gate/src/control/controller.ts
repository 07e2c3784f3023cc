// Turns every change into a desired state, persists it and sends the difference to the workers.
import { PlatformError, toPlatformError } from "@platform/kernel/errors";
import { type HeaderReader, requireIfMatch } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import type { GateConfig } from "../config/document.ts";
import type { RouteConfig } from "../config/route.ts";
import { listGuestReferences } from "../config/route-middleware.ts";
import { makeRouteKey, makeRouteLabel } from "../shared-state/index.ts";
import { ChangeLog } from "./change-log.ts";
import { ChangeQueue } from "./change-queue.ts";
import { type BuildGlobals, type GateState, type StateParts, buildState } from "./gate-state.ts";
import { confineFor, warnOfUnlimited } from "./limited-routes.ts";
import { listServices, type ResolvedRoute } from "../resolve/resolve-route.ts";
import type { Discovery } from "../source/discovery.ts";
import { type RouteDiff, diffRoutes, isEmptyDiff } from "./differ.ts";
import {
  type Overlay,
  type RouteName,
  applyOverlay,
  indexRoutes,
  registerRoutes,
  removeRoute,
  replaceRoutes,
  upsertRoute,
} from "./overlay.ts";
import type { ListenerCertificate } from "./listener-certificate.ts";
import type { NetworkLists } from "../resolve/network-lists.ts";
import type { OidcClientSpec } from "../sign-in/oidc-provider.ts";
import { explainReload } from "./reload-refusal.ts";
import type { RouteCheck } from "./route-check.ts";
import type { OverlayStore } from "./overlay-file.ts";
import type { RoutePlanner } from "./planner.ts";
import { stringifySorted } from "../resolve/sorted-json.ts";
import type { Change } from "../worker/worker-handle.ts";

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
  "auto_tls",
  "auto_tls_domain",
  "auto_tls_ask_url",
  "client_certificates",
  "auto_tls_hosts",
  "certificates_dir",
  "http_addr",
  "local_addr",
  "acme_directory_url",
  "acme_email",
  "acme_ca",
  "acme_eab_kid",
  "acme_eab_hmac_key",
  "acme_profile",
  "acme_key_type",
  "acme_challenges",
  "acme_dns",
  "discovery",
  "gitops.dir",
  "gitops.secret",
  "secret_url",
  "secret_api_key",
  "secret_tenant_id",
  "secret_mount",
  "secret_certificates_path",
  "secret_jwt_path",
  "secret_ca",
  "secret_refresh_s",
  "config_store_bucket",
  "config_store_endpoint",
  "config_store_region",
  "config_store_access_key",
  "config_store_secret_key",
  "config_store_ca",
  "config_store_poll_s",
  "console_addr",
  "console_url",
  "console_services",
  "console_issuer",
  "console_client_id",
  "console_client_secret",
  "console_redis_url",
  "console_encryption_keys",
] as const;

/** Caller and precondition of a change. */
export interface ChangeRequest {
  /** Caller for the audit log: `operator`, `user <sub>`, `SIGHUP` … */
  caller: string;
  /**
   * May contain If-Match with the tag of the routes or of the changed one, and `If-None-Match: *`, which refuses to replace
   * a route: `precondition_failed`.
   */
  headers?: HeaderReader;
  /** The routes may name only certain files, variables and addresses. */
  isConfined?: boolean;
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
  /** Undefined without service discovery. */
  discovery?: Pick<Discovery, "find" | "prepare"> | undefined;
  networks: NetworkLists;
  certificate: Pick<ListenerCertificate, "refresh" | "follow">;
  log: Logger;
  /** Reads the configuration again; throws ConfigError. */
  loadConfig: () => GateConfig;
  buildGlobals: BuildGlobals;
  /** Sends a change to every worker; resolves when all of them have applied it. */
  apply: (change: Change) => Promise<void>;
  /** True if a route may name this middleware. */
  hasMiddleware: (reference: string) => boolean;
}

/** Changes the state of the gateway, one change at a time. */
export class Controller {
  /** The last changes. */
  readonly changes = new ChangeLog();
  readonly #options: ControllerOptions;
  readonly #queue = new ChangeQueue(CHANGES_WAITING_MAX);
  readonly #started: GateConfig;
  #state: GateState;
  #onChange: (title: string, caller: string) => void = () => undefined;

  /** `state` is the state that the workers start with. */
  constructor(options: ControllerOptions, state: GateState) {
    this.#options = options;
    this.#started = state.config;
    this.#state = state;
    this.#warn([...state.resolved.values()]);
    warnOfUnlimited(state, options.log);
  }

  /** Calls `listener` with each applied change of routes, as one sentence, and its caller. */
  onChange(listener: (title: string, caller: string) => void): void {
    this.#onChange = listener;
  }

  /** The active state. */
  get state(): GateState {
    return this.#state;
  }

  /** Adds a route, or replaces the one with its prefix and host. */
  setRoute(route: RouteConfig, request: ChangeRequest): Promise<ChangeReport> {
    return this.#queue.run(async () => {
      this.#checkMatch(request, route);
      const { config, base, overlay } = this.#state;
      this.#checkMiddleware(route);
      const next = upsertRoute(overlay, base, confineFor(request, route, this.#state));
      return this.#change(config, next, request, "route set");
    });
  }

  /** Describes the effect of {@link setRoute}. Throws as it does, and changes nothing. */
  checkRoute(route: RouteConfig, request: ChangeRequest): Promise<RouteCheck> {
    return this.#queue.run(() => {
      this.#checkMatch(request, route);
      const { config, base, overlay, routes, resolved } = this.#state;
      const { planner } = this.#options;
      this.#checkMiddleware(route);
      const next = upsertRoute(overlay, base, confineFor(request, route, this.#state));
      const state = buildState(config, next, this.#parts, resolved);
      const diff = diffRoutes(resolved, state.resolved);
      planner.plan(diff).rollBack();
      const key = makeRouteKey(route.host, route.prefix, route.methods, route.variant);
      const [before = null, after = null] = [routes.get(key), state.routes.get(key)];
      return Promise.resolve({
        change: diff.added.length > 0 ? "added" : diff.updated.length > 0 ? "updated" : "unchanged",
        before,
        after,
        before_etag: resolved.get(key)?.etag ?? null,
        fields: listChangedFields(before, after),
        warnings: state.resolved.get(key)?.warnings ?? [],
      });
    });
  }

  /** Removes a route; throws `not_found` if it does not exist. */
  removeRoute(name: RouteName, request: ChangeRequest): Promise<ChangeReport> {
    return this.#queue.run(async () => {
      this.#checkMatch(request, name);
      const { config, base, overlay, routes } = this.#state;
      if (!routes.has(makeRouteKey(name.host, name.prefix, name.methods, name.variant))) {
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
      for (const route of routes) this.#checkMiddleware(route);
      const wanted = routes.map((route) => confineFor(request, route, this.#state));
      const next = registerRoutes(overlay, base, service, indexRoutes(wanted));
      return this.#change(config, next, request, "routes registered");
    });
  }

  /** Replaces the whole set of routes. */
  replaceRoutes(routes: readonly RouteConfig[], request: ChangeRequest): Promise<ChangeReport> {
    return this.#queue.run(async () => {
      this.#checkMatch(request);
      const { config, base } = this.#state;
      for (const route of routes) this.#checkMiddleware(route);
      const wanted = routes.map((route) => confineFor(request, route, this.#state));
      const overlay = replaceRoutes(base, indexRoutes(wanted));
      return this.#change(config, overlay, request, "routes replaced");
    });
  }

  /** Reads configuration, overlay and certificate files again. If one of them is invalid, nothing changes. */
  reload(request: ChangeRequest): Promise<ChangeReport> {
    return this.#queue.run(async () => {
      this.#checkMatch(request);
      const { certificate } = this.#options;
      try {
        const config = this.#options.loadConfig();
        await certificate.refresh();
        const overlay = await this.#options.store.read();
        await this.#prepareServices(config, overlay);
        const next = buildState(config, overlay, this.#parts);
        const report = await this.#transition(next, request, "configuration reloaded", false);
        await certificate.follow(config);
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

  /** Sends what has changed outside of the configuration to the workers: certificates, tokens, addresses of services. */
  renew(): Promise<void> {
    return this.#queue.run(async () => {
      const { config, overlay, resolved } = this.#state;
      await this.#apply(buildState(config, overlay, this.#parts, resolved), false);
    });
  }

  /** Services that active routes name. */
  listServices(): ReadonlySet<string> {
    const { routes } = this.#state;
    return new Set([...routes.values()].flatMap((route) => listServices(route)));
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

  // A route of the configuration may name one that is registered later: its requests get 502 until then.
  #checkMiddleware(route: RouteConfig): void {
    const { base } = this.#state;
    const key = makeRouteKey(route.host, route.prefix, route.methods, route.variant);
    const configured = base.get(key);
    if (configured !== undefined && stringifySorted(configured) === stringifySorted(route)) return;
    for (const reference of listGuestReferences(route)) {
      if (this.#options.hasMiddleware(reference)) continue;
      const label = makeRouteLabel(route.host, route.prefix);
      throw new PlatformError(
        "validation_failed",
        `route ${label}: the middleware ${reference} is not registered`,
      );
    }
  }

  /** Throws `precondition_failed` with both versions of the route if it was changed meanwhile. */
  #checkMatch({ headers }: ChangeRequest, sent?: RouteName): void {
    if (headers === undefined) return;
    const { etag, resolved } = this.#state;
    if (sent === undefined) {
      requireIfMatch(headers, etag);
      return;
    }
    const route = resolved.get(makeRouteKey(sent.host, sent.prefix, sent.methods, sent.variant));
    const refusal = (detail: string, cause?: unknown): PlatformError =>
      new PlatformError("precondition_failed", detail, {
        headers: { ETag: etag },
        fields: { etag, route_etag: route?.etag ?? null, current: route?.config ?? null, sent },
        cause,
      });
    if (route !== undefined && headers.get("if-none-match") === "*") {
      throw refusal(`The route ${route.label} exists.`);
    }
    try {
      requireIfMatch(headers, etag, route?.etag);
    } catch (cause) {
      throw refusal("The route has changed; read it again.", cause);
    }
  }

  get #parts(): StateParts {
    const { buildGlobals, networks, discovery } = this.#options;
    return { buildGlobals, networks, findService: discovery?.find };
  }

  async #prepareServices(config: GateConfig, overlay: Overlay): Promise<void> {
    const { discovery } = this.#options;
    if (discovery === undefined) return;
    const routes = applyOverlay(indexRoutes(config.routes), overlay);
    await discovery.prepare([...routes.values()].flatMap((route) => listServices(route)));
  }

  async #change(
    config: GateConfig,
    overlay: Overlay,
    request: ChangeRequest,
    what: string,
  ): Promise<ChangeReport> {
    await this.#prepareServices(config, overlay);
    const next = buildState(config, overlay, this.#parts, this.#state.resolved);
    return this.#transition(next, request, what, true);
  }

  async #transition(
    next: GateState,
    request: ChangeRequest,
    what: string,
    persist: boolean,
  ): Promise<ChangeReport> {
    const before = this.#state;
    const diff = await this.#apply(next, persist);
    this.#audit(what, request, diff, before, next);
    return {
      added: diff.added.length,
      updated: diff.updated.length,
      removed: diff.removed.length,
      etag: next.etag,
      restartRequired: [],
    };
  }

  /** Makes a state the active one. A failure leaves everything as it was. */
  async #apply(next: GateState, persist: boolean): Promise<RouteDiff> {
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
    return diff;
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
    this.#onChange(
      `${what}: ${only !== undefined && more.length === 0 ? only : counts}`,
      request.caller,
    );
    this.changes.add({
      at: new Date().toISOString(),
      what,
      actor: request.caller,
      added: added.map(({ label }) => label),
      updated: updated.map(({ label }) => label),
      removed: removed.map((key) => before.resolved.get(key)?.label ?? key),
      etag_before: before.etag,
      etag_after: next.etag,
    });
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

function listChangedFields(before: RouteConfig | null, after: RouteConfig | null): string[] {
  const [old, fresh] = [before, after].map((route) => new Map(Object.entries(route ?? {})));
  const names = [...new Set([...(old?.keys() ?? []), ...(fresh?.keys() ?? [])])];
  const show = (value: unknown): string => (value === undefined ? "" : stringifySorted(value));
  return names.filter((name) => show(old?.get(name)) !== show(fresh?.get(name))).sort();
}
