// Replaces a credential of a running platform without a refused request:
//
//   accept   all programs that accept it accept the next value, too; nobody presents it yet
//   commit   the file has the next value, and the former one with its end: commands present the next one from here on
//   present  programs that present it change to the next value
//   end      the former value is refused from its end on, by the clock of each program
//
// A platform that is killed before the commit has never presented the next value, which is forgotten. After it, the next
// start gives all programs the present value and the former one with the same end.
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import type { LiveSecrets, SecretState } from "@platform/kernel/secrets";
import type { CredentialStore } from "../credentials/credential-store.ts";
import { requireRotatable } from "../services/rotatable.ts";
import type { SupervisedProcess } from "../supervisor/supervised-process.ts";
import type { Following, SecretBroadcast } from "./secret-broadcast.ts";

/** Time for which the former value is kept at least, until all programs present the new one. */
const PRESENT_MS = 60_000;

/** A program that has a credential. */
export interface Holder {
  /** Short name of the service. */
  name: string;
  label: string;
  process: Pick<SupervisedProcess, "send">;
  /** True for a project: its version may not know the messages. */
  isProject: boolean;
}

/** Options of {@link CredentialRotation}. */
export interface CredentialRotationOptions {
  store: CredentialStore;
  broadcast: SecretBroadcast;
  /** The programs that have a credential. */
  listHolders: (name: string) => readonly Holder[];
  /** The secrets of the platform's own process. */
  own: LiveSecrets;
  /** Called when the file has the new value: the platform itself presents it from now on. Updates files that contain it. */
  onCommitted: (name: string, value: string) => Promise<void>;
  logger: Logger;
  /** Returns ms since 1970. */
  now: () => number;
}

/** Outcome of a rotation. */
export interface RotationReport {
  name: string;
  /** Time from which the former value is refused, in ms since 1970. */
  formerEndsAtMs: number;
  /** Labels of programs that use the new value. */
  followed: readonly string[];
  /** Labels of programs that have to be restarted before the former value ends. */
  pending: readonly string[];
}

/** Replaces credentials, one at a time. */
export class CredentialRotation {
  readonly #options: CredentialRotationOptions;
  #isRunning = false;

  constructor(options: CredentialRotationOptions) {
    this.#options = options;
  }

  /**
   * Replaces a credential; the former value is accepted for `overlapMs`. Throws 404 for an unknown name, 409 if it cannot be
   * replaced now, and 503, without a change, if a service does not accept the next value.
   */
  async rotate(name: string, overlapMs: number, actor: string): Promise<RotationReport> {
    const { store, now } = this.#options;
    requireRotatable(store, name, overlapMs);
    if (this.#isRunning) {
      throw new PlatformError("conflict", "Another credential is being replaced.");
    }
    this.#isRunning = true;
    try {
      await this.#accept(name);
      const endsAtMs = now() + (overlapMs > 0 ? overlapMs : PRESENT_MS);
      const value = this.#commit(name, endsAtMs);
      await this.#options.onCommitted(name, value);
      const outcomes = await this.#send(name);
      if (overlapMs === 0) await this.#end(name);
      return this.#report(name, overlapMs > 0 ? endsAtMs : now(), outcomes, actor);
    } finally {
      this.#isRunning = false;
    }
  }

  async #accept(name: string): Promise<void> {
    const { store } = this.#options;
    store.offer(name);
    const outcomes = await this.#send(name);
    const [missing] = [...outcomes].filter(
      ([{ isProject }, outcome]) => !isProject && (outcome === "silent" || outcome === "refused"),
    );
    if (missing === undefined) return;
    store.withdraw(name);
    await this.#send(name);
    const [{ label }] = missing;
    throw new PlatformError(
      "unavailable",
      `${label} does not accept the next value of ${name}; nothing has changed. Try again, or restart ${label} first.`,
    );
  }

  // A file that cannot be written leaves everything as it was.
  #commit(name: string, endsAtMs: number): string {
    const { store } = this.#options;
    try {
      return store.commit(name, endsAtMs);
    } catch (error) {
      store.withdraw(name);
      void this.#send(name);
      throw error;
    }
  }

  async #end(name: string): Promise<void> {
    this.#options.store.endFormer(name);
    await this.#send(name);
  }

  async #send(name: string): Promise<ReadonlyMap<Holder, Following>> {
    const { store, broadcast, listHolders, own } = this.#options;
    const state: SecretState = store.describe(name)!;
    await own.replace([state]);
    const sent = listHolders(name).map(
      async (holder) =>
        [holder, await broadcast.send(holder.name, holder.process, [state])] as const,
    );
    return new Map(await Promise.all(sent));
  }

  #report(
    name: string,
    formerEndsAtMs: number,
    outcomes: ReadonlyMap<Holder, Following>,
    actor: string,
  ): RotationReport {
    const list = (...wanted: Following[]): string[] =>
      [...outcomes].flatMap(([{ label }, outcome]) => (wanted.includes(outcome) ? [label] : []));
    const followed = list("followed");
    const pending = list("silent", "refused");
    this.#options.logger.info("credential rotated", {
      audit: true,
      caller: actor,
      target: name,
      former_ends_at: new Date(formerEndsAtMs).toISOString(),
      followed,
      ...(pending.length === 0 ? {} : { pending }),
    });
    return { name, formerEndsAtMs, followed, pending };
  }
}
