// The live feed of all services: figures each second, conditions and changes, over one WebSocket.
import type { Answer } from "../contract/answer.ts";
import { batch, computed, signal } from "@preact/signals";
import type {
  AttentionItem,
  ChangeItem,
  FigureInfo,
  FigureValues,
  LiveMessage,
  ServiceId,
} from "@platform/console/contract";
import { ApiFailure, call } from "../api/api.ts";
import { retryDelayMs } from "../api/retry.ts";
import {
  api,
  checkSession,
  config,
  endSession,
  noticeService,
  services,
  session,
} from "../session/session.ts";

/** Seconds of history: the width of the trace. */
export const HISTORY_S = 300;
/** A hidden tab gives up its connection after this time. */
const HIDDEN_MS = 60_000;
const CHANGES_MAX = 100;
/** Without a message for this time the feed counts as lost. */
const SILENCE_MS = 10_000;
const SESSION_ENDED = 4401;
/** Time after which a refused feed is tried again: permissions follow roles. */
const REFUSED_MS = 60_000;
const FORBIDDEN = 403;

/** The feed of one service. */
export interface ServiceFeed {
  isUp: boolean;
  /** Epoch ms since which its feed is lost. */
  downSince: number;
  detail: string;
  /** Status of a refusal, such as 403; 0 if it did not answer. */
  status: number;
  figures: readonly FigureInfo[];
  values: FigureValues;
  attention: readonly AttentionItem[];
  changes: readonly ChangeItem[];
  /** Last values by figure, one a second, oldest first. */
  history: Map<string, (number | null)[]>;
}

/** True if the service refuses its figures to this account; it may be up. */
export function isRefused(feed: ServiceFeed | undefined): boolean {
  return feed?.isUp === false && (feed.status === 401 || feed.status === 403);
}

/** True if the service does not answer. */
export function isDown(feed: ServiceFeed | undefined): boolean {
  return feed?.isUp === false && !isRefused(feed);
}

/** State of the connection. */
export type LiveState =
  | { kind: "connecting" }
  | { kind: "live" }
  /** The account may not see the figures of the only service. */
  | { kind: "refused" }
  | { kind: "lost"; since: number; retryAt: number };

/** State of the connection. */
export const liveState = signal<LiveState>({ kind: "connecting" });
/** Feeds by service; replaced with each message. */
export const feeds = signal<ReadonlyMap<ServiceId, ServiceFeed>>(new Map());

/** Conditions of all services, most severe first. */
export const attention = computed<AttentionItem[]>(() =>
  [...feeds.value.values()]
    .flatMap((feed) => feed.attention)
    .sort((one, other) =>
      one.level === other.level
        ? one.since.localeCompare(other.since)
        : one.level === "critical"
          ? -1
          : 1,
    ),
);

/** Changes of all services, newest first. */
export const changes = computed<(ChangeItem & { service: ServiceId })[]>(() =>
  [...feeds.value]
    .flatMap(([service, feed]) => feed.changes.map((change) => ({ ...change, service })))
    .sort((one, other) => other.at.localeCompare(one.at))
    .slice(0, CHANGES_MAX),
);

let socket: WebSocket | undefined;
/** One after another: on a slow network they would hold up what the page itself loads. */
let seeds = Promise.resolve();
let attempts = 0;
let retryTimer = 0;
let hiddenTimer = 0;
let silenceTimer = 0;

/**
 * Connects, and stays connected while the tab is visible. Returns a function that ends it: the next session may see
 * less.
 */
export function startLive(): () => void {
  document.addEventListener("visibilitychange", handleVisibility);
  connect();
  return () => {
    document.removeEventListener("visibilitychange", handleVisibility);
    for (const timer of [retryTimer, hiddenTimer, silenceTimer]) clearTimeout(timer);
    const closed = socket;
    socket = undefined;
    closed?.close();
    attempts = 0;
    liveState.value = { kind: "connecting" };
    feeds.value = new Map();
  };
}

/** Connects immediately instead of waiting for the next attempt. */
export function retryLive(): void {
  clearTimeout(retryTimer);
  if (socket === undefined) connect();
}

/** Last value of a figure; undefined if the service has no such figure. */
export function figureOf(service: ServiceId, name: string): number | null | undefined {
  return feeds.value.get(service)?.values[name];
}

/** History of a figure, one value a second. */
export function historyOf(service: ServiceId, name: string): readonly (number | null)[] {
  return feeds.value.get(service)?.history.get(name) ?? [];
}

/** Series of a service over a longer time. */
export type Series = Extract<Answer<"gate", "GET /admin/series">, { series: unknown }>;

/** Reads figures over time. */
export async function readSeries(
  service: ServiceId,
  names: readonly string[],
  fromMs: number,
  stepS: 1 | 10 | 300,
): Promise<Series> {
  const query = `names=${encodeURIComponent(names.join(","))}&from=${Math.floor(fromMs)}&step=${stepS}`;
  return await call<Series>(api(service, `/admin/series?${query}`));
}

function connect(): void {
  if (!session.value) return;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const opened = new WebSocket(`${scheme}://${location.host}/console/live`);
  socket = opened;
  opened.addEventListener("message", (event) => {
    if (socket !== opened) return;
    attempts = 0;
    watchSilence(opened);
    if (liveState.value.kind !== "live") liveState.value = { kind: "live" };
    receive(JSON.parse(String(event.data)) as LiveMessage);
  });
  opened.addEventListener("close", (event) => {
    if (socket === opened) lose(event.code);
  });
}

function watchSilence(opened: WebSocket): void {
  clearTimeout(silenceTimer);
  silenceTimer = window.setTimeout(() => {
    opened.close();
    if (socket === opened) lose(0);
  }, SILENCE_MS);
}

function lose(code: number): void {
  socket = undefined;
  clearTimeout(silenceTimer);
  if (code === SESSION_ENDED) {
    endSession();
    return;
  }
  // A refused handshake has no reason that a page can read: the console may have lost the session.
  if (attempts > 0) void checkSession();
  if (attempts === 0 || liveState.value.kind === "refused") void noticeRefusal();
  const waitMs = liveState.value.kind === "refused" ? REFUSED_MS : retryDelayMs(attempts);
  attempts += 1;
  clearTimeout(retryTimer);
  if (!document.hidden) retryTimer = window.setTimeout(connect, waitMs);
  if (liveState.value.kind === "refused") return;
  const since = liveState.value.kind === "lost" ? liveState.value.since : Date.now();
  liveState.value = { kind: "lost", since, retryAt: Date.now() + waitMs };
}

/**
 * Asks a service that is alone whether it refuses this account: a page cannot read the status of a refused handshake. A
 * platform says it in the feed.
 */
async function noticeRefusal(): Promise<void> {
  const [only] = services.value;
  if (config.value?.mode !== "service" || only === undefined) return;
  const failure = await call(api(only.id, "/admin/attention")).then(
    () => undefined,
    (error: unknown) => error,
  );
  // The answer may come while the next attempt is in flight.
  if (liveState.value.kind === "live") return;
  if (!(failure instanceof ApiFailure) || failure.status !== FORBIDDEN) {
    if (liveState.value.kind === "refused") retryLive();
    return;
  }
  const { status, message: detail } = failure;
  receive({ type: "down", service: only.id, since: Date.now(), status, detail });
  liveState.value = { kind: "refused" };
  clearTimeout(retryTimer);
  if (socket === undefined && !document.hidden) retryTimer = window.setTimeout(connect, REFUSED_MS);
}

function handleVisibility(): void {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    hiddenTimer = window.setTimeout(() => socket?.close(1000), HIDDEN_MS);
  } else if (socket === undefined) {
    retryLive();
  }
}

function receive(message: LiveMessage): void {
  batch(() => {
    const next = new Map(feeds.value);
    next.set(message.service, reduce(next.get(message.service) ?? emptyFeed(), message));
    feeds.value = next;
  });
  if (message.type === "hello") {
    const { service, figures } = message;
    void noticeService(service);
    seeds = seeds.then(() => seed(service, figures));
  }
}

function reduce(feed: ServiceFeed, message: LiveMessage): ServiceFeed {
  switch (message.type) {
    case "hello": {
      const { figures, values, attention: items, changes: made } = message;
      return { ...feed, isUp: true, figures, values, attention: items, changes: made };
    }
    case "figures": {
      append(feed.history, message.values);
      return { ...feed, isUp: true, values: message.values };
    }
    case "attention":
      return { ...feed, attention: message.items };
    case "change":
      return { ...feed, changes: [...feed.changes, message].slice(-CHANGES_MAX) };
    case "down": {
      const { since, status, detail } = message;
      return { ...feed, isUp: false, downSince: since, status, detail };
    }
    default:
      // A message of a newer server.
      return feed;
  }
}

function emptyFeed(): ServiceFeed {
  return {
    isUp: false,
    downSince: 0,
    detail: "",
    status: 0,
    figures: [],
    values: {},
    attention: [],
    changes: [],
    history: new Map(),
  };
}

function append(history: ServiceFeed["history"], values: FigureValues): void {
  for (const [name, value] of Object.entries(values)) {
    let kept = history.get(name);
    if (kept === undefined) history.set(name, (kept = []));
    kept.push(value);
    if (kept.length > HISTORY_S) kept.shift();
  }
}

/** Fills the history with what the service kept before the page was opened. */
async function seed(service: ServiceId, figures: readonly FigureInfo[]): Promise<void> {
  const names = figures.map(({ name }) => name).slice(0, 50);
  if (names.length === 0) return;
  const read = await readSeries(service, names, Date.now() - HISTORY_S * 1000, 1).catch(
    () => undefined,
  );
  const feed = feeds.value.get(service);
  if (read === undefined || feed === undefined) return;
  for (const { name, values } of read.series) feed.history.set(name, values.slice(-HISTORY_S));
  feeds.value = new Map(feeds.value);
}
