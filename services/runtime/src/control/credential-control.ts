// The credentials of a running platform: the programs that have them, and their replacement.
import type { Logger } from "@platform/kernel/log";
import { LiveSecrets } from "@platform/kernel/secrets";
import { systemClock } from "@platform/kernel/time";
import type { CredentialStore } from "../credentials/credential-store.ts";
import { CREDENTIALS, listHeld } from "../services/credential-table.ts";
import type { EntryContext, ServiceEntry } from "../services/entry.ts";
import type { SupervisedProcess } from "../supervisor/supervised-process.ts";
import { CredentialRotation, type Holder, type RotationReport } from "./credential-rotation.ts";
import { SecretBroadcast } from "./secret-broadcast.ts";

/** Options of {@link CredentialControl}. */
export interface CredentialControlOptions {
  store: CredentialStore;
  context: EntryContext;
  /** Processes of services and projects, by short name. */
  processes: ReadonlyMap<string, SupervisedProcess>;
  logger: Logger;
}

/** Replaces credentials on request. */
export class CredentialControl {
  readonly broadcast = new SecretBroadcast();
  /** The secrets of the platform's own API. */
  readonly own: LiveSecrets;
  readonly #options: CredentialControlOptions;
  readonly #entries = new Map<string, ServiceEntry>();
  readonly #rotation: CredentialRotation;
  #onChanged: () => void = () => undefined;

  constructor(options: CredentialControlOptions) {
    const { store, logger } = options;
    this.#options = options;
    this.own = new LiveSecrets(store.describeAll(CREDENTIALS.map(({ name }) => name)));
    this.#rotation = new CredentialRotation({
      store,
      broadcast: this.broadcast,
      listHolders: (name) => this.#listHolders(name),
      own: this.own,
      onCommitted: (name, value) => this.#present(name, value),
      logger,
      now: () => systemClock.now(),
    });
  }

  /** Adds a service or a project that is started. */
  add(entry: ServiceEntry): void {
    this.#entries.set(entry.name, entry);
  }

  /** Calls `listener` when a value has changed, to update other files. */
  onChanged(listener: () => void): void {
    this.#onChanged = listener;
  }

  /** As {@link CredentialRotation.rotate}. */
  rotate(name: string, overlapMs: number, actor: string): Promise<RotationReport> {
    return this.#rotation.rotate(name, overlapMs, actor);
  }

  /** Removes values that have ended from the file. */
  sweep(): void {
    this.#options.store.sweep();
  }

  #listHolders(name: string): Holder[] {
    const { processes } = this.#options;
    return [...this.#entries.values()].flatMap((entry) => {
      const process = processes.get(entry.name);
      if (process === undefined || !listHeld(entry).includes(name)) return [];
      const { label, project } = entry;
      return [{ name: entry.name, label, process, isProject: project !== undefined }];
    });
  }

  // Files that contain the value are written again; a service that starts reads them.
  async #present(name: string, value: string): Promise<void> {
    const { context } = this.#options;
    Object.assign(context.credentials, { [name]: value });
    for (const entry of context.running) {
      if (entry.credentials.includes(name)) await entry.prepare?.(context);
    }
    this.#onChanged();
  }
}
