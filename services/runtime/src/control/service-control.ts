// Starts, stops and restarts services of a running platform on request.
import { PlatformError } from "@platform/kernel/errors";
import type { ServiceState } from "../data-folder/running-file.ts";
import type { SupervisedProcess } from "../supervisor/supervised-process.ts";
import type { RunningServices } from "./running-services.ts";

/** Options of {@link ServiceControl}. */
export interface ServiceControlOptions {
  /** Processes by short name. */
  processes: ReadonlyMap<string, SupervisedProcess>;
  states: RunningServices;
  drainTimeoutMs: number;
  /** Called when a service has been stopped. */
  onStopped: (name: string) => void;
}

/** Operations on services. Each returns when it has begun; `RunningServices` has the outcome. */
export class ServiceControl {
  readonly #options: ServiceControlOptions;

  constructor(options: ServiceControlOptions) {
    this.#options = options;
  }

  /** Starts a stopped service. Throws 404 for an unknown one, 409 in any other state. */
  start(name: string): void {
    const { process } = this.#find(name, ["stopped"]);
    this.#launch(name, process);
  }

  /** Stops a service, which drains. It stays stopped until it is started, or the platform is. */
  stop(name: string): void {
    const { process } = this.#find(name, ["running", "restarting"]);
    void this.#end(name, process);
  }

  /** Stops a service and starts it again; starts a stopped one. */
  restart(name: string): void {
    const { process, state } = this.#find(name, ["running", "restarting", "stopped"]);
    if (state === "stopped") this.#launch(name, process);
    else void this.#end(name, process).then(() => this.#launch(name, process));
  }

  #find(name: string, allowed: readonly ServiceState["state"][]) {
    const { processes, states } = this.#options;
    const process = processes.get(name);
    const service = states.state.services.find((one) => one.name === name);
    if (process === undefined || service === undefined) {
      throw new PlatformError("not_found", "The platform runs no service of this name.");
    }
    const { state, label } = service;
    if (!allowed.includes(state)) {
      throw new PlatformError("conflict", `${label} is ${state}.`);
    }
    return { process, state };
  }

  async #end(name: string, process: SupervisedProcess): Promise<void> {
    const { states, drainTimeoutMs, onStopped } = this.#options;
    states.setRequested(name, "stopping");
    await process.stop(drainTimeoutMs);
    states.setRequested(name, "stopped");
    onStopped(name);
  }

  #launch(name: string, process: SupervisedProcess): void {
    this.#options.states.setRequested(name, "starting");
    // A failure is recorded as the service's state, and the supervisor starts it again.
    process.start().catch(() => undefined);
  }
}
