// Callers: users of the file, tokens, and programs on this machine.
import type { Service } from "@platform/chassis";
import type { TokenVerifier } from "@platform/kernel/identity";
import type { PulseConfig } from "../config.ts";
import { readUsersFile, type User } from "../user/users-file.ts";
import { completeVerifier, hasCredentials } from "../user/verifier.ts";

/** The parts. */
export interface Callers {
  readonly users: readonly User[];
  /** Undefined if no credentials are configured. */
  readonly verifier: TokenVerifier | undefined;
  /** Clients that are admitted without credentials: nobody if any are configured. */
  readonly anonymous: PulseConfig["anonymous"];
}

/** Reads the file of users. Throws if it is invalid. */
export function openCallers(config: PulseConfig, { verifier, log }: Service): Callers {
  return {
    users: config.users_file === undefined ? [] : readUsersFile(config.users_file),
    verifier: completeVerifier(config, verifier, log),
    anonymous: hasCredentials(config) ? "never" : config.anonymous,
  };
}
