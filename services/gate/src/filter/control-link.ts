// Questions of a worker to the control plane, which alone talks to identity providers and to the service of vectors.
import type {
  FromWorker,
  RefreshOutcome,
  SimilarQuestion,
  ToWorker,
} from "../shared-state/index.ts";

const WAITING_MAX = 256;
const REFRESH_MS = 15_000;
/** Without an answer by then, a question to a model goes up. */
const SIMILAR_MS = 1_000;

type Answer = Extract<ToWorker, { type: "session-refreshed" | "similar-found" }>;

/** Asks the control plane. One per worker. */
export class ControlLink {
  readonly #send: (message: FromWorker) => void;
  readonly #waiting = new Map<number, (answer: Answer | undefined) => void>();
  #id = 0;

  constructor(send: (message: FromWorker) => void) {
    this.#send = send;
  }

  /** Renews the session of a browser at its identity provider. Never rejects. */
  async refreshSession(client: string, sealed: string): Promise<RefreshOutcome> {
    const answer = await this.#ask(REFRESH_MS, (id) => ({
      type: "refresh-session",
      id,
      client,
      sealed,
    }));
    return answer?.type === "session-refreshed" ? answer.outcome : { kind: "unavailable" };
  }

  /** Finds a stored question that is alike. Never rejects. */
  async find(question: {
    scope: string;
    text: string;
    threshold: number;
  }): Promise<SimilarQuestion | undefined> {
    const answer = await this.#ask(SIMILAR_MS, (id) => ({ type: "find-similar", id, ...question }));
    return answer?.type === "similar-found" ? answer.found : undefined;
  }

  /** Adds a question whose answer is stored. */
  add(question: { scope: string; text: string; digest: string; ttlMs: number }): void {
    this.#send({ type: "add-similar", ...question });
  }

  /** Receives an answer. */
  receive(answer: Answer): void {
    this.#settle(answer.id, answer);
  }

  #ask(timeoutMs: number, compose: (id: number) => FromWorker): Promise<Answer | undefined> {
    if (this.#waiting.size >= WAITING_MAX) return Promise.resolve(undefined);
    const id = ++this.#id;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#settle(id, undefined), timeoutMs);
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      this.#send(compose(id));
    });
  }

  #settle(id: number, answer: Answer | undefined): void {
    const settle = this.#waiting.get(id);
    this.#waiting.delete(id);
    settle?.(answer);
  }
}
