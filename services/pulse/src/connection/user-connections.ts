// Limits the connections of each user.
import { ownerOf, type Principal } from "../user/principal.ts";

/** Numbers of connections by user. */
export class UserConnections {
  readonly #max: number;
  readonly #counts = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Counts a connection until the returned function is called; undefined at the limit. */
  admit(principal: Pick<Principal, "tenant" | "name" | "token">): (() => void) | undefined {
    const user = JSON.stringify([principal.tenant, ownerOf(principal)]);
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

/** The user of one connection, which may change when the client authenticates again. */
export class CountedUser {
  readonly #users: UserConnections;
  #principal: Principal | undefined;
  #release: () => void = () => undefined;

  constructor(users: UserConnections) {
    this.#users = users;
  }

  /** Counts the connection for this user instead of the previous one; false at the limit, and nothing changes. */
  change(principal: Principal): boolean {
    const before = this.#principal;
    const isSame = before?.tenant === principal.tenant && ownerOf(before) === ownerOf(principal);
    if (isSame) return true;
    const release = this.#users.admit(principal);
    if (release === undefined) return false;
    this.release();
    this.#principal = principal;
    this.#release = release;
    return true;
  }

  release(): void {
    this.#release();
    this.#release = () => undefined;
    this.#principal = undefined;
  }
}
