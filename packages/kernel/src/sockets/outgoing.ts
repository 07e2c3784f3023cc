// Unsent bytes of sockets: counted, bounded by one budget, with a minimum rate for peers.
import type { Socket } from "node:net";
import { Pace, type PaceBound } from "./pace.ts";

/** Minimum and maximum size of a piece for a reader: see {@link OutgoingBudget.windowBytes}. */
const WINDOW_BYTES_MIN = 65_536;
const WINDOW_BYTES_MAX = 1_048_576;

const BUDGET_BYTES = 268_435_456;

/** Maximum wait of a producer for space in ms, measured by sweeps. */
const WAIT_MS_MAX = 30_000;
/** Fraction of the budget that a sweep frees while producers wait. */
const FREED_SHARE = 1 / 4;

/** Reasons for disconnecting a peer. */
export type OutgoingFault =
  /** The peer has read nothing for too long. */
  | "stalled"
  /** The peer reads more slowly than the minimum rate. */
  | "slow"
  /** All peers together exceed the budget, and this one has read nothing. */
  | "over-budget";

/** Limits of a peer while bytes wait for it. */
export interface OutgoingBounds {
  /** Maximum time without reading in ms; 0 disables the limit. */
  readonly writeStallMs: number;
  /** Minimum rate of reading. */
  readonly answerPace: PaceBound;
}

/** Called once: true when the bytes are counted, false if the peer has gone or there was no space for 30 s. */
type ClaimSettled = (isClaimed: boolean) => void;

/** A producer that waits for space. */
interface Waiter {
  readonly bytes: number;
  readonly onSettled: ClaimSettled;
  waitedMs: number;
}

/**
 * The budget of all sockets of a thread; `sweep` enforces it.
 *
 * ```text
 *   held  =  in sockets (written, not read by the peer)  +  claimed (being loaded, or in memory, for a peer)
 * ```
 *
 * Small responses are written immediately and counted then. Producers of large ones claim each piece before they load it into
 * memory ({@link Outflow.claim}); without free space they wait ({@link Outflow.claimWhenRoom}):
 *
 * - Space is granted in order of arrival, one piece at a time, without overtaking. A fast reader waits for one piece of each
 *   reader before it, not for whole responses. Pieces are small meanwhile (`windowBytes`).
 * - A waiting producer should hold no claim. Then all held bytes are in sockets, where reading or a sweep frees them, or will
 *   be there soon: producers cannot wait for each other.
 * - A claim larger than the budget is granted when no other bytes are held.
 * - Stalled peers free no space, so waiting is pressure even if `heldBytes` is within the budget. While a producer has waited
 *   for a whole interval, each sweep disconnects the longest stalled peers, up to a quarter of the budget.
 * - A wait ends after 30 s, or when the peer disconnects.
 */
export class OutgoingBudget {
  /** Bytes in all sockets, and claimed bytes. */
  heldBytes = 0;
  /** The budget in bytes; it can be changed at any time. */
  bytesMax: number;
  readonly #holding = new Set<Outflow>();
  /** In order of arrival. */
  readonly #waiting = new Map<Outflow, Waiter>();
  readonly #resting = new Set<() => void>();

  constructor(bytesMax: number = BUDGET_BYTES) {
    this.bytesMax = bytesMax;
  }

  /** True if the whole budget is in use: do not start further work. */
  get isFull(): boolean {
    return this.heldBytes >= this.bytesMax;
  }

  /** True if more than half of the budget is in use: readers should receive no more than they need. */
  get isTight(): boolean {
    return this.heldBytes > this.bytesMax / 2;
  }

  /** Number of producers that wait for space. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Maximum size of the next piece for a reader: an equal share of the free space, so that the pieces of all readers
   * shrink before the budget is exhausted. From 64 KiB to 1 MiB; 64 KiB while producers wait.
   */
  get windowBytes(): number {
    if (this.#waiting.size > 0) return WINDOW_BYTES_MIN;
    const share = (this.bytesMax - this.heldBytes) / (this.#holding.size + 1);
    return Math.max(WINDOW_BYTES_MIN, Math.min(WINDOW_BYTES_MAX, Math.floor(share)));
  }

  /**
   * Checks all sockets with unsent bytes. `elapsedMs` is the time since the last call during which this thread could
   * write. If the budget is exceeded, or producers wait, the peers that have read nothing for the longest time are
   * disconnected.
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

  /**
   * The most that a claim should ask for whose producer cannot tell how much it is going to read: as much as one sweep
   * frees while producers wait.
   */
  get guessBytesMax(): number {
    return Math.floor(this.bytesMax * FREED_SHARE);
  }

  /** True if this number of bytes can be claimed now: there is space, and no producer waits for it. */
  hasRoom(bytes: number): boolean {
    return this.#waiting.size === 0 && this.#fits(bytes);
  }

  /** True if a claim of the outflow is in the queue. */
  isQueued(outflow: Outflow): boolean {
    return this.#waiting.has(outflow);
  }

  /** Queues a claim of an outflow, which must not have another claim in the queue. */
  enqueue(outflow: Outflow, bytes: number, onSettled: ClaimSettled): void {
    if (this.#waiting.has(outflow)) throw new Error("This outflow is already waiting for space");
    this.#waiting.set(outflow, { bytes, onSettled, waitedMs: 0 });
    // The previous one may have left the queue without freeing space.
    this.#grant();
  }

  /** Ends the wait of an outflow without granting its claim. */
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

  /** Updates the count of an outflow. */
  charge(outflow: Outflow, before: number, after: number): void {
    this.heldBytes += after - before;
    if (after === 0) this.#holding.delete(outflow);
    else if (before === 0) this.#holding.add(outflow);
    if (after < before) this.#passOn();
  }

  /** Grants free space to waiting producers. */
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

  /** Returns the number of bytes that should be freed. */
  #measurePressure(): number {
    const excess = this.heldBytes - this.bytesMax;
    const [first] = this.#waiting.values();
    const isWaitedFor = first === undefined ? this.#resting.size > 0 : first.waitedMs > 0;
    return isWaitedFor ? Math.max(excess, this.bytesMax * FREED_SHARE) : excess;
  }
}

/** Unsent bytes of a socket. Its owner calls `settle` after writes that may be incomplete. */
export class Outflow {
  /** Time without reading in ms, as of the last sweep. */
  stalledMs = 0;
  readonly #socket: Socket;
  readonly #budget: OutgoingBudget;
  readonly #bounds: OutgoingBounds;
  readonly #onFault: (fault: OutgoingFault) => void;
  readonly #pace = new Pace();
  #charged = 0;
  #claimedBytes = 0;
  #isClosed = false;
  /** At the last sample: bytes written to the socket, and bytes that the system accepted; -1 before the first. */
  #handedBytes = -1;
  #acceptedBytes = 0;

  /** `onFault` must destroy the socket; it is called during `sweep`. */
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

  /** Maximum size of the next piece: see {@link OutgoingBudget.windowBytes}. */
  get windowBytes(): number {
    return this.#budget.windowBytes;
  }

  /** The most that a claim of unknown bytes should ask for: see {@link OutgoingBudget.guessBytesMax}. */
  get guessBytesMax(): number {
    return this.#budget.guessBytesMax;
  }

  /** True if more than half of the budget is in use. */
  get isTight(): boolean {
    return this.#budget.isTight;
  }

  /** True while a claim waits for space. */
  get isWaiting(): boolean {
    return this.#budget.isQueued(this);
  }

  /** Counted bytes, as of the last `settle`. */
  get heldBytes(): number {
    return this.#charged;
  }

  /** Counts the current unsent bytes of the socket. */
  settle(): void {
    if (this.#isClosed) return;
    const held = this.#socket.writableLength + this.#claimedBytes;
    const before = this.#charged;
    if (held === before) return;
    this.#charged = held;
    if (held === 0) this.#restart();
    this.#budget.charge(this, before, held);
  }

  /**
   * Counts bytes that the owner will load into memory for this peer; returns false, without counting, if there is no
   * space.
   */
  claim(bytes: number): boolean {
    if (this.#isClosed || !this.#budget.hasRoom(bytes)) return false;
    this.addClaim(bytes);
    return true;
  }

  /**
   * Like `claim`, but waits in order. `onSettled` may be called before this returns. An outflow can have one waiting
   * claim.
   */
  claimWhenRoom(bytes: number, onSettled: ClaimSettled): void {
    this.settle();
    if (this.#isClosed) onSettled(false);
    else this.#budget.enqueue(this, bytes, onSettled);
  }

  /** Counts a granted claim. */
  addClaim(bytes: number): void {
    this.#claimedBytes += bytes;
    this.settle();
  }

  /**
   * Releases claimed bytes that will be written now or are no longer in memory. They count until the write, or the next
   * sweep, settles: their space is not granted in between.
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

  /** The socket has closed: releases everything. */
  close(): void {
    const before = this.#charged;
    this.#isClosed = true;
    this.#claimedBytes = 0;
    this.#charged = 0;
    this.#budget.forget(this);
    this.#budget.charge(this, before, 0);
  }

  /** Disconnects the peer. */
  drop(fault: OutgoingFault): void {
    this.close();
    this.#onFault(fault);
  }

  /**
   * Compares progress with the limits. A peer that has read all bytes of the previous sample is fast enough, however
   * few they were: the current bytes are newer.
   */
  sample(elapsedMs: number): OutgoingFault | null {
    this.settle();
    if (this.#socket.writableLength === 0) {
      this.#restart();
      return null;
    }
    const handed = this.#socket.bytesWritten;
    const accepted = handed - countUnsent(this.#socket, handed);
    const isFirst = this.#handedBytes === -1;
    const keepsUp = isFirst || accepted >= this.#handedBytes;
    const hasRead = isFirst || accepted > this.#acceptedBytes;
    this.#handedBytes = handed;
    this.#acceptedBytes = accepted;
    if (keepsUp) {
      this.stalledMs = 0;
      this.#pace.restart(accepted);
      return null;
    }
    this.stalledMs = hasRead ? 0 : this.stalledMs + elapsedMs;
    const { writeStallMs, answerPace } = this.#bounds;
    if (writeStallMs > 0 && this.stalledMs >= writeStallMs) return "stalled";
    return this.#pace.isTooSlow(answerPace, elapsedMs, accepted) ? "slow" : null;
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
 * Returns the number of written bytes that the system has not accepted. `writableLength` counts a write until it is
 * complete: progress within a write is only available in the handle, as Node's own socket timeouts use it.
 */
function countUnsent(socket: Socket, handed: number): number {
  const { _handle: handle, _bytesDispatched: dispatched } = socket as unknown as SocketParts;
  const queued = handle?.writeQueueSize;
  if (queued === undefined || dispatched === undefined) return socket.writableLength;
  return handed - dispatched + queued;
}
