// Secrets that the supervisor of a program replaces while it runs: tokens that it accepts, and those that it presents.
import { hash, timingSafeEqual } from "node:crypto";

/** Environment variable of a supervised process: its secrets that have several accepted values, as JSON. */
export const ACCEPTED_VARIABLE = "PLATFORM_ACCEPTED_SECRETS";

/** A secret as its supervisor describes it. */
export interface SecretState {
  /** Its name in `credentials.env`. */
  name: string;
  /** The value to present to others. */
  value: string;
  /** All values to accept, also `value`. `ends_at` is in ms since 1970; without it, the value has no end. */
  accepted: readonly { value: string; ends_at?: number | undefined }[];
}

/** A secret of a running program. */
export interface LiveSecret {
  /** The value to present to others. */
  readonly value: string;
  /** The values that are accepted now, `value` first. */
  list(): readonly string[];
  /** True if a value is accepted now; compares in constant time. */
  accepts(given: string): boolean;
  /** As `accepts`, by the SHA-256 digest. */
  acceptsDigest(digest: Uint8Array): boolean;
  /** The values that are accepted, with their ends in ms since 1970. */
  describe(): SecretState["accepted"];
  /** Calls `listener` after each replacement, which has succeeded when all listeners have. */
  onReplaced(listener: () => void | Promise<void>): void;
}

/** A secret as a part of a program takes it: text is one that is never replaced. */
export type Secret = string | LiveSecret;

/** Returns a secret that can be asked; one that is never replaced for text. */
export function toLiveSecret(secret: Secret): LiveSecret {
  return typeof secret === "string" ? new FollowedSecret(secret, Date.now) : secret;
}

/** Configuration keys of secrets that all services share. */
interface SharedConfig {
  metrics_token?: string | undefined;
  backup_token?: string | undefined;
  revocations_token?: string | undefined;
}

/** Names of the shared secrets in `credentials.env`. */
const SHARED_NAMES = {
  metrics_token: "PLATFORM_METRICS_TOKEN",
  backup_token: "PLATFORM_BACKUP_TOKEN",
  revocations_token: "PLATFORM_REVOCATIONS_TOKEN",
} as const;

/** The shared secrets of a configuration. */
export type SharedSecrets = { [Key in keyof SharedConfig]?: LiveSecret | undefined };

/** Follows those of the shared secrets that a configuration has. */
export function followShared(
  config: SharedConfig,
  follow: (name: string, value: string) => LiveSecret,
): SharedSecrets {
  const keys = Object.keys(SHARED_NAMES) as (keyof SharedConfig)[];
  return Object.fromEntries(
    keys.flatMap((key) => {
      const value = config[key];
      return value === undefined ? [] : [[key, follow(SHARED_NAMES[key], value)]];
    }),
  );
}

/** The secrets of a process. */
export class LiveSecrets {
  readonly #states = new Map<string, SecretState>();
  readonly #followed = new Map<string, FollowedSecret[]>();
  readonly #now: () => number;

  /** `now` returns ms since 1970. */
  constructor(states: readonly SecretState[], now: () => number = Date.now) {
    this.#now = now;
    for (const state of states) this.#states.set(state.name, state);
  }

  /**
   * Follows a secret that has this value now. One whose value the supervisor does not know, such as a setting of the operator
   * that takes its place, is never replaced.
   */
  follow(name: string, value: string): LiveSecret {
    const secret = new FollowedSecret(value, this.#now);
    const state = this.#states.get(name);
    if (state !== undefined) secret.adopt(state);
    this.#followed.set(name, [...(this.#followed.get(name) ?? []), secret]);
    return secret;
  }

  /** Replaces secrets; resolves when all parts of the program use the new values. Rejects if one cannot. */
  async replace(states: readonly SecretState[]): Promise<void> {
    for (const state of states) {
      this.#states.set(state.name, state);
      for (const secret of this.#followed.get(state.name) ?? []) {
        if (secret.adopt(state)) await secret.report();
      }
    }
  }
}

/** Reads the states in the environment of a supervised process; empty without any, or if they are not readable. */
export function readSecretStates(
  env: Readonly<Record<string, string | undefined>>,
): readonly SecretState[] {
  try {
    const states = JSON.parse(env[ACCEPTED_VARIABLE] || "[]") as unknown;
    return isSecretStates(states) ? states : [];
  } catch {
    return [];
  }
}

/**
 * Replaces the values in an environment: a configuration that is read from it again, and programs that are started with it,
 * have the present ones.
 */
export function replaceInEnvironment(
  env: Record<string, string | undefined>,
  states: readonly SecretState[],
): void {
  for (const { value, accepted } of states) {
    for (const [name, present] of Object.entries(env)) {
      if (accepted.some((one) => one.value === present)) env[name] = value;
    }
  }
}

/** True if a value of another process is a list of states. */
export function isSecretStates(value: unknown): value is readonly SecretState[] {
  return Array.isArray(value) && value.every(isState);
}

function isState(value: unknown): value is SecretState {
  if (typeof value !== "object" || value === null) return false;
  const { name, value: own, accepted } = value as Partial<SecretState>;
  return typeof name === "string" && typeof own === "string" && Array.isArray(accepted);
}

interface AcceptedValue {
  value: string;
  digest: Buffer;
  endsAt: number;
}

class FollowedSecret implements LiveSecret {
  #value: string;
  #accepted: readonly AcceptedValue[];
  readonly #now: () => number;
  readonly #listeners: (() => void | Promise<void>)[] = [];

  constructor(value: string, now: () => number) {
    this.#value = value;
    this.#accepted = [describe({ value })];
    this.#now = now;
  }

  get value(): string {
    return this.#value;
  }

  list(): readonly string[] {
    const others = this.#accepted.filter(
      ({ value, endsAt }) => value !== this.#value && this.#now() < endsAt,
    );
    return [this.#value, ...others.map(({ value }) => value)];
  }

  accepts(given: string): boolean {
    return this.acceptsDigest(hash("sha256", given, "buffer"));
  }

  // All are compared, so that the time does not depend on which one matches.
  acceptsDigest(digest: Uint8Array): boolean {
    const now = this.#now();
    let isFound = false;
    for (const known of this.#accepted) {
      isFound = (timingSafeEqual(known.digest, digest) && now < known.endsAt) || isFound;
    }
    return isFound;
  }

  describe(): SecretState["accepted"] {
    return this.#accepted.map(({ value, endsAt }) =>
      endsAt === Infinity ? { value } : { value, ends_at: endsAt },
    );
  }

  onReplaced(listener: () => void | Promise<void>): void {
    this.#listeners.push(listener);
  }

  /** False, and nothing changes, if the state is that of another secret. */
  adopt({ value, accepted }: SecretState): boolean {
    if (!accepted.some((one) => one.value === this.#value)) return false;
    this.#value = value;
    this.#accepted = accepted.map(describe);
    return true;
  }

  async report(): Promise<void> {
    for (const listener of this.#listeners) await listener();
  }
}

function describe({
  value,
  ends_at: endsAt = Infinity,
}: {
  value: string;
  ends_at?: number | undefined;
}): AcceptedValue {
  return { value, digest: hash("sha256", value, "buffer"), endsAt };
}
