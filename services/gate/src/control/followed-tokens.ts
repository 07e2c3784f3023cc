// The tokens of the configuration, which the supervisor may replace while the gateway runs.
import type { LiveSecret } from "@platform/kernel/secrets";

/** Follows tokens: a configuration that is read again has the same ones, unless the operator has changed them. */
export class FollowedTokens {
  readonly #follow: (name: string, value: string) => LiveSecret;
  readonly #tokens = new Map<string, LiveSecret>();
  readonly #listeners: (() => Promise<void>)[] = [];

  constructor(follow: (name: string, value: string) => LiveSecret) {
    this.#follow = follow;
  }

  /** Follows the token with this value. */
  follow(name: string, value: string): LiveSecret {
    const known = this.#tokens.get(name);
    if (known?.value === value) return known;
    const token = this.#follow(name, value);
    token.onReplaced(async () => {
      for (const listener of this.#listeners) await listener();
    });
    this.#tokens.set(name, token);
    return token;
  }

  /** Calls `listener` after each replacement. */
  onReplaced(listener: () => Promise<void>): void {
    this.#listeners.push(listener);
  }
}
