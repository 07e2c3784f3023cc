// The credentials of a platform: their present values, those that end soon, and the replacement of one by another.
import type { IdSource } from "@platform/kernel/ids";
import type { SecretState } from "@platform/kernel/secrets";
import {
  readCredentialFile,
  writeCredentialFile,
  type FormerValue,
  type StoredCredentials,
} from "./credentials.ts";

/** Options of {@link CredentialStore}. */
export interface CredentialStoreOptions {
  folder: string;
  /** Variables of the environment take precedence over stored values. */
  env: Readonly<Record<string, string | undefined>>;
  ids: IdSource;
  /** Returns ms since 1970. */
  now: () => number;
}

/** A credential without its value. */
export interface CredentialSummary {
  name: string;
  /** Ms since 1970; undefined if it is not known. */
  madeAtMs: number | undefined;
  /** Time until which a former value is accepted. */
  formerEndsAtMs: number | undefined;
  /** True if a variable of the environment takes its place. */
  isFixed: boolean;
}

/** The credentials of one data folder, whose lock the process holds. */
export class CredentialStore {
  readonly #options: CredentialStoreOptions;
  readonly #stored: StoredCredentials;
  /** Values that are accepted, and not yet presented by anybody. */
  readonly #offered = new Map<string, string>();

  private constructor(options: CredentialStoreOptions, stored: StoredCredentials) {
    this.#options = options;
    this.#stored = stored;
  }

  /** Reads the file. */
  static async open(options: CredentialStoreOptions): Promise<CredentialStore> {
    return new CredentialStore(options, await readCredentialFile(options.folder));
  }

  /** The present value; undefined if there is none. */
  find(name: string): string | undefined {
    return this.#options.env[name] || this.#stored.values.get(name);
  }

  /** All stored credentials, in the order of the file. */
  list(): CredentialSummary[] {
    return [...this.#stored.values.keys()].map((name) => ({
      name,
      madeAtMs: this.#stored.madeAtMs.get(name),
      formerEndsAtMs: this.#findFormer(name)?.endsAtMs,
      isFixed: this.isFixed(name),
    }));
  }

  /** True if a variable of the environment takes its place. */
  isFixed(name: string): boolean {
    return (this.#options.env[name] ?? "") !== "";
  }

  /** The state of a credential for programs that have it; undefined if there is none. */
  describe(name: string): SecretState | undefined {
    const value = this.find(name);
    if (value === undefined) return undefined;
    const accepted: { value: string; ends_at?: number }[] = [{ value }];
    const offered = this.#offered.get(name);
    if (offered !== undefined) accepted.push({ value: offered });
    const former = this.isFixed(name) ? undefined : this.#findFormer(name);
    if (former !== undefined) accepted.push({ value: former.value, ends_at: former.endsAtMs });
    return { name, value, accepted };
  }

  /** The states of those credentials that have several accepted values. */
  describeAll(names: readonly string[]): SecretState[] {
    return [...new Set(names)].flatMap((name) => {
      const state = this.describe(name);
      return state === undefined || state.accepted.length < 2 ? [] : [state];
    });
  }

  /** Generates the next value, which is accepted from now on, but not stored. */
  offer(name: string): void {
    this.#offered.set(name, this.#options.ids.token());
  }

  /** Forgets the next value. */
  withdraw(name: string): void {
    this.#offered.delete(name);
  }

  /** Stores the next value as the present one; the present one is accepted until `endsAtMs`. Returns the new value. */
  commit(name: string, endsAtMs: number): string {
    const next = this.#offered.get(name);
    const value = this.#stored.values.get(name);
    if (next === undefined || value === undefined) throw new Error(`${name} has no next value`);
    const values = new Map(this.#stored.values).set(name, next);
    const madeAtMs = new Map(this.#stored.madeAtMs).set(name, this.#options.now());
    const former = new Map(this.#stored.former).set(name, { value, endsAtMs });
    this.#write({ values, madeAtMs, former });
    this.#offered.delete(name);
    return next;
  }

  /** Ends the former value of a credential now. */
  endFormer(name: string): void {
    const former = new Map(this.#stored.former);
    if (former.delete(name)) this.#write({ ...this.#stored, former });
  }

  /** Removes the former values that have ended from the file. */
  sweep(): void {
    const ended = [...this.#stored.former.keys()].filter(
      (name) => this.#findFormer(name) === undefined,
    );
    if (ended.length === 0) return;
    const former = new Map(this.#stored.former);
    for (const name of ended) former.delete(name);
    this.#write({ ...this.#stored, former });
  }

  #findFormer(name: string): FormerValue | undefined {
    const former = this.#stored.former.get(name);
    return former !== undefined && this.#options.now() < former.endsAtMs ? former : undefined;
  }

  // Disk first: the memory is that of the file, also after a failed write.
  #write(content: StoredCredentials): void {
    writeCredentialFile(this.#options.folder, content);
    Object.assign(this.#stored, content);
  }
}
