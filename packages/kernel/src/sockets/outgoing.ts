// Bytes that sockets hold because their peers do not read: counted, bounded by one budget, and held to a minimum pace.
import type { Socket } from "node:net";
import { Pace } from "./pace.ts";
import type { PaceBound } from "./pace.ts";

/** Bytes that one reader may be given ahead, at least and at most: see {@link OutgoingBudget.windowBytes}. */
const WINDOW_BYTES_MIN = 65_536;
const WINDOW_BYTES_MAX = 1_048_576;

/** Default of {@link OutgoingBudget}. */
const BUDGET_BYTES = 268_435_456;

/** Longest wait of a producer for room, in ms as of the sweeps. */
const WAIT_MS_MAX = 30_000;
/** The part of the budget that one sweep frees while producers wait. */
const FREED_SHARE = 1 / 4;

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

/** Called once: true when the bytes are counted, false when the peer has gone or there was no room for 30 s. */
type ClaimSettled = (isClaimed: boolean) => void;

/** A producer that waits for room. */
interface Waiter {
  readonly bytes: number;
  readonly onSettled: ClaimSettled;
  waitedMs: number;
}

/**
 * The budget of all sockets of one thread; `sweep` judges them.
 *
 * ```text
 *   held  =  in sockets (written, not read by the peer)  +  claimed (a producer reads them, or has them, for a peer)
 * ```
 *
 * Small answers are written as they come and are counted then. Producers of large ones claim each piece before they bring it
 * into memory ({@link Outflow.claim}); without room they wait ({@link Outflow.claimWhenRoom}):
 *
 * - Room is given in the order of asking, a piece at a time, and nobody overtakes. A fast reader waits for one piece of each
 *   reader before it, not for their answers. Pieces are small meanwhile (`windowBytes`).
 * - Whoever waits should hold no claim. All that is held is then in sockets, where reading or a sweep frees it, or on its way
 *   there: producers cannot wait for each other.
 * - A claim larger than the budget is granted when nothing else is held.
 * - Stalled peers free nothing, so waiting is pressure even though `heldBytes` stays within the budget. While a producer has
 *   waited from one sweep to the next, each sweep drops the longest stalled peers, up to a quarter of the budget.
 * - A wait ends after 30 s, or when the peer goes.
 */
export class OutgoingBudget {
  /** Bytes that wait in all sockets, and those that were claimed. */
  heldBytes = 0;
  /** The budget; it can be changed at any time. */
  bytesMax: number;
  readonly #holding = new Set<Outflow>();
  /** In the order of asking. */
  readonly #waiting = new Map<Outflow, Waiter>();
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

  /** Producers that wait for room. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Bytes that one more piece for a reader may have: an equal share of what is free, so that the windows of all readers
   * shrink before the budget is used up. From 64 KiB to 1 MiB; 64 KiB while producers wait for room.
   */
  get windowBytes(): number {
    if (this.#waiting.size > 0) return WINDOW_BYTES_MIN;
    const share = (this.bytesMax - this.heldBytes) / (this.#holding.size + 1);
    return Math.max(WINDOW_BYTES_MIN, Math.min(WINDOW_BYTES_MAX, Math.floor(share)));
  }

  /**
   * Judges every socket that holds bytes. `elapsedMs` has passed since the last call in which this thread could write. Where
   * the budget is exceeded, or producers wait, those that have read nothing for longest are dropped.
   */
  sweep(elapsedMs: number): void {
    for (const outflow of this.#holding) {
      const fault = outflow.sample(elapsedMs);
      if (fault !== null) outflow.drop(fault);
    }
    this.#makeRoom();
    for (const [outflow, waiter] of this.#waiting) {
      waiter.waitedMs += elapsedMs;
      if (waiter.waitedMs > WAIT_MS_MAX) this.forget(outflow);
    }
    // The budget may have been raised.
    this.#passOn();
  }

  /** Whether so many bytes more can be claimed now: there is room, and nobody waits for it. */
  hasRoom(bytes: number): boolean {
    return this.#waiting.size === 0 && this.#fits(bytes);
  }

  /** Queues a claim of an outflow, which has no other in the queue. */
  enqueue(outflow: Outflow, bytes: number, onSettled: ClaimSettled): void {
    if (this.#waiting.has(outflow)) throw new Error("This outflow waits for room already");
    this.#waiting.set(outflow, { bytes, onSettled, waitedMs: 0 });
    // The one before it may have left the queue without anything having been freed.
    this.#grant();
  }

  /** Ends an outflow's wait for room without it. */
  forget(outflow: Outflow): void {
    const waiter = this.#waiting.get(outflow);
    if (waiter === undefined) return;
    this.#waiting.delete(outflow);
    waiter.onSettled(false);
    this.#grant();
  }

  /** Calls `resume` once, in a later turn, when the budget is no longer full. */
  whenRoom(resume: () => void): void {
    this.#resting.add(resume);
  }

  /** Changes what an outflow counts for. */
  charge(outflow: Outflow, before: number, after: number): void {
    this.heldBytes += after - before;
    if (after === 0) this.#holding.delete(outflow);
    else if (before === 0) this.#holding.add(outflow);
    if (after < before) this.#passOn();
  }

  /** Gives free room to those who wait for it. */
  #passOn(): void {
    if (this.#waiting.size > 0) this.#grant();
    if (this.#resting.size > 0 && !this.isFull) this.#resume();
  }

  #fits(bytes: number): boolean {
    return this.heldBytes + bytes <= this.bytesMax || this.heldBytes === 0;
  }

  #grant(): void {
    for (const [outflow, { bytes, onSettled }] of this.#waiting) {
      if (!this.#fits(bytes)) return;
      this.#waiting.delete(outflow);
      outflow.addClaim(bytes);
      onSettled(true);
    }
  }

  #resume(): void {
    const resting = [...this.#resting];
    this.#resting.clear();
    setImmediate(() => {
      for (const resume of resting) resume();
    });
  }

  #makeRoom(): void {
    let wanted = this.#measurePressure();
    if (wanted <= 0) return;
    const unread = [...this.#holding].filter((outflow) => outflow.stalledMs > 0);
    unread.sort((one, other) => other.stalledMs - one.stalledMs);
    for (const outflow of unread) {
      if (wanted <= 0) return;
      wanted -= outflow.heldBytes;
      outflow.drop("over-budget");
    }
  }

  /** Bytes that should be freed. */
  #measurePressure(): number {
    const excess = this.heldBytes - this.bytesMax;
    const [first] = this.#waiting.values();
    const isWaitedFor = first === undefined ? this.#resting.size > 0 : first.waitedMs > 0;
    return isWaitedFor ? Math.max(excess, this.bytesMax * FREED_SHARE) : excess;
  }
}

/** Bytes that one socket holds. Its owner calls `settle` after writes that may not have gone out whole. */
export class Outflow {
  /** How long the peer has read nothing, as of the last sweep. */
  stalledMs = 0;
  readonly #socket: Socket;
  readonly #budget: OutgoingBudget;
  readonly #bounds: OutgoingBounds;
  readonly #onFault: (fault: OutgoingFault) => void;
  readonly #pace = new Pace();
  #charged = 0;
  #claimedBytes = 0;
  #isClosed = false;
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

  /** Bytes that the next piece may have: see {@link OutgoingBudget.windowBytes}. */
  get windowBytes(): number {
    return this.#budget.windowBytes;
  }

  /** Bytes that it counts for, as of the last `settle`. */
  get heldBytes(): number {
    return this.#charged;
  }

  /** Counts what the socket holds now. */
  settle(): void {
    if (this.#isClosed) return;
    const held = this.#socket.writableLength + this.#claimedBytes;
    const before = this.#charged;
    if (held === before) return;
    this.#charged = held;
    if (held === 0) this.#restart();
    this.#budget.charge(this, before, held);
  }

  /** Counts bytes that the owner is about to have in memory for this peer; false, and nothing counted, without room. */
  claim(bytes: number): boolean {
    if (this.#isClosed || !this.#budget.hasRoom(bytes)) return false;
    this.addClaim(bytes);
    return true;
  }

  /** As `claim`, in turn: `onSettled` may be called before this returns. One claim of an outflow waits at a time. */
  claimWhenRoom(bytes: number, onSettled: ClaimSettled): void {
    this.settle();
    if (this.#isClosed) onSettled(false);
    else this.#budget.enqueue(this, bytes, onSettled);
  }

  /** Counts a claim that was granted. */
  addClaim(bytes: number): void {
    this.#claimedBytes += bytes;
    this.settle();
  }

  /**
   * Bytes that were claimed are about to be written, or are no longer in memory. They count until the write, or the next
   * sweep, settles: nobody else gets their room in between.
   */
  unclaim(bytes: number): void {
    this.#claimedBytes = Math.max(0, this.#claimedBytes - bytes);
  }

  /** Ends all claims, and the wait for one. */
  endClaims(): void {
    if (this.#budget.waiting > 0) this.#budget.forget(this);
    if (this.#claimedBytes === 0) return;
    this.#claimedBytes = 0;
    this.settle();
  }

  /** The socket has closed: nothing is held any more. */
  close(): void {
    const before = this.#charged;
    this.#isClosed = true;
    this.#claimedBytes = 0;
    this.#charged = 0;
    this.#budget.forget(this);
    this.#budget.charge(this, before, 0);
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
