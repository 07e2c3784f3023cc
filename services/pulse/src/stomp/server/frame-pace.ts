// Whether a frame arrives too slowly, as for the body of an HTTP request.
import { Pace } from "@platform/kernel/sockets";

/** Minimum bytes of a frame in `windowMs`. */
const FRAME_PACE = { bytesMin: 7_680, windowMs: 30_000 };

/** The frame that a connection is receiving. */
export class FramePace {
  readonly #pace = new Pace();
  /** True if a frame had begun at the last sweep and has not been completed since. */
  #isMidFrame = false;

  /** A frame is complete. */
  noteFrame(): void {
    this.#isMidFrame = false;
  }

  /** Called at each sweep. `isMidFrame`: the next bytes of a frame are the client's turn. */
  isTooSlow(isMidFrame: boolean, elapsedMs: number, receivedBytes: number): boolean {
    const wasMidFrame = this.#isMidFrame;
    this.#isMidFrame = isMidFrame;
    if (!isMidFrame) return false;
    if (wasMidFrame) return this.#pace.isTooSlow(FRAME_PACE, elapsedMs, receivedBytes);
    this.#pace.restart(receivedBytes);
    return false;
  }
}
