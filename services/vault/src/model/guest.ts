// Modules and the outputs of guests.

/** A version of a module. */
export interface ModulePin {
  readonly name: string;
  readonly sha256: string;
  readonly versionId: string;
}

/** The mark of an object that guests have written. Clients cannot set it. */
export interface GuestMark {
  /** `name@sha256`, several joined by commas. */
  readonly modules: string;
  /** The trigger that ran them: number of its bucket and its id. */
  readonly trigger?: string;
  /** Triggers in a row since a client has written an object. */
  readonly depth: number;
}

/** Triggers in a row: the output of the last one fires none. */
export const TRIGGER_DEPTH_MAX = 4;

/** The modules as `GuestMark` names them. */
export function nameModules(pins: readonly ModulePin[]): string {
  return pins.map(({ name, sha256 }) => `${name}@${sha256}`).join(",");
}
