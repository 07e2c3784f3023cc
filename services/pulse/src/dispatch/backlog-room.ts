// Room in the backlogs of topics: publishers that can be paced wait until earlier messages have been taken.
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import type { Topic } from "../topic/topics.ts";

/** Interval at which backlogs are looked at while somebody waits, in ms. */
const CHECK_MS = 10;
/** Time without a message taken after which publishers are refused, in ms: that of subscribers that read nothing. */
const STALL_MS = 30_000;
const NO_WAIT = Promise.resolve();

export interface BacklogPort {
  /** Messages that wait in a topic, with those that are being stored. */
  depthOf(topic: Topic): number;
  /** True if each group that has no room for `count` messages more has a subscriber. */
  isTaken(topic: Topic, count: number): boolean;
  /** Counts messages that are going to be stored. */
  add(topic: Topic, count: number): void;
}

interface Waiter {
  count: number;
  resolve: () => void;
  reject: (error: PlatformError) => void;
}

interface Line {
  topic: Topic;
  waiters: Waiter[];
  depth: number;
  /** When a message was taken last, in monotonic ms. */
  takenAtMs: number;
}

/** The error of a full topic. `index`: the first message of the call that had no room. */
export function createBacklogError(depthMax: number, index?: number): PlatformError {
  const detail = `The topic has ${depthMax} waiting messages; retry when some have been consumed.`;
  const { headers } = createRetryLaterError("queue_full", detail, 1);
  const fields = index === undefined ? {} : { index };
  return new PlatformError("ERR_BACKPRESSURE", detail, { headers, fields });
}

/** Lines of publishers, one for each full topic, in order of arrival. */
export class BacklogRoom {
  readonly #depthMax: number;
  readonly #port: BacklogPort;
  readonly #lines = new Map<Topic, Line>();
  #timer: NodeJS.Timeout | undefined;

  constructor(depthMax: number, port: BacklogPort) {
    this.#depthMax = depthMax;
    this.#port = port;
  }

  /**
   * Resolves when the topic has room for `count` messages, which are then counted, or when nothing waits in it. Rejects with
   * `ERR_BACKPRESSURE` if nobody takes its messages; `index` is then the number of messages that have room.
   */
  enter(topic: Topic, count: number): Promise<void> {
    if (!this.#lines.has(topic) && this.#add(topic, count)) return NO_WAIT;
    if (!this.#port.isTaken(topic, count)) return Promise.reject(this.#refuse(topic));
    return new Promise((resolve, reject) => {
      this.#lineOf(topic).waiters.push({ count, resolve, reject });
      this.#timer ??= setInterval(() => this.#check(), CHECK_MS).unref();
    });
  }

  #add(topic: Topic, count: number): boolean {
    const depth = this.#port.depthOf(topic);
    const hasRoom = depth + count <= this.#depthMax;
    // A call that is larger than the limit has room when nothing waits.
    if (!hasRoom && (depth > 0 || !this.#port.isTaken(topic, count))) return false;
    this.#port.add(topic, count);
    return true;
  }

  #lineOf(topic: Topic): Line {
    let line = this.#lines.get(topic);
    if (line === undefined) {
      const depth = this.#port.depthOf(topic);
      line = { topic, waiters: [], depth, takenAtMs: performance.now() };
      this.#lines.set(topic, line);
    }
    return line;
  }

  #check(): void {
    for (const line of this.#lines.values()) this.#checkLine(line);
    if (this.#lines.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #checkLine(line: Line): void {
    const { topic, waiters } = line;
    const nowMs = performance.now();
    if (this.#port.depthOf(topic) < line.depth) line.takenAtMs = nowMs;
    while (waiters.length > 0 && this.#add(topic, waiters[0]!.count)) {
      line.takenAtMs = nowMs;
      waiters.shift()!.resolve();
    }
    line.depth = this.#port.depthOf(topic);
    const isStalled = nowMs - line.takenAtMs >= STALL_MS;
    const [first] = waiters;
    if (first !== undefined && !isStalled && this.#port.isTaken(topic, first.count)) return;
    this.#lines.delete(topic);
    for (const { reject } of waiters) reject(this.#refuse(topic));
  }

  #refuse(topic: Topic): PlatformError {
    const room = Math.max(0, this.#depthMax - this.#port.depthOf(topic));
    return createBacklogError(this.#depthMax, room);
  }
}
