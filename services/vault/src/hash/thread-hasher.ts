// Hashes a body on another thread, to which its bytes go in frames of shared memory.
//
//   chunks ──► frame being filled ──(full, or another body needs it)──► frames in flight ──► free again
import { StoreError } from "../model/store-error.ts";
import type { BodyDigests, ChecksumAlgorithm } from "../model/object.ts";
import type { BodyHasher } from "./body-hasher.ts";
import type { Frame, FramePool } from "./frame-pool.ts";
import { FRAME_BYTES } from "./hash-kernel.ts";
import { BLOCK_BYTES } from "./kernel-module.ts";
import { IN_FLIGHT_MAX, QUEUED_MAX, type HashDone, type HashJob } from "./messages.ts";

/** See `BodyHasher`. */
export class ThreadHasher implements BodyHasher {
  readonly slot: number;
  readonly #frames: FramePool;
  readonly #post: (job: HashJob) => void;
  readonly #release: () => void;
  readonly #inFlight: Frame[] = [];
  #frame: Frame | undefined;
  #filled = 0;
  // The rest of a block when the frame was given up.
  readonly #rest = Buffer.alloc(BLOCK_BYTES);
  #restBytes = 0;
  #wake: (() => void) | undefined;
  #digests: BodyDigests | undefined;
  #failure: StoreError | undefined;
  #isEnded = false;
  #isReleased = false;

  /** `post` sends jobs to the thread of this body; `release` is called when the slot is free again. */
  constructor(
    frames: FramePool,
    slot: number,
    algorithms: readonly ChecksumAlgorithm[],
    post: (job: HashJob) => void,
    release: () => void,
  ) {
    this.#frames = frames;
    this.slot = slot;
    this.#post = post;
    this.#release = release;
    post({ type: "start", slot, algorithms });
  }

  update(chunk: Uint8Array): Promise<void> | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#isEnded) return undefined;
    const left = this.#fill(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length));
    if (left.length > 0) return this.#fillLater(Buffer.from(left));
    if (this.#frames.isWanted) this.yieldFrame();
    return this.#isBehind() ? this.#catchUp() : undefined;
  }

  async digest(): Promise<BodyDigests> {
    while (!this.#isOver() && (this.#frame === undefined || this.#isBehind())) {
      await (this.#frame === undefined ? this.#takeFrameLater() : this.#progress());
    }
    if (!this.#isOver()) this.#launch(this.#filled, { isUrgent: true, isLast: true });
    while (!this.#isOver()) await this.#progress();
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#digests === undefined) throw new StoreError("InvalidRequest", "The upload has ended");
    return this.#digests;
  }

  forget(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#frame !== undefined) this.#frames.give(this.#frame);
    this.#frame = undefined;
    if (this.#digests === undefined && this.#failure === undefined) {
      this.#post({ type: "forget", slot: this.slot });
    }
    this.#wake?.();
    this.#releaseWhenIdle();
  }

  /** Another body needs a frame: sends the content of this one and gives it up. False if that is impossible now. */
  yieldFrame(): boolean {
    const frame = this.#frame;
    if (frame === undefined || this.#isBehind()) return false;
    const rest = this.#filled % BLOCK_BYTES;
    const whole = this.#filled - rest;
    this.#restBytes = rest;
    this.#rest.set(frame.view.subarray(whole, this.#filled));
    if (whole > 0) this.#launch(whole, { isUrgent: true, isLast: false });
    else {
      this.#frame = undefined;
      this.#filled = 0;
      this.#frames.give(frame);
    }
    return true;
  }

  /** The thread has finished the oldest job in flight. */
  onDone({ digests }: HashDone): void {
    const frame = this.#inFlight.shift();
    if (frame !== undefined) this.#frames.give(frame);
    this.#digests = digests;
    this.#wake?.();
    if (digests !== undefined) this.#isEnded = true;
    this.#releaseWhenIdle();
  }

  /** The thread has ended. */
  onFailure(failure: StoreError): void {
    this.#failure = failure;
    for (const frame of this.#inFlight.splice(0)) this.#frames.give(frame);
    this.forget();
  }

  #isOver(): boolean {
    return this.#isEnded || this.#failure !== undefined;
  }

  #isBehind(): boolean {
    return this.#inFlight.length >= IN_FLIGHT_MAX;
  }

  // Waits for more than one frame: each wait pauses and resumes the connection.
  async #catchUp(): Promise<void> {
    if (!this.#isBehind()) return;
    while (this.#inFlight.length > QUEUED_MAX && !this.#isOver()) await this.#progress();
    if (this.#failure !== undefined) throw this.#failure;
  }

  // Copies the bytes that fit. Returns the rest if it must wait.
  #fill(chunk: Buffer): Buffer {
    let left = chunk;
    for (;;) {
      if (this.#filled === FRAME_BYTES) {
        // One more than the number waited for; otherwise a part of a chunk would have to be kept elsewhere each time.
        if (this.#inFlight.length > IN_FLIGHT_MAX) return left;
        this.#launch(FRAME_BYTES, { isUrgent: false, isLast: false });
      }
      if (left.length === 0) return left;
      if (this.#frame === undefined) {
        const frame = this.#frames.take(this);
        if (frame === undefined) return left;
        this.#beginFrame(frame);
      }
      // `copy` rather than `set`, which copies byte by byte in shared memory.
      const count = left.copy(this.#frame!.view, this.#filled, 0, FRAME_BYTES - this.#filled);
      this.#filled += count;
      left = left.subarray(count);
    }
  }

  async #fillLater(chunk: Buffer): Promise<void> {
    let left = chunk;
    while (left.length > 0 && !this.#isOver()) {
      if (this.#filled === FRAME_BYTES) await this.#progress();
      else await this.#takeFrameLater();
      if (!this.#isOver()) left = this.#fill(left);
    }
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#frames.isWanted) this.yieldFrame();
    await this.#catchUp();
  }

  async #takeFrameLater(): Promise<void> {
    const frame = this.#frames.take(this) ?? (await this.#frames.wait(this));
    if (this.#isOver()) this.#frames.give(frame);
    else this.#beginFrame(frame);
  }

  #beginFrame(frame: Frame): void {
    this.#frame = frame;
    frame.view.set(this.#rest.subarray(0, this.#restBytes));
    this.#filled = this.#restBytes;
    this.#restBytes = 0;
  }

  #launch(bytes: number, how: { isUrgent: boolean; isLast: boolean }): void {
    const frame = this.#frame!;
    this.#frame = undefined;
    this.#filled = 0;
    this.#frames.settle(frame);
    this.#inFlight.push(frame);
    this.#post({ type: "hash", slot: this.slot, at: frame.at, bytes, ...how });
  }

  #progress(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }

  #releaseWhenIdle(): void {
    if (!this.#isEnded || this.#isReleased || this.#inFlight.length > 0) return;
    this.#isReleased = true;
    this.#release();
  }
}
