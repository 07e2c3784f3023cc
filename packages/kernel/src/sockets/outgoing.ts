// Bytes that sockets hold because their peers do not read: counted, bounded by one budget, and held to a minimum pace.
import type { Socket } from "node:net";
import { Pace } from "./pace.ts";
import type { PaceBound } from "./pace.ts";

/** Bytes that one reader may be given ahead, at least and at most: see {@link OutgoingBudget.windowBytes}. */
const WINDOW_BYTES_MIN = 65_536;
const WINDOW_BYTES_MAX = 1_048_576;

/** Default of {@link OutgoingBudget}. */
const BUDGET_BYTES = 268_435_456;

/** Why a peer was dropped. */
export type OutgoingFault =
  /** It read nothing at all for too long. */
  | "stalled"
  /** It read less than the minimum pace. */
  | "slow"
  /** All peers together held more than the budget, and this one read nothing meanwhile. */
  | "over-budget";

/** What a peer must do while bytes wait for it. */
export interface OutgoingBounds {
  /** How long it may read nothing, in milliseconds; 0 switches the bound off. */
  readonly writeStallMs: number;
  /** The least that it must read. */
  readonly answerPace: PaceBound;
}

/** The budget of all sockets of one thread; `sweep` judges them. */
export class OutgoingBudget {
  /** Bytes that wait in all sockets, those that were claimed ahead included. */
  heldBytes = 0;
  /** The budget; it can be changed at any time. */
  bytesMax: number;
  readonly #holding = new Set<Outflow>();
  readonly #resting = new Set<() => void>();

  constructor(bytesMax: number = BUDGET_BYTES) {
    this.bytesMax = bytesMax;
  }

  /** Whether all of the budget is in use: nothing further should be begun. */
  get isFull(): boolean {
    return this.heldBytes >= this.bytesMax;
  }

  /** Whether more than half of the budget is in use: readers should be given no more than they need. */
  get isTight(): boolean {
    return this.heldBytes > this.bytesMax / 2;
  }

  /**
   * Bytes that one more piece for a reader may have: an equal share of what is free, so that the windows of all readers
   * shrink before the budget is used up. From 64 KiB to 1 MiB.
   */
  get windowBytes(): number {
    const share = (this.bytesMax - this.heldBytes) / (this.#holding.size + 1);
    return Math.max(WINDOW_BYTES_MIN, Math.min(WINDOW_BYTES_MAX, Math.floor(share)));
  }

  /**
   * Judges every socket that holds bytes. `elapsedMs` has passed since the last call in which this thread could write. Where
   * the budget is exceeded, those that have read nothing for longest are dropped until it is not.
   */
  sweep(elapsedMs: number): void {
    for (const outflow of this.#holding) {
      const fault = outflow.sample(elapsedMs);
      if (fault !== null) outflow.drop(fault);
    }
    if (this.heldBytes > this.bytesMax) this.#makeRoom();
  }

  /** Calls `resume` once, in a later turn, when the budget is no longer full. */
  whenRoom(resume: () => void): void {
    this.#resting.add(resume);
  }

  /** Changes what an outflow counts for. */
  charge(outflow: Outflow, before: number, after: number): void {
    this.heldBytes += after - before;
    if (this.#resting.size > 0 && !this.isFull) this.#resume();
    if (after === 0) this.#holding.delete(outflow);
    else if (before === 0) this.#holding.add(outflow);
  }

  #resume(): void {
    const resting = [...this.#resting];
    this.#resting.clear();
    setImmediate(() => {
      for (const resume of resting) resume();
    });
  }

  #makeRoom(): void {
    const unread = [...this.#holding].filter((outflow) => outflow.stalledMs > 0);
    unread.sort((one, other) => other.stalledMs - one.stalledMs);
    for (const outflow of unread) {
      if (this.heldBytes <= this.bytesMax) return;
      outflow.drop("over-budget");
    }
  }
}

/** What one socket holds. Its owner calls `settle` after writes that may not have gone out whole. */
export class Outflow {
  /** How long the peer has read nothing, as of the last sweep. */
  stalledMs = 0;
  readonly #socket: Socket;
  readonly #budget: OutgoingBudget;
  readonly #bounds: OutgoingBounds;
  readonly #onFault: (fault: OutgoingFault) => void;
  readonly #pace = new Pace();
  #charged = 0;
  #aheadBytes = 0;
  /** At the last sample: bytes handed to the socket and bytes that the system took of them; -1 before the first. */
  #handedBytes = -1;
  #takenBytes = 0;

  /** `onFault` destroys the socket; it is called during `sweep`. */
  constructor(
    socket: Socket,
    budget: OutgoingBudget,
    bounds: OutgoingBounds,
    onFault: (fault: OutgoingFault) => void,
  ) {
    this.#socket = socket;
    this.#budget = budget;
    this.#bounds = bounds;
    this.#onFault = onFault;
  }

  /** Counts what the socket holds now. */
  settle(): void {
    const held = this.#socket.writableLength + this.#aheadBytes;
    if (held === this.#charged) return;
    this.#budget.charge(this, this.#charged, held);
    this.#charged = held;
    if (held === 0) this.#restart();
  }

  /** Counts bytes that the owner has in memory for this peer and has not written yet. */
  claimAhead(bytes: number): void {
    this.#aheadBytes = bytes;
    this.settle();
  }

  /** The socket has closed: nothing is held any more. */
  close(): void {
    this.#aheadBytes = 0;
    this.#budget.charge(this, this.#charged, 0);
    this.#charged = 0;
  }

  /** Drops the peer. */
  drop(fault: OutgoingFault): void {
    this.close();
    this.#onFault(fault);
  }

  /**
   * Compares progress with the bounds. A peer that has read everything that waited at the last sample keeps up, however
   * little that was: what waits now is newer.
   */
  sample(elapsedMs: number): OutgoingFault | null {
    this.settle();
    if (this.#socket.writableLength === 0) {
      this.#restart();
      return null;
    }
    const handed = this.#socket.bytesWritten;
    const taken = handed - countUnsent(this.#socket, handed);
    const isFirst = this.#handedBytes === -1;
    const keepsUp = isFirst || taken >= this.#handedBytes;
    const hasRead = isFirst || taken > this.#takenBytes;
    this.#handedBytes = handed;
    this.#takenBytes = taken;
    if (keepsUp) {
      this.stalledMs = 0;
      this.#pace.restart(taken);
      return null;
    }
    this.stalledMs = hasRead ? 0 : this.stalledMs + elapsedMs;
    const { writeStallMs, answerPace } = this.#bounds;
    if (writeStallMs > 0 && this.stalledMs >= writeStallMs) return "stalled";
    return this.#pace.isTooSlow(answerPace, elapsedMs, taken) ? "slow" : null;
  }

  #restart(): void {
    this.#handedBytes = -1;
    this.stalledMs = 0;
  }
}

interface SocketParts {
  _handle?: { writeQueueSize?: number } | null;
  _bytesDispatched?: number;
}

/**
 * Bytes of those handed to a socket that the system has not taken. `writableLength` counts a write until all of it is out:
 * the progress within one is only in the handle, where Node's own socket timeouts look for it, too.
 */
function countUnsent(socket: Socket, handed: number): number {
  const { _handle: handle, _bytesDispatched: dispatched } = socket as unknown as SocketParts;
  const queued = handle?.writeQueueSize;
  if (queued === undefined || dispatched === undefined) return socket.writableLength;
  return handed - dispatched + queued;
}
