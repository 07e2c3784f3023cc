// Random identifiers from a pre-filled pool of random bytes.
import { randomFillSync } from "node:crypto";
import { systemClock, type Clock } from "../time/index.ts";

const POOL_BYTES = 8192;
const COUNTER_MAX = 0xfff;
const ZERO_SPAN = "0000000000000000";
const ZERO_TRACE = "00000000000000000000000000000000";

/** Fills a buffer with random bytes; tests pass their own. */
export type RandomFill = (target: Uint8Array<ArrayBuffer>) => void;

/** Generates identifiers. Use one per thread; its methods are fast enough to call for each request. */
export interface IdSource {
  /** Returns 32 lower-case hex digits, never all zero (W3C Trace Context section 3.2.2.3). */
  traceId(): string;
  /** Returns 16 lower-case hex digits, never all zero (W3C Trace Context section 3.2.2.4). */
  spanId(): string;
  /** Returns a UUID version 7 (RFC 9562 section 5.7): sorts by creation time, strictly within one source. */
  uuid(): string;
  /** Returns `bytes` random bytes (default 32, 1 to 1024) in base64url: for keys, session ids, nonces. */
  token(bytes?: number): string;
}

/** Creates a source of identifiers with the system's random generator. */
export function createIdSource(options: { clock?: Clock; randomFill?: RandomFill } = {}): IdSource {
  const clock = options.clock ?? systemClock;
  const fill = options.randomFill ?? ((target) => void randomFillSync(target));
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;
  let lastMs = -1;
  let counter = 0;

  // Bytes are used only once: the pool is refilled before it is reused.
  function take(bytes: number): number {
    if (used + bytes > POOL_BYTES) {
      fill(pool);
      used = 0;
    }
    const start = used;
    used += bytes;
    return start;
  }

  function takeHex(bytes: number): string {
    const start = take(bytes);
    return pool.toString("hex", start, start + bytes);
  }

  return {
    traceId() {
      const id = takeHex(16);
      return id === ZERO_TRACE ? `${id.slice(0, -1)}1` : id;
    },
    spanId() {
      const id = takeHex(8);
      return id === ZERO_SPAN ? `${id.slice(0, -1)}1` : id;
    },
    uuid() {
      const nowMs = clock.now();
      if (nowMs > lastMs) {
        lastMs = nowMs;
        counter = pool.readUInt16BE(take(2)) & (COUNTER_MAX >> 1);
      } else if (counter < COUNTER_MAX) {
        counter += 1;
      } else {
        // RFC 9562 section 6.2: when the counter overflows, the timestamp advances ahead of the clock.
        lastMs += 1;
        counter = 0;
      }
      const time = lastMs.toString(16).padStart(12, "0");
      const start = take(8);
      pool[start] = (pool[start]! & 0x3f) | 0x80;
      const tail = pool.toString("hex", start, start + 8);
      const middle = (0x7000 | counter).toString(16);
      return `${time.slice(0, 8)}-${time.slice(8)}-${middle}-${tail.slice(0, 4)}-${tail.slice(4)}`;
    },
    token(bytes = 32) {
      if (!Number.isInteger(bytes) || bytes < 1 || bytes > 1024) {
        throw new RangeError(`a token has 1 to 1024 bytes, not ${bytes}`);
      }
      const start = take(bytes);
      return pool.toString("base64url", start, start + bytes);
    },
  };
}
