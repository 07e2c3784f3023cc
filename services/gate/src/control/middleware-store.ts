// The registered WebAssembly middleware: modules on disk, compiled here and posted to the workers.
//
//   middleware.json            names, versions and their origin
//   middleware/<sha256>.wasm   the modules as they were registered
import { createHash } from "node:crypto";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import { replaceFile } from "@platform/kernel/files";
import type { Logger } from "@platform/kernel/log";
import type { MetricFamily } from "@platform/kernel/metrics";
import type { Clock } from "@platform/kernel/time";
import { GuestError, type HttpModule, compileHttpModule } from "@platform/wasm/http";
import { z } from "zod";
import { toStorageError } from "../access/durable-file.ts";
import type { FolderLock } from "../access/folder-lock.ts";
import { type StateFile, createEphemeralState, createStateFile } from "../access/state-file.ts";
import type { RouteConfig } from "../config/route.ts";
import { listGuestReferences } from "../config/route-middleware.ts";
import {
  GUESTS_MAX,
  GUEST_VERSIONS_MAX,
  type GuestChange,
  type NamedGuest,
  makeRouteLabel,
  splitGuestReference,
} from "../shared-state/index.ts";
import { MiddlewareFigures, type MiddlewareUse } from "./middleware-figures.ts";

/** Origin of a middleware. */
const middlewareSource = z.enum(["api", "registry", "file"]);

export type MiddlewareSource = z.infer<typeof middlewareSource>;

const storedSchema = z.array(
  z.strictObject({
    name: z.string(),
    versions: z.array(
      z.strictObject({
        sha256: z.string(),
        source: middlewareSource,
        registered_at: z.string(),
      }),
    ),
  }),
);

type Stored = z.infer<typeof storedSchema>[number];

/** A middleware as the API shows it. */
export interface RegisteredMiddleware extends MiddlewareUse {
  readonly name: string;
  /** The version that a name without a digest stands for. */
  readonly module: HttpModule;
  /** Digests of all versions, the newest first. */
  readonly versions: readonly string[];
  readonly source: MiddlewareSource;
  readonly registeredAt: string;
  /** Labels of the routes that name it. */
  readonly routes: readonly string[];
}

/** Options of {@link MiddlewareStore}. */
export interface MiddlewareStoreOptions {
  /** Folder of the gateway's state. */
  folder: string;
  isEphemeral: boolean;
  lock: FolderLock;
  clock: Clock;
  log: Logger;
  listRoutes: () => Iterable<RouteConfig>;
  /** Runs work between two changes of the gateway. */
  runExclusive: <T>(work: () => Promise<T>) => Promise<T>;
  /** Sends a change to every worker; resolves when all of them have applied it. */
  apply: (change: GuestChange) => Promise<void>;
}

/** The registered middleware of one gateway. */
export class MiddlewareStore {
  readonly name = "middleware";
  readonly figures = new MiddlewareFigures();
  readonly #options: MiddlewareStoreOptions;
  readonly #file: StateFile<Stored[]>;
  #stored: Stored[] = [];
  /** By digest: all versions whose files are usable. */
  readonly #modules = new Map<string, HttpModule>();
  /** The folder is locked, and was read after that. */
  #isLocked = false;

  constructor(options: MiddlewareStoreOptions) {
    this.#options = options;
    const file = createMiddlewareFile(options.folder, (fault) =>
      options.log.warn("state repaired", { fault }),
    );
    this.#file = options.isEphemeral ? createEphemeralState(file) : file;
  }

  /** Reads everything that is stored. A module whose digest is wrong is not run, and not removed. */
  async load(): Promise<void> {
    this.#stored = (await this.#file.read()) ?? [];
    for (const { name, versions } of this.#stored)
      for (const { sha256 } of versions) await this.#loadModule(name, sha256);
  }

  /** All middleware for new workers. */
  list(): GuestChange {
    return { set: this.#stored.map((stored) => this.#describe(stored)), removed: [] };
  }

  /** True if a route may name it. */
  has(reference: string): boolean {
    const { name, digest } = splitGuestReference(reference);
    const stored = this.#stored.find((one) => one.name === name);
    if (stored === undefined) return false;
    return this.#describe(stored).versions.some(({ sha256 }) => sha256.startsWith(digest));
  }

  /** All middleware with its figures. */
  listRegistered(): RegisteredMiddleware[] {
    return this.#stored.flatMap((stored) => {
      const { name } = stored;
      const [module] = this.#describe(stored).versions;
      const entry = stored.versions.find(({ sha256 }) => sha256 === module?.sha256);
      if (module === undefined || entry === undefined) return [];
      return {
        name,
        module,
        versions: stored.versions.map(({ sha256 }) => sha256),
        source: entry.source,
        registeredAt: entry.registered_at,
        routes: this.#listUsers(name),
        ...this.figures.read(name),
      };
    });
  }

  /**
   * Registers a module, which replaces the previous version in all workers before this resolves. Throws `validation_failed`
   * if it cannot be used.
   */
  async register(
    name: string,
    bytes: Uint8Array,
    source: MiddlewareSource,
    caller: string,
  ): Promise<HttpModule> {
    const module = compile(bytes);
    return this.#options.runExclusive(async () => {
      await this.#lock();
      const known = this.#stored.find((stored) => stored.name === name);
      if (known?.versions[0]?.sha256 === module.sha256 && this.#modules.has(module.sha256))
        return module;
      if (known === undefined && this.#stored.length >= GUESTS_MAX)
        throw new PlatformError(
          "insufficient_storage",
          `There are ${GUESTS_MAX} middleware modules; remove one.`,
        );
      const registered_at = new Date(this.#options.clock.now()).toISOString();
      const others = known?.versions.filter(({ sha256 }) => sha256 !== module.sha256) ?? [];
      const versions = [{ sha256: module.sha256, source, registered_at }, ...others];
      const next = { name, versions: versions.slice(0, GUEST_VERSIONS_MAX) };
      await this.#writeModule(module.sha256, bytes);
      const before = this.#stored;
      const isNew = known === undefined;
      await this.#store(
        isNew ? [...before, next] : before.map((one) => (one === known ? next : one)),
      );
      this.#modules.set(module.sha256, module);
      await this.#publish({ set: [this.#describe(next)], removed: [] }, before);
      await this.#sweep(before);
      this.#audit("middleware registered", { name, caller, sha256: module.sha256 });
      return module;
    });
  }

  /** Removes a middleware. Throws `not_found`, or `conflict` with the routes that name it. */
  async remove(name: string, caller: string): Promise<void> {
    await this.#options.runExclusive(async () => {
      await this.#lock();
      const before = this.#stored;
      if (!before.some((stored) => stored.name === name))
        throw new PlatformError("not_found", `The middleware ${name} is not registered.`);
      const routes = this.#listUsers(name);
      if (routes.length > 0)
        throw new PlatformError(
          "conflict",
          `The middleware ${name} is used by ${routes.slice(0, 10).join(", ")}.`,
          { fields: { routes } },
        );
      await this.#store(before.filter((stored) => stored.name !== name));
      await this.#publish({ set: [], removed: [name] }, before);
      this.figures.forget(name);
      await this.#sweep(before);
      this.#audit("middleware removed", { name, caller });
    });
  }

  /** The warning of the readiness probe: routes that name middleware which is not registered. */
  describe(): string | undefined {
    const missing = new Set<string>();
    for (const route of this.#options.listRoutes())
      for (const reference of listGuestReferences(route))
        if (!this.has(reference)) missing.add(reference);
    if (missing.size === 0) return undefined;
    return `not registered: ${[...missing].slice(0, 10).join(", ")}; requests of routes that name it get 502`;
  }

  collect(): MetricFamily[] {
    return this.figures.collect();
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  // Another process, such as `install --offline`, may have written between the start of this one and the lock.
  async #lock(): Promise<void> {
    if (this.#options.isEphemeral || this.#isLocked) return;
    await this.#options.lock.take();
    this.#isLocked = true;
    const before = JSON.stringify(this.#stored);
    await this.load();
    if (JSON.stringify(this.#stored) !== before) await this.#options.apply(this.list());
  }

  #describe({ name, versions }: Stored): NamedGuest {
    return {
      name,
      versions: versions.flatMap(({ sha256 }) => this.#modules.get(sha256) ?? []),
    };
  }

  #listUsers(name: string): string[] {
    const users = new Set<string>();
    for (const route of this.#options.listRoutes())
      for (const reference of listGuestReferences(route))
        if (splitGuestReference(reference).name === name)
          users.add(makeRouteLabel(route.host, route.prefix));
    return [...users];
  }

  async #store(next: Stored[]): Promise<void> {
    await this.#file.write(next);
    this.#stored = next;
  }

  // Workers that refuse a change have not applied it: it is taken back.
  async #publish(change: GuestChange, before: Stored[]): Promise<void> {
    try {
      await this.#options.apply(change);
    } catch (error) {
      await this.#store(before);
      throw error;
    }
  }

  async #writeModule(sha256: string, bytes: Uint8Array): Promise<void> {
    if (this.#options.isEphemeral || this.#modules.has(sha256)) return;
    const path = this.#locate(sha256);
    try {
      await mkdir(join(this.#options.folder, "middleware"), { recursive: true, mode: 0o700 });
      await replaceFile(path, bytes);
    } catch (cause) {
      throw toStorageError(path, cause);
    }
  }

  // Files of versions that nothing names any more.
  async #sweep(before: readonly Stored[]): Promise<void> {
    const listDigests = (list: readonly Stored[]) =>
      list.flatMap(({ versions }) => versions.map(({ sha256 }) => sha256));
    const kept = new Set(listDigests(this.#stored));
    for (const sha256 of listDigests(before)) {
      if (kept.has(sha256) || !this.#modules.delete(sha256) || this.#options.isEphemeral) continue;
      await rm(this.#locate(sha256), { force: true });
    }
  }

  async #loadModule(name: string, sha256: string): Promise<void> {
    if (this.#modules.has(sha256)) return;
    const path = this.#locate(sha256);
    try {
      const bytes = await readFile(path);
      if (createHash("sha256").update(bytes).digest("hex") !== sha256)
        throw new Error("its SHA-256 is not that of its name");
      this.#modules.set(sha256, compileHttpModule(bytes));
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      this.#options.log.error("middleware cannot be used", { name, path, reason });
    }
  }

  #locate(sha256: string): string {
    return join(this.#options.folder, "middleware", `${sha256}.wasm`);
  }

  #audit(what: string, fields: Record<string, string>): void {
    this.#options.log.info(what, { audit: true, ...fields });
  }
}

/** The names that are registered on disk, with their digests. */
export async function readRegisteredNames(folder: string): Promise<(reference: string) => boolean> {
  const stored = (await createMiddlewareFile(folder, undefined).read()) ?? [];
  return (reference) => {
    const { name, digest } = splitGuestReference(reference);
    const versions = stored.find((one) => one.name === name)?.versions ?? [];
    return versions.some(({ sha256 }) => sha256.startsWith(digest));
  };
}

function createMiddlewareFile(
  folder: string,
  onRepair: ((fault: string) => void) | undefined,
): StateFile<Stored[]> {
  return createStateFile(join(folder, "middleware.json"), storedSchema, onRepair);
}

function compile(bytes: Uint8Array): HttpModule {
  try {
    return compileHttpModule(bytes);
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
    const code = error.code === "module-too-large" ? "payload_too_large" : "validation_failed";
    throw new PlatformError(code, error.message, { cause: error });
  }
}
