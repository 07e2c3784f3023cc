// The state of the services of this `up`, kept in a file for the other commands.
import type { ListenerReport } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import {
  removeRunning,
  writeRunning,
  type RunningState,
  type ServiceState,
} from "../data-folder/running-file.ts";
import {
  findMainListener,
  findReport,
  formatListenerUrl,
  type ServiceEntry,
} from "../services/entry.ts";
import type { Failure } from "../supervisor/supervised-process.ts";

/** States by service. */
export class RunningServices {
  readonly #folder: string;
  readonly #logger: Logger;
  readonly #onChange: (state: RunningState) => void;
  readonly #state: RunningState;

  constructor(options: {
    folder: string;
    version: string;
    entries: readonly ServiceEntry[];
    /** Address of the platform's own API. */
    apiUrl: string;
    logger: Logger;
    /** Called after each change, to update other files. */
    onChange: (state: RunningState) => void;
  }) {
    this.#folder = options.folder;
    this.#onChange = options.onChange;
    this.#logger = options.logger;
    this.#state = {
      pid: process.pid,
      version: options.version,
      started_at: new Date().toISOString(),
      api_url: options.apiUrl,
      services: options.entries.map(describeStart),
    };
    this.#write();
  }

  /** States of all services. */
  get state(): RunningState {
    return this.#state;
  }

  /** Adds a service that starts. */
  add(entry: ServiceEntry): void {
    this.#state.services = [...this.#state.services, describeStart(entry)];
    this.#write();
  }

  /** Removes a service. */
  remove(name: string): void {
    this.#state.services = this.#state.services.filter((service) => service.name !== name);
    this.#write();
  }

  /** Records that a service is ready. */
  setReady(
    entry: ServiceEntry,
    listeners: readonly ListenerReport[],
    pid: number,
    publicUrl: string,
  ): void {
    const main = findMainListener(entry, listeners);
    const { probes } = entry;
    const probed = probes === undefined ? undefined : findReport(listeners, probes);
    this.#change(entry.name, {
      state: "running",
      pid,
      url: main === undefined ? "" : formatListenerUrl(main),
      public_url: publicUrl,
      listeners: [...listeners],
      started_at: new Date().toISOString(),
      ...(probed === undefined ? {} : { probe_url: formatListenerUrl(probed) }),
    });
  }

  /** Records an unexpected exit. */
  setFailed(entry: ServiceEntry, { reason }: Failure): void {
    const before = this.#state.services.find(({ name }) => name === entry.name);
    this.#change(entry.name, {
      state: "restarting",
      pid: undefined,
      restarts: (before?.restarts ?? 0) + 1,
      last_failure: reason,
    });
  }

  /** Records that a service starts or stops on request. */
  setRequested(name: string, state: "starting" | "stopping" | "stopped"): void {
    this.#change(name, state === "stopped" ? { state, pid: undefined, url: "" } : { state });
  }

  /** Records that a service has ended, and why it is not started again. */
  setRefused(name: string, reason: string): void {
    this.#change(name, { state: "stopped", pid: undefined, url: "", last_failure: reason });
  }

  /** Removes the file. */
  close(): void {
    removeRunning(this.#folder);
  }

  #change(name: string, changes: Partial<ServiceState>): void {
    this.#state.services = this.#state.services.map((service) =>
      service.name === name ? { ...service, ...changes } : service,
    );
    this.#write();
  }

  // A full disk must not stop the supervisor; `status` is out of date meanwhile.
  #write(): void {
    try {
      writeRunning(this.#folder, this.#state);
      this.#onChange(this.#state);
    } catch (error) {
      this.#logger.warn("cannot write the state for platform status", { error });
    }
  }
}

function describeStart({ name, label, project }: ServiceEntry): ServiceState {
  return {
    name,
    label,
    state: "starting",
    url: "",
    listeners: [],
    restarts: 0,
    ...(project === undefined ? {} : { project }),
  };
}
