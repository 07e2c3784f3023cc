// Messaging in memory: topics, subscriptions by server-sent events, groups with acknowledgement and redelivery.
import type { ServerResponse } from "node:http";
import {
  answerJson,
  FakeRefusal,
  parseJson,
  type FakeAnswer,
  type FakeRequest,
} from "./exchange.ts";

/** A message as it is sent to subscribers. */
export interface FakeMessage {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly message_id: string;
  readonly key: string | null;
  readonly payload: string;
  readonly encoding?: "base64";
  readonly timestamp: number;
  readonly priority: number;
  readonly headers: Readonly<Record<string, string>>;
}

interface Stored {
  readonly message: FakeMessage;
  /** Position among the messages of all topics. */
  readonly sequence: number;
  readonly expiresMs: number;
}

interface Delivery {
  readonly stored: Stored;
  readonly retries: number;
}

interface Stream {
  readonly matches: (topic: string) => boolean;
  readonly group: Group | undefined;
  readonly prefetch: number;
  readonly write: (text: string) => void;
}

interface Group {
  readonly name: string;
  readonly topic: string;
  readonly waiting: Delivery[];
  readonly inFlight: Map<string, Delivery & { stream: Stream; sinceMs: number }>;
  readonly members: Set<Stream>;
}

const MESSAGES_MAX = 10_000;
const TOPICS_MAX = 1_000;
const PAYLOAD_BYTES_MAX = 1_048_576;
const STREAMS_MAX = 1_000;
const DELAYED_MAX = 10_000;
const SAME_ID_MS = 300_000;
const ACK_WAIT_MS = 30_000;
const KEEP_ALIVE_MS = 15_000;
const TOPIC = /^(?!__)[^\s:*#+/\\"$]{1,249}$/u;

/** The topics of the service under test. */
export class FakeBroker {
  readonly #now: () => number;
  readonly #topics = new Map<string, Stored[]>();
  readonly #ends = new Map<string, number>();
  readonly #groups = new Map<string, Group>();
  readonly #streams = new Set<Stream>();
  readonly #delayed: { dueMs: number; body: Record<string, unknown> }[] = [];
  readonly #ids = new Map<string, number>();
  readonly #closers = new Set<() => void>();
  #sequence = 0;

  /** `now` is the time in epoch milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** All messages, oldest first. */
  get published(): FakeMessage[] {
    const all = [...this.#topics.values()].flat();
    return all.toSorted((a, b) => a.sequence - b.sequence).map(({ message }) => message);
  }

  /** Forgets all messages and groups, and ends all subscriptions. */
  clear(): void {
    for (const close of this.#closers) close();
    for (const map of [this.#topics, this.#ends, this.#groups, this.#ids]) map.clear();
    this.#streams.clear();
    this.#delayed.length = 0;
  }

  /** Delivers what is due after the clock has moved. */
  tick(): void {
    const nowMs = this.#now();
    const due = this.#delayed.filter(({ dueMs }) => dueMs <= nowMs);
    for (const one of due) {
      this.#delayed.splice(this.#delayed.indexOf(one), 1);
      this.#store(one.body);
    }
    for (const group of this.#groups.values()) {
      for (const [place, { stored, retries, sinceMs }] of group.inFlight) {
        if (nowMs - sinceMs < ACK_WAIT_MS) continue;
        group.inFlight.delete(place);
        group.waiting.unshift({ stored, retries: retries + 1 });
      }
      this.#pump(group);
    }
  }

  /** Names of the groups that have not acknowledged a message; undefined if no subscription has ever been for its topic. */
  findUnacknowledged(topic: string, offset: number): string[] | undefined {
    const groups = [...this.#groups.values()].filter((group) => group.topic === topic);
    const isRead = groups.length > 0 || [...this.#streams].some(({ matches }) => matches(topic));
    if (!isRead) return undefined;
    const isOpen = ({ waiting, inFlight }: Group): boolean =>
      [...waiting, ...inFlight.values()].some(({ stored }) => stored.message.offset === offset);
    return groups.filter(isOpen).map(({ name }) => name);
  }

  handle(request: FakeRequest): FakeAnswer {
    const { method, path } = request;
    if (method === "POST" && path === "api/v1/publish") {
      const { id } = this.publish(parseJson(request));
      return answerJson({ message_id: id });
    }
    if (method === "POST" && path === "api/v1/ack") return this.#acknowledge(parseJson(request));
    const [, name] = /^api\/v1\/subscribe\/(.+)$/.exec(path) ?? [];
    if (method === "GET" && name !== undefined) return this.#subscribe(name, request);
    throw new FakeRefusal(
      404,
      "not_found",
      "The fake of messaging has publish, subscribe and ack.",
    );
  }

  /** Stores a message in the form of the API. `offset` is undefined for one that is delayed or dropped as a repetition. */
  publish(body: Record<string, unknown>): { id: string; offset: number | undefined } {
    const { topic, payload, message_id: id, delay_ms: delay } = body;
    if (typeof topic !== "string" || !TOPIC.test(topic)) throw invalid("topic: not a valid name");
    if (typeof payload !== "string") throw invalid("payload: expected text");
    if (Buffer.byteLength(payload) > PAYLOAD_BYTES_MAX) {
      throw new FakeRefusal(413, "payload_too_large", "The message has more than 1048576 bytes.");
    }
    const nowMs = this.#now();
    if (typeof id === "string") {
      const key = `${topic} ${id}`;
      const seenMs = this.#ids.get(key);
      if (seenMs !== undefined && nowMs - seenMs < SAME_ID_MS) return { id, offset: undefined };
      if (this.#ids.size >= MESSAGES_MAX) this.#ids.clear();
      this.#ids.set(key, nowMs);
    }
    if (typeof delay === "number" && delay > 0) {
      if (this.#delayed.length >= DELAYED_MAX) throw overloaded("delayed messages");
      const delayedId = typeof id === "string" ? id : `delayed-${++this.#sequence}`;
      this.#delayed.push({ dueMs: nowMs + delay, body: { ...body, message_id: delayedId } });
      return { id: delayedId, offset: undefined };
    }
    const { message } = this.#store(body);
    return { id: message.message_id, offset: message.offset };
  }

  #store(body: Record<string, unknown>): Stored {
    const { topic, payload, encoding, key, message_id: id, priority, headers, ttl_ms: ttl } = body;
    const name = topic as string;
    if (!this.#topics.has(name) && this.#topics.size >= TOPICS_MAX) throw overloaded("topics");
    const offset = this.#ends.get(name) ?? 0;
    const nowMs = this.#now();
    const message: FakeMessage = {
      topic: name,
      partition: 0,
      offset,
      message_id: typeof id === "string" ? id : `0:${offset}`,
      key: typeof key === "string" ? key : null,
      payload: payload as string,
      ...(encoding === "base64" && { encoding }),
      timestamp: nowMs,
      priority: typeof priority === "number" ? priority : 0,
      headers: (headers ?? {}) as Record<string, string>,
    };
    const expiresMs = typeof ttl === "number" ? nowMs + ttl : Infinity;
    const stored = { message, sequence: ++this.#sequence, expiresMs };
    const list = this.#topics.get(name) ?? [];
    this.#topics.set(name, list);
    this.#ends.set(name, offset + 1);
    list.push(stored);
    if (list.length > MESSAGES_MAX) list.shift();
    for (const stream of this.#streams) {
      if (stream.group === undefined && stream.matches(name)) this.#send(stream, stored);
    }
    for (const group of this.#groups.values()) {
      if (group.topic !== name) continue;
      group.waiting.push({ stored, retries: 0 });
      this.#pump(group);
    }
    return stored;
  }

  #acknowledge({ topic, group: name, id }: Record<string, unknown>): FakeAnswer {
    const group = this.#groups.get(`${String(topic)} ${String(name)}`);
    if (group === undefined) throw new FakeRefusal(404, "not_found", "There is no such group.");
    group.inFlight.delete(String(id));
    this.#pump(group);
    return answerJson({});
  }

  #subscribe(topic: string, { url, headers }: FakeRequest): FakeAnswer {
    const name = url.searchParams.get("group");
    const isPattern = /[*#]/.test(topic);
    if (name !== null && isPattern) {
      throw invalid("A group subscribes to one topic, not to a pattern.");
    }
    if (!isPattern && !TOPIC.test(topic)) throw invalid("topic: not a valid name");
    if (this.#streams.size >= STREAMS_MAX) throw overloaded("subscriptions");
    const matches = isPattern ? compilePattern(topic) : (other: string) => other === topic;
    const lastId = headers["last-event-id"];
    const from = url.searchParams.get("from");
    const past = this.#findPast(matches, from, typeof lastId === "string" ? lastId : undefined);
    const group = name === null ? undefined : this.#openGroup(topic, name, past);
    const prefetch = Number(url.searchParams.get("prefetch") ?? 100);
    const stream = (response: ServerResponse): void => {
      const write = (text: string): void => void response.write(text);
      this.#open({ matches, group, prefetch, write }, response, group === undefined ? past : []);
    };
    return { status: 200, headers: { "Content-Type": "text/event-stream" }, stream };
  }

  #findPast(
    matches: (topic: string) => boolean,
    from: string | null,
    lastId: string | undefined,
  ): Stored[] {
    const all = [...this.#topics].filter(([name]) => matches(name)).flatMap(([, list]) => list);
    const sorted = all.toSorted((a, b) => a.sequence - b.sequence);
    if (lastId !== undefined) return sorted.filter(({ sequence }) => sequence > Number(lastId));
    if (from === "earliest") return sorted;
    if (from === null || from === "latest") return [];
    return sorted.filter(({ message }) => message.offset >= Number(from));
  }

  #openGroup(topic: string, name: string, past: readonly Stored[]): Group {
    const key = `${topic} ${name}`;
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    if (this.#groups.size >= TOPICS_MAX) throw overloaded("groups");
    const waiting = past.map((stored) => ({ stored, retries: 0 }));
    const group: Group = { name, topic, waiting, inFlight: new Map(), members: new Set() };
    this.#groups.set(key, group);
    return group;
  }

  #open(stream: Stream, response: ServerResponse, past: readonly Stored[]): void {
    const { group } = stream;
    this.#streams.add(stream);
    const timer = setInterval(() => stream.write(":\n\n"), KEEP_ALIVE_MS).unref();
    const end = (): void => void response.end();
    this.#closers.add(end);
    for (const stored of past) this.#send(stream, stored);
    if (group !== undefined) {
      group.members.add(stream);
      this.#pump(group);
    }
    response.once("close", () => {
      clearInterval(timer);
      this.#closers.delete(end);
      this.#streams.delete(stream);
      if (group !== undefined) this.#leave(group, stream);
    });
  }

  /** Messages that the member has not acknowledged are delivered again, before those that wait. */
  #leave(group: Group, stream: Stream): void {
    group.members.delete(stream);
    const own = [...group.inFlight].filter(([, delivery]) => delivery.stream === stream);
    for (const [place, { stored, retries }] of own.toReversed()) {
      group.inFlight.delete(place);
      group.waiting.unshift({ stored, retries: retries + 1 });
    }
    this.#pump(group);
  }

  #pump(group: Group): void {
    for (const stream of group.members) {
      const open = [...group.inFlight.values()].filter((one) => one.stream === stream).length;
      for (let count = open; count < stream.prefetch && group.waiting.length > 0; count++) {
        const { stored, retries } = group.waiting.shift()!;
        if (stored.expiresMs <= this.#now()) continue;
        const place = `0:${stored.message.offset}`;
        group.inFlight.set(place, { stored, retries, stream, sinceMs: this.#now() });
        const wire = retries === 0 ? stored.message : { ...stored.message, retry_count: retries };
        stream.write(`id: ${place}\ndata: ${JSON.stringify(wire)}\n\n`);
      }
    }
  }

  #send(stream: Stream, { message, sequence, expiresMs }: Stored): void {
    if (expiresMs <= this.#now()) return;
    stream.write(`id: ${sequence}\ndata: ${JSON.stringify(message)}\n\n`);
  }
}

/** `*` is one level, `#` any number. */
function compilePattern(text: string): (name: string) => boolean {
  const matchLevels = (pattern: readonly string[], levels: readonly string[]): boolean => {
    const [first, ...rest] = pattern;
    if (first === undefined) return levels.length === 0;
    if (first === "#") {
      return (
        levels.length + 1 > rest.length &&
        levels.concat("").some((_, at) => matchLevels(rest, levels.slice(at)))
      );
    }
    if (levels.length === 0 || (first !== "*" && first !== levels[0])) return false;
    return matchLevels(rest, levels.slice(1));
  };
  const pattern = text.split(".");
  if (pattern.some((level) => /[*#]/.test(level) && level.length > 1)) {
    throw invalid("topic: a wildcard stands for whole levels");
  }
  return (name) => matchLevels(pattern, name.split("."));
}

function invalid(detail: string): FakeRefusal {
  return new FakeRefusal(400, "validation_failed", detail);
}

function overloaded(what: string): FakeRefusal {
  return new FakeRefusal(503, "unavailable", `The fake of messaging has too many ${what}.`);
}
