// The interface of a client connection for the exchange on it.
import type { TakenSocket } from "../contract/exchange.ts";
import type { InputQueue } from "./input-queue.ts";
import type { PhaseKind } from "./phase.ts";

/** A connection with the operations that its exchange needs. */
export interface ExchangeOwner {
  readonly phase: PhaseKind;
  readonly input: InputQueue;
  /** The client sent its FIN and no input is left: no further request follows. */
  readonly isLastRequest: boolean;
  /** Sets the time within which the client must make progress; 0 removes the limit. */
  allow(timeoutMs: number): void;
  /** Processes buffered input as far as the phase allows. */
  pump(): void;
  /** Pauses the socket while the input is full. */
  settleReading(): void;
  /** The response is complete: continues with the next request or closes. */
  endRequest(): void;
  becomeTunnel(): void;
  /** Ends the connection's part in the socket, which stays open. */
  releaseSocket(): TakenSocket;
}
