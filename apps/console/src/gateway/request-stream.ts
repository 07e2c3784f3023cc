// Requests as they end, from the stream of the access log.
import { useComputed, useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import { LiveSocket, type SocketState } from "../live/live-socket.ts";
import { hasReducedMotion } from "../session/preferences.ts";
import { socketUrl } from "../session/session.ts";
import { endMsOf, idOf, type LoggedRequest } from "./requests.ts";

/** Requests that are kept; older ones are in the log. */
const KEPT_MAX = 500;
/** A filter is applied when typing has paused. */
const TYPING_MS = 250;
const SHOW_MS = 250;
/** For people who ask for less motion. */
const CALM_MS = 2_000;
/** Rows a second that somebody can look at. */
const READABLE_PER_S = 20;
const SAMPLE_MAX = 100_000;
const SAMPLE_STEP = 10;
const MEASURE_MS = 1_000;
/** Consecutive measurements after which more may be shown: a short pause is no end of a peak. */
const QUIET_MAX = 5;

interface StreamFilter {
  route?: string | undefined;
  status?: string | undefined;
  q?: string | undefined;
  /** One of so many is sent. */
  sample?: number;
}

interface StreamMessage {
  type: "lines" | "error" | "recovered";
  items: LoggedRequest[];
  missed: number;
  /** Reason of an error. */
  detail?: string;
}

/** Followed requests. */
interface Following {
  /** Newest first. */
  rows: ReadonlySignal<readonly LoggedRequest[]>;
  /** Number of requests that wait while the list is held. */
  waiting: ReadonlySignal<number>;
  /** Number of requests that the gateway left out, because this page read too slowly. */
  missed: ReadonlySignal<number>;
  /** The gateway cannot read its log at present: its reason. */
  fault: ReadonlySignal<string | undefined>;
  state: SocketState | undefined;
}

/** Follows requests; `filter` undefined: does not. While it is held, new requests wait. */
export function useRequestStream(
  filter: StreamFilter | undefined,
  isHeld: boolean,
  onOpen?: () => void,
): Following {
  const rows = useSignal<readonly LoggedRequest[]>([]);
  const later = useSignal({ rows: [] as readonly LoggedRequest[], dropped: 0 });
  const missed = useSignal(0);
  const fault = useSignal<string | undefined>(undefined);
  const [socket, setSocket] = useState<LiveSocket | undefined>(undefined);
  const held = useRef(isHeld);
  held.current = isHeld;
  const opened = useRef(onOpen);
  opened.current = onOpen;
  const url =
    filter === undefined ? undefined : withQuery("/api/v1/admin/access-log/ws", { ...filter });
  useEffect(() => {
    rows.value = [];
    later.value = { rows: [], dropped: 0 };
    missed.value = 0;
    fault.value = undefined;
    if (url === undefined) return undefined;
    let live: LiveSocket | undefined;
    const connect = (): void => {
      live = new LiveSocket({
        url: () => socketUrl("gate", url),
        onOpen: () => {
          fault.value = undefined;
          opened.current?.();
        },
        onMessage: (text) => {
          const message = JSON.parse(text) as StreamMessage;
          if (message.type === "error") fault.value = message.detail;
          if (message.type === "recovered") {
            fault.value = undefined;
            // Requests that ended meanwhile are in the log.
            opened.current?.();
          }
          missed.value += message.missed;
          if (message.items.length === 0) return;
          const all = [...message.items.reverse(), ...later.value.rows];
          const dropped = later.value.dropped + Math.max(0, all.length - KEPT_MAX);
          later.value = { rows: all.slice(0, KEPT_MAX), dropped };
        },
      });
      setSocket(live);
    };
    // Rows that come one by one would flicker.
    let showTimer = 0;
    const show = (): void => {
      showTimer = window.setTimeout(show, hasReducedMotion() ? CALM_MS : SHOW_MS);
      if (held.current || later.value.rows.length === 0) return;
      rows.value = [...later.value.rows, ...rows.value].slice(0, KEPT_MAX);
      later.value = { rows: [], dropped: 0 };
    };
    show();
    const connectTimer = setTimeout(connect, TYPING_MS);
    return () => {
      clearTimeout(showTimer);
      clearTimeout(connectTimer);
      live?.close();
      setSocket(undefined);
    };
  }, [url]);
  const waiting = useComputed(() => later.value.rows.length + later.value.dropped);
  return { rows, waiting, missed, fault, state: socket?.state.value };
}

/** Lists both, newest first by the time that is shown, without the requests that are in both: workers write side by side. */
export function joinRequests(
  newer: readonly LoggedRequest[],
  older: readonly LoggedRequest[],
): LoggedRequest[] {
  const seen = new Set(newer.map(idOf));
  const all = [...newer, ...older.filter((one) => !seen.has(idOf(one)))];
  return all.toSorted((one, other) => endMsOf(other) - endMsOf(one));
}

/** One of so many requests: raised tenfold while there are more than somebody can read, and lowered after the peak. */
export function useSample(rows: ReadonlySignal<readonly LoggedRequest[]>): number {
  const [sample, setSample] = useState(1);
  useEffect(() => {
    let newest = "";
    let count = 0;
    let quiet = 0;
    let sinceMs = performance.now();
    const stop = rows.subscribe((list) => {
      const at = list.findIndex((one) => idOf(one) === newest);
      count += at === -1 ? list.length : at;
      newest = list[0] === undefined ? "" : idOf(list[0]);
    });
    const timer = setInterval(() => {
      const perSecond = (count * 1_000) / (performance.now() - sinceMs);
      count = 0;
      sinceMs = performance.now();
      // Half of what is readable: one rate must not be too much for one sample and too little for the next.
      quiet = perSecond * SAMPLE_STEP < READABLE_PER_S / 2 ? quiet + 1 : 0;
      if (perSecond > READABLE_PER_S) {
        setSample((value) => Math.min(SAMPLE_MAX, value * SAMPLE_STEP));
      } else if (quiet >= QUIET_MAX) {
        quiet = 0;
        setSample((value) => Math.max(1, value / SAMPLE_STEP));
      }
    }, MEASURE_MS);
    return () => {
      stop();
      clearInterval(timer);
    };
  }, []);
  return sample;
}
