// Server-sent events. https://html.spec.whatwg.org/multipage/server-sent-events.html

/** An event. `data` is sent as JSON unless it is a string. */
export interface ServerEvent {
  data: unknown;
  /** Name; default `message`. Without line breaks. */
  event?: string;
  /** Returned by the browser as `Last-Event-ID` when it reconnects. Without line breaks. */
  id?: string;
  /** Delay of the browser's reconnection in ms. */
  retry?: number;
}

/** Source of events. It is called with a signal that is aborted when the stream ends. */
export type EventSource = (signal: AbortSignal) => AsyncIterable<ServerEvent>;

/** An event stream as a result. */
export class EventStream {
  readonly source: EventSource;

  constructor(source: EventSource) {
    this.source = source;
  }
}

/**
 * Answers with an event stream, which ends when the source ends, the client disconnects or the service stops. A comment
 * is sent every 15 s, so that proxies keep the stream.
 *
 * ```ts
 * route("GET", "/ticks", () =>
 *   events(async function* (signal) {
 *     for await (const at of setInterval(1000, undefined, { signal })) yield { data: { at } };
 *   }),
 * );
 * ```
 */
export function events(source: EventSource): EventStream {
  return new EventStream(source);
}

/** Formats an event. Throws a TypeError if a name or an id contains a line break. */
export function formatEvent({ data, event, id, retry }: ServerEvent): string {
  const text = typeof data === "string" ? data : JSON.stringify(data ?? null);
  if (/[\r\n\0]/.test(`${event ?? ""}${id ?? ""}`)) {
    throw new TypeError("events: the name and the id of an event cannot contain line breaks");
  }
  const lines = [
    ...(event === undefined ? [] : [`event: ${event}`]),
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(retry === undefined ? [] : [`retry: ${Math.round(retry)}`]),
    ...text.split(/\r\n|\r|\n/).map((line) => `data: ${line}`),
  ];
  return `${lines.join("\n")}\n\n`;
}
