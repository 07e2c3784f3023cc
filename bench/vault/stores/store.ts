// The interface of the contenders.
import type { Workspace } from "../../harness/case.ts";
import type { Credentials } from "../presign.ts";

/** Options of a store. */
interface StoreSetup {
  port: number;
  cores: string;
  /** An empty folder, removed when the case ends. */
  folder: string;
  workspace: Workspace;
  /** Of our service: a port of the admin API that is known, and settings. */
  adminPort?: number;
  env?: Readonly<Record<string, string>>;
}

/** A store that can be started for a case. */
export interface ObjectStore {
  name: string;
  isOurs: boolean;
  /** True if the store serves the files in its folder and accepts only GET. */
  isStatic?: boolean;
  /** The store's keys, if they cannot be configured. */
  credentials?: Credentials;
  /** The reason why it cannot run, or `undefined`. */
  explainAbsence(): string | undefined;
  readVersion(): string;
  /**
   * Starts it with the keys of `presign.ts`, unless it has fixed ones. Resolves with the ids of its processes when it
   * listens.
   */
  start(setup: StoreSetup): Promise<number[]>;
}
