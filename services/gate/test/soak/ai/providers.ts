// Providers of models that die and return, and the requests that they have received.
import { once } from "node:events";
import type { Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { createModelProvider, type ModelProvider } from "../../fixture/model-provider.ts";

/** Tokens of each answer: as many as a request allows, so that it costs what is reserved for it. */
export const OUTPUT_TOKENS = 50;
/** Between events of a stream, so that a death comes within some. */
const EVENT_MS = 15;

/** A provider at a port that stays. */
export class MortalProvider {
  readonly #isPatient: boolean;
  readonly #received = new Set<string>();
  #provider: ModelProvider;
  #port = 0;
  #isOver = false;
  deaths = 0;

  private constructor(isPatient: boolean) {
    this.#isPatient = isPatient;
    this.#provider = this.#create();
  }

  /** Starts one; if it is `patient`, it ends its answers before it dies. */
  static async start(isPatient: boolean): Promise<MortalProvider> {
    const provider = new MortalProvider(isPatient);
    await provider.#listen();
    return provider;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Texts of the prompts that it has received, each of which is one of a kind. */
  listReceived(): ReadonlySet<string> {
    this.#note();
    return this.#received;
  }

  /** Ends it for a time. */
  async die(ms: number): Promise<void> {
    const { server } = this.#provider;
    const closed = once(server, "close");
    server.close();
    if (!this.#isPatient) server.closeAllConnections();
    await closed;
    this.#note();
    this.deaths++;
    await sleep(ms);
    if (this.#isOver) return;
    this.#provider = this.#create();
    await this.#listen();
  }

  stop(): void {
    this.#isOver = true;
    this.#provider.server.close();
    this.#provider.server.closeAllConnections();
  }

  #create(): ModelProvider {
    return createModelProvider({
      usage: { input: 10, output: OUTPUT_TOKENS },
      onEvent: () => sleep(EVENT_MS),
    });
  }

  async #listen(): Promise<void> {
    const server: Server = this.#provider.server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as { port: number }).port;
  }

  #note(): void {
    for (const { body } of this.#provider.received.splice(0)) {
      const [message] = (body?.["messages"] ?? []) as { content: string }[];
      if (message !== undefined) this.#received.add(message.content);
    }
  }
}
