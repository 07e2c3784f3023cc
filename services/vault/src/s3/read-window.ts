// The request's share of the memory for answers that clients have not read yet.
import type { Exchange } from "@platform/http1";
import type { ReadWindow } from "../model/read-window.ts";
import { S3Error } from "../model/s3-error.ts";
import { ClientGone } from "./request-body.ts";

/** A request whose client may have gone. */
interface LiveRequest {
  readonly exchange: Pick<Exchange, "outflow">;
  readonly isLive: boolean;
}

/**
 * Charges the bytes that are read for an answer. Waits reject with `ServiceUnavailable` after 30 s, with `ClientGone`
 * without a client.
 */
export class AnswerWindow implements ReadWindow {
  isEnded = false;
  readonly #request: LiveRequest;

  constructor(request: LiveRequest) {
    this.#request = request;
  }

  get bytes(): number {
    return this.#request.exchange.outflow.windowBytes;
  }

  tryTake(bytes: number): boolean {
    return this.#request.isLive && this.#request.exchange.outflow.claim(bytes);
  }

  take(bytes: number): Promise<void> | undefined {
    return this.tryTake(bytes) ? undefined : this.#wait(bytes);
  }

  give(bytes: number): void {
    if (this.#request.isLive) this.#request.exchange.outflow.unclaim(bytes);
  }

  async #wait(bytes: number): Promise<void> {
    const request = this.#request;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    if (request.isLive) request.exchange.outflow.claimWhenRoom(bytes, resolve);
    else resolve(false);
    if (await promise) return;
    this.isEnded = true;
    if (!request.isLive) throw new ClientGone();
    throw new S3Error("ServiceUnavailable", {
      message: "Too many clients read their answers too slowly",
      headers: [["Retry-After", "1"]],
    });
  }
}
