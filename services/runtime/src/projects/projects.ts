// The projects of a running platform: one in the working directory of `up`, those that are kept, and those that a terminal has
// joined. Each is a supervised process with a host, credentials and a data folder of its own.
import { existsSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { listDeclared } from "@platform/service/rules";
import { ApiError } from "../client/api-client.ts";
import { removeApplication } from "../client/application.ts";
import type { Target } from "../client/target.ts";
import { choosePorts, leaveDefaultPort } from "../control/ports.ts";
import type { RunningServices } from "../control/running-services.ts";
import type { ScheduleRegistry } from "../control/schedule-registry.ts";
import { findProject, MAIN_FILE, type Project } from "../project/project.ts";
import { formatConsoleUrl } from "../services/console.ts";
import { formatHost, isRunning, type EntryContext, type ServiceEntry } from "../services/entry.ts";
import { PROJECT_KEY } from "../services/project.ts";
import type { SupervisedProcess } from "../supervisor/supervised-process.ts";
import {
  PROTOCOL,
  type GatewayAnswer,
  type GatewayRequest,
  type GatewayVersion,
} from "../watch/messages.ts";
import { createProjectEntry, describeProtocol, formatOrigin, getCredentialsPath } from "./entry.ts";
import { readEnvironmentFile, selectInherited } from "./environment.ts";
import { planRoutes, type GatewayPlan, type PlanOptions } from "./gateway-plan.ts";
import { publishRoutes, withdrawRoute } from "./gateway-route.ts";
import { getProjectData, readRecords, writeRecords, type ProjectRecord } from "./records.ts";
import { forgetOwnVariables, listOwnVariables } from "./own-variables.ts";
import { TAKEN_NAMES } from "./taken-names.ts";

/** Projects of one platform. */
const PROJECTS_MAX = 100;
/** Of the error of a version that could not be started. */
const FAILURE_CHARACTERS_MAX = 8_192;

/** Options of {@link Projects}. */
export interface ProjectsOptions {
  context: EntryContext;
  states: RunningServices;
  schedules: ScheduleRegistry;
  /** Processes of all services by short name, which the projects are added to. */
  processes: Map<string, SupervisedProcess>;
  createPart: (entry: ServiceEntry, context: EntryContext) => SupervisedProcess;
  logger: Logger;
  drainTimeoutMs: number;
}

/** Origin of a variable: the platform, a person in the console, the project's environment file, or the platform's shell. */
export type VariableSource = "platform" | "own" | "file" | "shell";

/** A project to run. */
export interface ProjectRequest {
  /** Absolute path. */
  folder: string;
  kind: "kept" | "joined";
  /** Version of the messages that its platform program speaks. */
  protocol: number;
  /** Absolute path of a file with variables, of a kept project. */
  environmentFile?: string | undefined;
  /** Variables of the terminal that joins. */
  variables?: Readonly<Record<string, string>> | undefined;
}

/** A project that runs. */
export interface HostedProject {
  readonly record: ProjectRecord;
  /** Address for people: its host at the gateway. Once it starts. */
  readonly origin: string;
  /** Settles with notes for the operator when the project has started, and rejects if it cannot. */
  readonly started: Promise<readonly string[]>;
  /** Aborted when it ends, with the reason. */
  readonly ending: AbortSignal;
  /** Its rules at the gateway: each declaration with its place. */
  readonly rules: readonly string[];
  /** Changes of them by the operator's bounds. */
  readonly cuts: readonly string[];
  /** Epoch ms since which requests reach its present version; undefined before the first one. */
  readonly reloadedAtMs: number | undefined;
  /** The error of a newer version that could not be started; empty if there is none. */
  readonly reloadFailure: string;
}

interface Hosted extends HostedProject {
  entry: ServiceEntry;
  context: EntryContext;
  part: SupervisedProcess | undefined;
  origin: string;
  started: Promise<readonly string[]>;
  readonly end: AbortController;
  ended: Promise<void> | undefined;
  rules: readonly string[];
  cuts: readonly string[];
  reloadedAtMs: number | undefined;
  reloadFailure: string;
  /** Notes about its routes at the gateway. */
  routeNotes: readonly string[];
  /** The version that requests are sent to; undefined until there is one. */
  version: GatewayVersion | undefined;
  /** One change at the gateway at a time. */
  changes: Promise<unknown>;
}

/** The projects of a platform, by name. */
export class Projects {
  readonly #options: ProjectsOptions;
  readonly #hosted = new Map<string, Hosted>();
  /** Kept projects that cannot run: another one has their name. */
  #shadowed: readonly ProjectRecord[] = [];
  /** Projects that a killed platform left in the gateway. */
  #stale: readonly string[];
  readonly #former: readonly ProjectRecord[];
  readonly #isOpen = Promise.withResolvers<void>();
  #hasOpened = false;
  /** One search for a free port at a time. */
  #ports: Promise<unknown> = Promise.resolve();

  constructor(options: ProjectsOptions) {
    this.#options = options;
    this.#former = readRecords(options.context.dataDir);
    this.#stale = this.#former.map(({ name }) => name);
  }

  /** The projects in the order in which they came. */
  list(): readonly HostedProject[] {
    return [...this.#hosted.values()];
  }

  /** Adds the project in the working directory, which the platform starts and stops itself. */
  adopt(entry: ServiceEntry, part: SupervisedProcess): void {
    const { context } = this.#options;
    const { name } = entry;
    const folder = realpathSync(entry.project!.folder);
    const kept = this.#former.find((one) => one.name === name && one.kind === "kept");
    const isKept = kept !== undefined && isSameFolder(kept.folder, folder);
    if (kept !== undefined && !isKept) this.#shadowed = [kept];
    const record: ProjectRecord = isKept ? kept : { name, folder, kind: "own" };
    this.#hosted.set(name, {
      ...createHosted(record, entry, context),
      part,
      origin: formatOrigin({ name }, context),
    });
  }

  /** Starts the kept projects, when the services of the platform run. Returns notes for the operator. */
  open(): string[] {
    this.#hasOpened = true;
    this.#isOpen.resolve();
    const notes = this.#shadowed.map(
      ({ name, folder }) =>
        `the kept project ${name} in ${folder} does not start: the project in this folder has its name`,
    );
    const kept = this.#former.filter(
      (record) =>
        record.kind === "kept" &&
        !this.#hosted.has(record.name) &&
        !this.#shadowed.includes(record),
    );
    for (const record of kept) {
      const project = { name: record.name, file: join(record.folder, MAIN_FILE) };
      const hosted = this.#host(project, record, undefined);
      hosted.started.catch((error: unknown) => this.#noteFailure(hosted, error));
    }
    this.#save();
    if (kept.length > 0) {
      notes.push(`kept projects start: ${kept.map(({ name }) => name).join(", ")}`);
    }
    return notes;
  }

  /**
   * Starts a project; `started` of the result has the outcome. One that was joined and cannot start is removed. Throws 409
   * if a project of this name runs, and 400 if the folder has no project, or its name or version cannot be used.
   */
  async add(request: ProjectRequest): Promise<HostedProject> {
    const { folder, kind, environmentFile } = request;
    const project = this.#check(request);
    for (let known = this.#hosted.get(project.name); known !== undefined;) {
      if (known.ended === undefined) throw explainTaken(known.record);
      await known.ended;
      known = this.#hosted.get(project.name);
    }
    if (this.#hosted.size >= PROJECTS_MAX) {
      throw new PlatformError("conflict", `A platform runs at most ${PROJECTS_MAX} projects.`);
    }
    const former = this.#former.find(({ name }) => name === project.name);
    const record: ProjectRecord = {
      name: project.name,
      folder,
      kind,
      ...(former?.port === undefined ? {} : { port: former.port }),
      ...(environmentFile === undefined ? {} : { environment_file: environmentFile }),
    };
    const hosted = this.#host(project, record, request.variables);
    this.#save();
    hosted.started.catch((error: unknown) => {
      this.#noteFailure(hosted, error);
      void this.#end(hosted, describe(error));
    });
    return hosted;
  }

  /** The project of a folder, if it runs: for a terminal that only shows its log. */
  findByFolder(folder: string): HostedProject | undefined {
    return this.list().find(
      ({ record, ending }) => !ending.aborted && isSameFolder(record.folder, folder),
    );
  }

  /** Stops a project that a terminal has joined, when the terminal leaves. */
  async leave(project: HostedProject): Promise<void> {
    const hosted = this.#hosted.get(project.record.name);
    // It may have been removed, and another one added.
    if (hosted === project) await this.#end(hosted, "its terminal has left");
  }

  /**
   * Stops a project and forgets it, revokes its credentials, and deletes its databases with `dataToo`. Throws 404 if there is
   * none, and 409 for the one in the platform's working directory.
   */
  async remove(name: string, { dataToo }: { dataToo: boolean }): Promise<void> {
    const hosted = this.#find(name);
    const { context } = this.#options;
    if (hosted.entry.project?.kind === "own") {
      throw new PlatformError(
        "conflict",
        `${name} is in the folder in which the platform was started, and ends with the platform.`,
      );
    }
    await this.#end(hosted, "it was removed");
    if (isRunning("auth", context)) {
      await removeApplication(this.#target(), name).catch((error: unknown) => {
        throw new PlatformError(
          "unavailable",
          `${name} has ended, but its credentials are still valid (${describe(error)}): platform app remove ${name} revokes them`,
          { cause: error },
        );
      });
    }
    rmSync(getCredentialsPath(context, name), { force: true });
    if (!dataToo) return;
    rmSync(getProjectData(context.dataDir, name), { recursive: true, force: true });
    forgetOwnVariables(context.dataDir, name);
  }

  /** Places of a project's data: its folders, and the address of its database. Throws 404 if there is none. */
  locateData(name: string): { folder: string; dataFolder: string; url: string | undefined } {
    const { entry, record, context } = this.#find(name);
    const { inherited } = entry.configure(context);
    return {
      folder: record.folder,
      dataFolder: getProjectData(context.dataDir, name),
      url: inherited?.["DATABASE_URL"],
    };
  }

  /** Names of the variables of a project's process, with who sets each. Throws 404 if there is no such project. */
  listVariables(name: string): { name: string; source: VariableSource }[] {
    const { entry, record, context } = this.#find(name);
    const { inherited, env } = entry.configure(context);
    const own = listOwnVariables(context.dataDir, name).map((one) => one.name);
    const file = record.environment_file;
    const ofFile = file === undefined ? {} : readEnvironmentFile(file);
    const sourceOf = (variable: string): VariableSource => {
      if (Object.hasOwn(env, variable)) return "platform";
      if (own.includes(variable)) return "own";
      return Object.hasOwn(ofFile, variable) ? "file" : "shell";
    };
    const names = new Set([...Object.keys(env), ...Object.keys(inherited ?? {}), ...own]);
    return [...names].toSorted().map((variable) => ({
      name: variable,
      source: sourceOf(variable),
    }));
  }

  /** Sets the routes of all projects again, and removes those of projects that do not run; when the gateway has started. */
  async publish(): Promise<void> {
    const { context, logger } = this.#options;
    const stale = this.#stale.filter((name) => !this.#hosted.has(name));
    this.#stale = [];
    try {
      for (const name of stale) await withdrawRoute(this.#target(), name);
      for (const hosted of this.#hosted.values()) {
        if (hosted.ended !== undefined) continue;
        await this.#queue(hosted, () => this.#publishAgain(hosted));
      }
    } catch (error) {
      this.#stale = stale;
      if (isRunning("gate", context)) logger.warn("cannot set the routes of projects", { error });
    }
  }

  /** Notes that the newest version of a project serves, or the error that keeps it from starting. */
  noteOutcome(name: string, failure: string | null): void {
    const hosted = this.#hosted.get(name);
    if (hosted === undefined) return;
    hosted.reloadFailure = (failure ?? "").slice(0, FAILURE_CHARACTERS_MAX);
    if (failure === null) hosted.reloadedAtMs = Date.now();
  }

  /**
   * Answers a project that asks whether its rules are accepted, or that has a version ready: then target and rules are
   * replaced in one change of the gateway.
   */
  async answerGateway(
    name: string,
    { id, rules, version }: GatewayRequest,
  ): Promise<GatewayAnswer & { protocol: number }> {
    const base = { type: "gateway_answer", id, hasGateway: true, protocol: PROTOCOL } as const;
    const hosted = this.#hosted.get(name);
    if (hosted === undefined || !isRunning("gate", this.#options.context)) {
      return { ...base, hasGateway: false };
    }
    try {
      if (version === undefined) await this.#plan(hosted, { rules, secret: "" });
      else await this.#queue(hosted, () => this.#publishVersion(hosted, version));
      return base;
    } catch (error) {
      return { ...base, refused: describe(error) };
    }
  }

  #queue(hosted: Hosted, work: () => Promise<void>): Promise<void> {
    const done = hosted.changes.then(work);
    hosted.changes = done.catch(() => undefined);
    return done;
  }

  #plan({ record: { name } }: Hosted, version: PlanOptions["version"]): Promise<GatewayPlan> {
    const { context } = this.#options;
    return planRoutes({ name, host: formatHost(name, context), dataDir: context.dataDir, version });
  }

  async #publishVersion(hosted: Hosted, version: GatewayVersion): Promise<void> {
    const { states, logger } = this.#options;
    const { name } = hosted.record;
    const { routes, cuts } = await this.#plan(hosted, version);
    if (hosted.ended !== undefined) throw new Error(`${name} is being stopped`);
    const gate = states.state.services.find((service) => service.name === "gate");
    // It is told when it has started: until then it has no requests for this version, nor for one that has ended.
    const isUp = gate?.state === "running";
    const published = { name, port: version.port, routes };
    const notes = isUp
      ? await publishRoutes(this.#target(), hosted.context, published).catch((error: unknown) => {
          // Without an answer, the gateway may have accepted it.
          if (!(error instanceof ApiError) && hosted.version !== version) this.#restore(hosted);
          throw error;
        })
      : [];
    Object.assign(hosted, {
      version,
      cuts,
      reloadedAtMs: Date.now(),
      rules: version.rules === null ? [] : listDeclared(version.rules),
      routeNotes: notes,
    });
    for (const note of [...notes, ...cuts]) logger.warn(note, { part: name });
  }

  #restore(hosted: Hosted): void {
    this.#queue(hosted, () => this.#publishAgain(hosted)).catch((error: unknown) => {
      const { name } = hosted.record;
      this.#options.logger.warn("the gateway does not answer", { part: name, error });
    });
  }

  // Requests of a version must not be sent to a port that another program may have by now.
  async #publishAgain(hosted: Hosted): Promise<void> {
    const { version, record } = hosted;
    const { name } = record;
    try {
      if (version === undefined) await withdrawRoute(this.#target(), name);
      else await this.#publishVersion(hosted, version);
    } catch (error) {
      this.#options.logger.error("the gateway has no route to a project", { part: name, error });
      await withdrawRoute(this.#target(), name);
    }
  }

  /** Starts a project again, also one that could not be started. Throws 404 if there is none; `control` restarts processes. */
  restart(name: string, control: (name: string) => void): void {
    const hosted = this.#find(name);
    if (hosted.part !== undefined) {
      control(name);
      return;
    }
    this.#options.states.setRequested(name, "starting");
    hosted.started = this.#start(hosted);
    hosted.started.catch((error: unknown) => this.#noteFailure(hosted, error));
  }

  /**
   * True if databases of an earlier version in the data folder can only be those of this project. Earlier versions ran only
   * the project of the platform's working directory.
   */
  ownsFormerData({ name, kind }: ProjectRecord): boolean {
    const folder = join(this.#options.context.dataDir, "applications");
    const files = existsSync(folder) ? readdirSync(folder) : [];
    const known = files.filter((file) => file.endsWith(".env")).map((file) => file.slice(0, -4));
    const names = [...known, ...this.#former.map((one) => one.name)];
    return names.every((one) => one === name) && (kind === "own" || known.includes(name));
  }

  /** Ends the terminals of joined projects: the platform stops. */
  end(): void {
    this.#isOpen.resolve();
    for (const { end } of this.#hosted.values()) end.abort("the platform has stopped");
  }

  /** Stops the processes of all projects but the one that the platform stops itself. */
  async stop(timeoutMs: number): Promise<void> {
    const parts = [...this.#hosted.values()].filter(({ entry }) => entry.project?.kind !== "own");
    await Promise.all(
      parts.map(async (hosted) => {
        await hosted.part?.stop(timeoutMs);
        await hosted.started.catch(() => undefined);
      }),
    );
  }

  #find(name: string): Hosted {
    const hosted = this.#hosted.get(name);
    if (hosted !== undefined) return hosted;
    throw new PlatformError("not_found", `The platform runs no project ${name}.`);
  }

  #check({ folder, protocol }: ProjectRequest): Project {
    if (protocol !== PROTOCOL) {
      throw new PlatformError("conflict", `${folder}: ${describeProtocol(protocol, folder)}`);
    }
    const { context } = this.#options;
    let project: Project | undefined;
    try {
      project = findProject(folder, TAKEN_NAMES);
    } catch (error) {
      throw new PlatformError("validation_failed", (error as Error).message, { cause: error });
    }
    if (project === undefined) {
      throw new PlatformError(
        "validation_failed",
        `${folder} has no project: it needs ${MAIN_FILE} and package.json, as platform init writes them`,
      );
    }
    if (formatHost(project.name, context) === new URL(formatConsoleUrl(context)).hostname) {
      throw new PlatformError(
        "validation_failed",
        `${project.name}: its host would be that of the console, whose users its pages could act for; choose another name`,
      );
    }
    return project;
  }

  #host(
    project: Project,
    record: ProjectRecord,
    variables: Readonly<Record<string, string>> | undefined,
  ): Hosted {
    const { states } = this.#options;
    const entry = createProjectEntry(project, {
      kind: record.kind,
      readState: () => states.state,
      inherit: this.#createInherit(record, variables),
      ownsFormerData: () => this.ownsFormerData(record),
    });
    const hosted = createHosted(record, entry, this.#options.context);
    this.#hosted.set(project.name, hosted);
    states.add(entry);
    hosted.started = this.#start(hosted);
    return hosted;
  }

  // Called before each start, also by timers: a file that cannot be read any more must not end the platform.
  #createInherit(
    { name, environment_file: file }: ProjectRecord,
    variables: Readonly<Record<string, string | undefined>> = process.env,
  ): () => Record<string, string> {
    let read: ReturnType<typeof readEnvironmentFile> = {};
    return () => {
      try {
        if (file !== undefined) read = readEnvironmentFile(file);
      } catch (error) {
        const effect = "the variables of its last start are used";
        this.#options.logger.error("cannot read the environment", { part: name, error, effect });
      }
      return selectInherited({ ...variables, ...read }, process.env);
    };
  }

  async #start(hosted: Hosted): Promise<readonly string[]> {
    const { createPart, processes } = this.#options;
    const { entry, record, end } = hosted;
    await this.#isOpen.promise;
    end.signal.throwIfAborted();
    hosted.context = await this.#choosePlace(hosted);
    hosted.origin = formatOrigin(record, hosted.context);
    this.#save();
    // Read before the first start, so that its error reaches the one who adds the project.
    if (record.environment_file !== undefined) readEnvironmentFile(record.environment_file);
    const notes = await entry.prepare!(hosted.context);
    end.signal.throwIfAborted();
    const part = createPart(entry, hosted.context);
    hosted.part = part;
    processes.set(record.name, part);
    await part.start();
    return [...notes, ...hosted.routeNotes, ...hosted.cuts];
  }

  /** The port of its last run if it is free, otherwise another one. */
  #choosePlace({ record, entry }: Hosted): Promise<EntryContext> {
    const { context } = this.#options;
    const chosen = this.#ports.then(async () => {
      const others = this.list().filter((one) => one.record !== record);
      const taken = [
        ...[...context.addresses.values()].map(({ port }) => port),
        ...others.flatMap((one) => one.record.port ?? []),
      ];
      const last = record.port ?? 0;
      const address = { host: "127.0.0.1", port: taken.includes(last) ? 0 : last };
      const addresses = new Map([...context.addresses, [PROJECT_KEY, address] as const]);
      await leaveDefaultPort({ key: PROJECT_KEY, default: formatAddress(address) }, addresses);
      await choosePorts([entry], addresses, taken);
      record.port = addresses.get(PROJECT_KEY)!.port;
      return { ...context, addresses, running: [...context.running, entry] };
    });
    this.#ports = chosen.catch(() => undefined);
    return chosen;
  }

  #end(hosted: Hosted, reason: string): Promise<void> {
    hosted.end.abort(reason);
    hosted.ended ??= this.#finish(hosted);
    return hosted.ended;
  }

  async #finish(hosted: Hosted): Promise<void> {
    const { states, schedules, processes, drainTimeoutMs, logger } = this.#options;
    const { name } = hosted.record;
    await hosted.part?.stop(drainTimeoutMs);
    // It may be between two steps of its start: none of them begins a process now.
    await hosted.started.catch(() => undefined);
    if (isRunning("gate", hosted.context)) {
      await this.#queue(hosted, () => withdrawRoute(this.#target(), name)).catch(
        (error: unknown) => {
          this.#stale = [...this.#stale, name];
          logger.warn("cannot remove the route of a project", { part: name, error });
        },
      );
    }
    processes.delete(name);
    schedules.remove(name);
    states.remove(name);
    this.#hosted.delete(name);
    this.#save();
  }

  // The others continue, and a kept one can be restarted.
  #noteFailure({ record, end }: Hosted, error: unknown): void {
    if (end.signal.aborted) return;
    const { states, logger } = this.#options;
    const reason = describe(error);
    logger.error("a project does not start", { part: record.name, reason });
    states.setRefused(record.name, reason);
  }

  #target(): Target {
    const { dataDir, credentials } = this.#options.context;
    const { state } = this.#options.states;
    return { dataDir, state, credentials: new Map(Object.entries(credentials)) };
  }

  // A full disk must not end what runs: after the next start, kept projects may be missing.
  #save(): void {
    const { context, logger } = this.#options;
    // Until then, the file has kept projects that are not among the running ones.
    if (!this.#hasOpened) return;
    try {
      const running = this.list().map(({ record }) => record);
      writeRecords(context.dataDir, [...running, ...this.#shadowed]);
    } catch (error) {
      logger.warn("cannot write the list of projects", { error });
    }
  }
}

function createHosted(record: ProjectRecord, entry: ServiceEntry, context: EntryContext): Hosted {
  const end = new AbortController();
  const started = Promise.resolve([]);
  const common = { record, entry, context, end, ending: end.signal, started };
  const gateway = {
    rules: [],
    cuts: [],
    routeNotes: [],
    version: undefined,
    reloadedAtMs: undefined,
    reloadFailure: "",
  };
  const changes = Promise.resolve();
  return { ...common, ...gateway, changes, part: undefined, origin: "", ended: undefined };
}

function explainTaken({ name, folder, kind }: ProjectRecord): PlatformError {
  const reason =
    kind === "joined"
      ? "another terminal has joined with it, and it ends with that one"
      : "it runs with the platform";
  const both = "Another name in package.json lets both run.";
  return new PlatformError(
    "conflict",
    `There is a project ${name} already, in ${folder}: ${reason}. ${both}`,
  );
}

function isSameFolder(one: string, other: string): boolean {
  return resolveLinks(one) === resolveLinks(other);
}

function resolveLinks(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    // It was deleted, or is not mounted.
    return folder;
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
