// The headers of SUBSCRIBE.
import type { StartAt } from "../dispatch/subscription.ts";
import { isPattern } from "../topic/pattern.ts";
import { parseDestination, QUEUE_GROUP, type Destination } from "./destination.ts";
import type { Frame } from "./frame/frame.ts";
import { StompError } from "./frame/stomp-error.ts";
import type { StompVersion } from "./frame/version.ts";
import { readFlag, readInteger, requireHeader } from "./header-values.ts";

const PREFETCH_DEFAULT = 100;
const PREFETCH_MAX = 10_000;
const ACK_WAIT_MS_MIN = 100;
const ACK_WAIT_MS_MAX = 43_200_000;
const ID_CHARS_MAX = 1_024;

/** Modes of acknowledgement (STOMP 1.2, "SUBSCRIBE ack Header"). */
type AckMode = "auto" | "client" | "client-individual";

/** A parsed SUBSCRIBE. */
export interface SubscribeRequest {
  /** Identifies the subscription on its connection: the header `id`, or in 1.0 without it the destination. */
  key: string;
  /** The header `id`, which deliveries repeat; undefined without it. */
  id: string | undefined;
  destination: Destination;
  ackMode: AckMode;
  /** The shared subscription of a group or a durable subscription; undefined for a plain one. */
  group: string | undefined;
  /** A durable subscription has one subscriber at a time. */
  isDurable: boolean;
  startAt: StartAt;
  prefetch: number;
  /** Acknowledgement timeout in ms; undefined for the broker's default. */
  ackWaitMs: number | undefined;
}

/** Parses SUBSCRIBE. `clientId`: the header `client-id` of CONNECT. Throws a `StompError`. */
export function readSubscribeRequest(
  frame: Frame,
  version: StompVersion,
  clientId: string | undefined,
): SubscribeRequest {
  const { headers } = frame;
  const destination = parseDestination(requireHeader(frame, "destination"));
  if (headers.has("selector")) {
    throw new StompError(
      "invalid",
      "selectors are not supported: subscribe to a topic or a pattern",
    );
  }
  const id = version === "1.0" ? headers.get("id") : requireHeader(frame, "id");
  const name = readDurableName(frame, id);
  const group = name === undefined ? readGroup(frame, destination) : toDurableGroup(clientId, name);
  if (group !== undefined && isPattern(destination.name)) {
    throw new StompError(
      "invalid",
      "groups and durable subscriptions are to one topic, not to a pattern",
    );
  }
  return {
    key: readKey(id ?? requireHeader(frame, "destination")),
    id,
    destination,
    ackMode: readAckMode(headers.get("ack"), version),
    group,
    isDurable: name !== undefined,
    startAt: readFrom(headers.get("from")),
    prefetch: readPrefetch(frame),
    ackWaitMs: readInteger(frame, "ack-wait-ms", ACK_WAIT_MS_MIN, ACK_WAIT_MS_MAX),
  };
}

/**
 * The name of a durable subscription; undefined for others. `durable:true` with the header `id`, or
 * `durable-subscription-name`, or as for ActiveMQ `activemq.subscriptionName`.
 */
export function readDurableName(frame: Frame, id: string | undefined): string | undefined {
  const { headers } = frame;
  const name = headers.get("durable-subscription-name") ?? headers.get("activemq.subscriptionName");
  if (name === undefined && !readFlag(frame, "durable")) return undefined;
  if (name ?? id) return name ?? id;
  throw new StompError("invalid", "a durable subscription needs the header id");
}

/** The group of a durable subscription. Subscriptions of clients with different `client-id` are different. */
export function toDurableGroup(clientId: string | undefined, name: string): string {
  return `stomp:${encodeURIComponent(clientId ?? "")}:${name}`;
}

function readGroup({ headers }: Frame, { prefix }: Destination): string | undefined {
  return headers.get("group") ?? (prefix === "/queue/" ? QUEUE_GROUP : undefined);
}

function readKey(key: string): string {
  if (key.length <= ID_CHARS_MAX) return key;
  throw new StompError(
    "too-large",
    `the id of a subscription has ${ID_CHARS_MAX} characters at most`,
  );
}

function readAckMode(text: string | undefined, version: StompVersion): AckMode {
  if (text === undefined || text === "auto") return "auto";
  if (text === "client" || (text === "client-individual" && version !== "1.0")) return text;
  const modes = version === "1.0" ? "auto or client" : "auto, client or client-individual";
  throw new StompError("invalid", `the header ack is ${modes}`);
}

function readPrefetch(frame: Frame): number {
  for (const name of ["prefetch", "prefetch-count", "activemq.prefetchSize"]) {
    const prefetch = readInteger(frame, name, 1, PREFETCH_MAX);
    if (prefetch !== undefined) return prefetch;
  }
  return PREFETCH_DEFAULT;
}

function readFrom(from: string | undefined): StartAt {
  if (from === undefined || from === "latest") return () => undefined;
  if (from === "earliest") return () => 0;
  if (/^\d{1,15}$/.test(from)) return () => Number(from);
  throw new StompError("invalid", "the header from is earliest, latest or an offset");
}
