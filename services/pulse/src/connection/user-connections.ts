// Limits the connections of each user.
import type { Principal } from "../user/principal.ts";

/** Numbers of connections by user. */
export class UserConnections {
  readonly #max: number;
  readonly #counts = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Counts a connection until the returned function is called; undefined at the limit. */
  admit({ tenant, name }: Pick<Principal, "tenant" | "name">): (() => void) | undefined {
    const user = JSON.stringify([tenant, name]);
    const count = this.#counts.get(user) ?? 0;
    if (count >= this.#max) return undefined;
    this.#counts.set(user, count + 1);
    return () => this.#release(user);
  }

  #release(user: string): void {
    const count = (this.#counts.get(user) ?? 1) - 1;
    if (count === 0) this.#counts.delete(user);
    else this.#counts.set(user, count);
  }
}
