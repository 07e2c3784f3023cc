// What a contender of the object store's cases has to be able to do.
import type { Workspace } from "../../harness/case.ts";
import type { Credentials } from "../presign.ts";

/** How a case wants a store set up. */
export interface StoreSetup {
  port: number;
  cores: string;
  /** Exists, empty, and is removed when the case ends. */
  folder: string;
  workspace: Workspace;
}

/** A store that is started for a case. */
export interface ObjectStore {
  name: string;
  isOurs: boolean;
  /** It serves files that lie in its folder, and takes no requests but GET. */
  isStatic?: boolean;
  /** Keys that it cannot be told, where it has its own. */
  credentials?: Credentials;
  /** Why it cannot take part, or undefined. */
  explainAbsence(): string | undefined;
  readVersion(): string;
  /** Starts it with the keys of `presign.ts`, where it takes any; resolves with the ids of its processes when it listens. */
  start(setup: StoreSetup): Promise<number[]>;
}
