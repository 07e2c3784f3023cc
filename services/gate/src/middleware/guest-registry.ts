// The guests of one worker: registered modules, and the instances that routes share.
import {
  type GuestEnvironment,
  GuestInstances,
  GuestMemoryBudget,
  type HttpModule,
  LogLevel,
  ModulePools,
} from "@platform/wasm/http";
import {
  type GuestChange,
  type GuestFigures,
  type GuestLimits,
  splitGuestReference,
} from "../shared-state/index.ts";
import { GuestBreaker } from "./guest-breaker.ts";
import { GuestCounts } from "./guest-counts.ts";

/** Lines that a guest may log in a second. */
const LINES_PER_SECOND = 100;
// A message wakes the control plane: ten in a second would cost each of 20 000 requests as much as its fields.
const REPORT_MS = 500;
const SWEEP_MS = 1_000;

/** Options of {@link GuestRegistry}. */
export interface GuestRegistryOptions {
  readNowMs: () => number;
  /** Writes a line of a guest. */
  log: (level: "debug" | "info" | "warn" | "error", msg: string, name: string) => void;
  /** Receives the figures of guests whose calls have been counted. */
  report: (figures: GuestFigures[]) => void;
}

/** A module with one configuration: its instances and its circuit. */
export interface GuestRuntime {
  readonly name: string;
  readonly module: HttpModule;
  readonly instances: GuestInstances;
  readonly breaker: GuestBreaker;
  readonly counts: GuestCounts;
}

/** The guest that a route names. Which module that is may change at any time. */
export class GuestBinding {
  readonly reference: string;
  readonly #config: Buffer;
  readonly #registry: GuestRegistry;
  #generation = -1;
  #runtime: GuestRuntime | undefined;

  constructor(registry: GuestRegistry, reference: string, config: Buffer) {
    this.#registry = registry;
    this.reference = reference;
    this.#config = config;
    registry.open(this);
  }

  /** Creates the first instance of a guest that is registered. */
  warm(): void {
    const runtime = this.find();
    try {
      runtime?.instances.warm();
    } catch {
      // The first request after a while fails with the reason.
      runtime?.breaker.noteFailedStart();
    }
  }

  /** No request uses it any more. */
  close(): void {
    this.#registry.close(this);
  }

  /** The guest as it is registered now; undefined if it is not. */
  find(): GuestRuntime | undefined {
    const { generation } = this.#registry;
    if (this.#generation !== generation) {
      this.#generation = generation;
      this.#runtime = this.#registry.find(this.reference, this.#config);
    }
    return this.#runtime;
  }
}

/** All guests of one worker. */
export class GuestRegistry {
  readonly #options: GuestRegistryOptions;
  readonly #versions = new Map<string, readonly HttpModule[]>();
  /** Pools of the same module, by name and digest: with different configurations. */
  readonly #pools = new Map<string, ModulePools>();
  /** By name, digest and configuration. */
  readonly #runtimes = new Map<string, GuestRuntime>();
  readonly #counts = new Map<string, GuestCounts>();
  /** By name: a module has one limit, however many configurations it has. */
  readonly #lines = new Map<string, LineCount>();
  readonly #bindings = new Set<GuestBinding>();
  #limits: GuestLimits = { memoryBytes: 0, fuelPerCall: 0, logLevel: LogLevel.Info };
  #budget = new GuestMemoryBudget(0);
  #reporting: NodeJS.Timeout | undefined;
  #sweeping: NodeJS.Timeout | undefined;
  /** Rises with each change: what bindings have found before is out of date. */
  generation = 0;

  constructor(options: GuestRegistryOptions) {
    this.#options = options;
  }

  /** Adds a binding: its guest gets an instance as soon as it is registered. */
  open(binding: GuestBinding): void {
    this.#bindings.add(binding);
  }

  /** Removes a binding. Instances that no other binding uses are dropped soon: reloads close many bindings at once. */
  close(binding: GuestBinding): void {
    this.#bindings.delete(binding);
    if (this.#sweeping === undefined)
      this.#sweeping = setTimeout(() => this.#sweep(), SWEEP_MS).unref();
  }

  /** Sets the limits; new ones apply to new instances. */
  configure(limits: GuestLimits): void {
    const { memoryBytes, fuelPerCall, logLevel } = this.#limits;
    const isSame =
      memoryBytes === limits.memoryBytes &&
      fuelPerCall === limits.fuelPerCall &&
      logLevel === limits.logLevel;
    if (isSame) return;
    this.#limits = limits;
    this.#budget = new GuestMemoryBudget(limits.memoryBytes);
    this.#drop(() => true);
  }

  /** Replaces and removes guests. Requests that run keep their instance until they end. */
  change({ set, removed }: GuestChange): void {
    for (const name of removed) this.#versions.delete(name);
    for (const { name, versions } of set) this.#versions.set(name, versions);
    const inUse = new Set<string>();
    for (const [name, versions] of this.#versions)
      for (const { sha256 } of versions) inUse.add(`${name} ${sha256}`);
    this.#drop(({ name, module }) => !inUse.has(`${name} ${module.sha256}`));
    // An idle instance of the previous version would only occupy memory.
    for (const { name, module, instances } of this.#runtimes.values())
      if (this.#versions.get(name)?.[0]?.sha256 !== module.sha256) instances.dropIdle();
    for (const binding of this.#bindings) binding.warm();
  }

  /** The guest that `reference` names with a configuration; undefined if it is not registered. */
  find(reference: string, config: Buffer): GuestRuntime | undefined {
    const { name, digest } = splitGuestReference(reference);
    const module = this.#versions.get(name)?.find(({ sha256 }) => sha256.startsWith(digest));
    if (module === undefined) return undefined;
    const version = `${name} ${module.sha256}`;
    const key = `${version} ${config.toString("latin1")}`;
    const known = this.#runtimes.get(key);
    if (known !== undefined) return known;
    const runtime: GuestRuntime = {
      name,
      module,
      breaker: new GuestBreaker(this.#options.readNowMs),
      counts: this.#findCounts(name),
      instances: new GuestInstances({
        module,
        environment: this.#createEnvironment(name, config),
        pools: this.#findPools(version),
        budget: this.#budget,
      }),
    };
    this.#runtimes.set(key, runtime);
    return runtime;
  }

  /** Counts were added: they are reported soon. */
  noteCall(): void {
    this.#reporting ??= setTimeout(() => this.report(), REPORT_MS);
  }

  /** Reports all counts now. */
  report(): void {
    clearTimeout(this.#reporting);
    this.#reporting = undefined;
    const figures = [...this.#counts.values()].flatMap((counts) => {
      const taken = counts.take(this.#countInstances(counts.name));
      return taken === undefined ? [] : [taken];
    });
    if (figures.length > 0) this.#options.report(figures);
  }

  #countInstances(name: string): number {
    let sum = 0;
    for (const runtime of this.#runtimes.values())
      if (runtime.name === name) sum += runtime.instances.size;
    return sum;
  }

  #sweep(): void {
    this.#sweeping = undefined;
    const used = new Set([...this.#bindings].map((binding) => binding.find()));
    this.#drop((runtime) => !used.has(runtime));
    this.noteCall();
  }

  #drop(isDropped: (runtime: GuestRuntime) => boolean): void {
    for (const [key, runtime] of this.#runtimes) {
      if (!isDropped(runtime)) continue;
      this.#runtimes.delete(key);
      runtime.instances.close();
    }
    for (const named of [this.#counts, this.#lines])
      for (const name of named.keys()) if (!this.#versions.has(name)) named.delete(name);
    const used = new Set(
      [...this.#runtimes.values()].map(({ name, module }) => `${name} ${module.sha256}`),
    );
    for (const version of this.#pools.keys()) if (!used.has(version)) this.#pools.delete(version);
    this.generation++;
  }

  #findPools(version: string): ModulePools {
    const known = this.#pools.get(version) ?? new ModulePools();
    this.#pools.set(version, known);
    return known;
  }

  #findCounts(name: string): GuestCounts {
    const known = this.#counts.get(name) ?? new GuestCounts(name);
    this.#counts.set(name, known);
    return known;
  }

  #findLines(name: string): LineCount {
    const known = this.#lines.get(name) ?? new LineCount();
    this.#lines.set(name, known);
    return known;
  }

  #createEnvironment(name: string, config: Buffer): GuestEnvironment {
    const { fuelPerCall, logLevel } = this.#limits;
    const { log, readNowMs } = this.#options;
    const lines = this.#findLines(name);
    return {
      config,
      fuelPerCall,
      isLogged: (level) => level >= logLevel && level <= LogLevel.Error,
      log: (level, text) => {
        if (level < logLevel) return;
        if (lines.take(Math.floor(readNowMs() / 1_000))) log(nameLevel(level), text, name);
      },
    };
  }
}

/** The lines that a module has logged in a second. */
class LineCount {
  #second = 0;
  #lines = 0;

  /** True if another line may be logged. */
  take(second: number): boolean {
    if (second !== this.#second) {
      this.#second = second;
      this.#lines = 0;
    }
    return ++this.#lines <= LINES_PER_SECOND;
  }
}

function nameLevel(level: number): "debug" | "info" | "warn" | "error" {
  if (level <= LogLevel.Debug) return "debug";
  if (level === LogLevel.Info) return "info";
  return level === LogLevel.Warn ? "warn" : "error";
}
