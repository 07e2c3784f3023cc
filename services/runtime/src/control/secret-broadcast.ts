// Sends replaced secrets to the processes that have them, and waits until they use them.
import type { SecretsAnswer, SecretsMessage } from "@platform/kernel/lifecycle";
import type { SecretState } from "@platform/kernel/secrets";
import type { SupervisedProcess } from "../supervisor/supervised-process.ts";

/** A starting service reads its messages when it has started. */
const ANSWER_MS = 30_000;

/**
 * Outcome for a process: it uses the new values; it does not run, and has them when it is started; it has not answered; or
 * it cannot use them.
 */
export type Following = "followed" | "absent" | "silent" | "refused";

/** The messages that wait for their answers. */
export class SecretBroadcast {
  readonly #waiting = new Map<number, { name: string; settle: (outcome: Following) => void }>();
  #lastId = 0;

  /** Sends states to the process of a service. */
  send(
    name: string,
    process: Pick<SupervisedProcess, "send">,
    states: readonly SecretState[],
    answerMs = ANSWER_MS,
  ): Promise<Following> {
    const id = ++this.#lastId;
    const message: SecretsMessage = { type: "secrets", id, states };
    const { promise, resolve } = Promise.withResolvers<Following>();
    const timer = setTimeout(() => settle("silent"), answerMs);
    const settle = (outcome: Following): void => {
      clearTimeout(timer);
      this.#waiting.delete(id);
      resolve(outcome);
    };
    this.#waiting.set(id, { name, settle });
    if (!process.send(message)) settle("absent");
    return promise;
  }

  /** Handles an answer. */
  note({ id, refused }: SecretsAnswer): void {
    this.#waiting.get(id)?.settle(refused === undefined ? "followed" : "refused");
  }

  /** The process of a service has ended. */
  forget(name: string): void {
    for (const { name: waiting, settle } of this.#waiting.values()) {
      if (waiting === name) settle("absent");
    }
  }
}
