// Heart-beats: the negotiated times, and whether one is due or missing (STOMP 1.2, "Heart-beating").
import { StompError } from "./frame/stomp-error.ts";

/** Shortest interval at which the server sends, in ms. */
const SEND_MS_MIN = 1_000;
/** Interval at which the server wants to hear from clients that can send heart-beats, in ms. */
const RECEIVE_MS = 10_000;
/** A client may be late by as much as its interval, and at least by this: networks delay. */
const TOLERANCE_MS_MIN = 1_000;

/** Negotiated intervals in ms; 0 for none. */
export interface HeartBeat {
  sendMs: number;
  receiveMs: number;
}

/** The header of CONNECTED. */
export const SERVER_HEART_BEAT = `${SEND_MS_MIN},${RECEIVE_MS}`;

/** Negotiates by the `heart-beat` header of CONNECT, `0,0` without it. Throws a `StompError`. */
export function negotiateHeartBeat(header: string | undefined): HeartBeat {
  const found = /^(\d{1,9}),(\d{1,9})$/.exec(header ?? "0,0");
  if (found === null) {
    throw new StompError(
      "invalid",
      "the header heart-beat is two numbers of milliseconds: <x>,<y>",
    );
  }
  const [clientSends, clientWants] = [Number(found[1]), Number(found[2])];
  return {
    sendMs: clientWants === 0 ? 0 : Math.max(SEND_MS_MIN, clientWants),
    receiveMs: clientSends === 0 ? 0 : Math.max(RECEIVE_MS, clientSends),
  };
}

/** True if a heart-beat must be sent before the next check, which is at most `checkMs` later. */
export function isBeatDue({ sendMs }: HeartBeat, silentMs: number, checkMs: number): boolean {
  return sendMs > 0 && silentMs + checkMs >= sendMs;
}

/** True if the peer has been silent for too long. */
export function isBeatMissing({ receiveMs }: HeartBeat, silentMs: number): boolean {
  return receiveMs > 0 && silentMs > receiveMs + Math.max(TOLERANCE_MS_MIN, receiveMs);
}
