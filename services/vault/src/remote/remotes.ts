// The registered remotes, by name.
import type { RemoteDocument } from "../model/remote.ts";
import { StoreError } from "../model/store-error.ts";
import { Remote, type RemoteEnvironment } from "./remote.ts";

/** Holds the remotes while the store is open. */
export class Remotes {
  /** The id under which the keys of this store are in remotes; "" before the first remote. */
  storeId = "";
  readonly #environment: RemoteEnvironment;
  readonly #byName = new Map<string, Remote>();

  constructor(environment: Omit<RemoteEnvironment, "storeId">) {
    this.#environment = { ...environment, storeId: () => this.storeId };
  }

  /** Sorted by name. */
  list(): Remote[] {
    return [...this.#byName.values()].sort((a, b) => (a.settings.name < b.settings.name ? -1 : 1));
  }

  find(name: string): Remote | undefined {
    return this.#byName.get(name);
  }

  /** Throws InternalError: an object is in a remote that is not registered any more. */
  require(name: string): Remote {
    const remote = this.#byName.get(name);
    if (remote !== undefined) return remote;
    throw new StoreError("InternalError", `The remote ${name} is not registered: add it again`);
  }

  /** Adds or changes a remote. */
  put(document: RemoteDocument): Remote {
    const known = this.#byName.get(document.name);
    if (known !== undefined) {
      known.replace(document);
      return known;
    }
    const remote = new Remote(document, this.#environment);
    this.#byName.set(document.name, remote);
    return remote;
  }

  remove(name: string): void {
    this.#byName.get(name)?.close();
    this.#byName.delete(name);
  }

  close(): void {
    for (const remote of this.#byName.values()) remote.close();
  }
}
