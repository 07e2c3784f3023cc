// Topic filters (section 4.7) and shared subscriptions (section 4.8.2), topic names of clients (section 4.7.2).
import { fromLevelName } from "../../topic/level-name.ts";
import { explainTopicName } from "../../topic/name.ts";
import type { Version } from "../packet/packets.ts";
import { MqttError, REASON } from "../packet/reason-codes.ts";

/** Longest filter in bytes. Topic names are shorter. */
const FILTER_BYTES_MAX = 1_024;

/** A parsed filter. */
export interface TopicFilter {
  /** As the client wrote it: the key of the subscription. */
  text: string;
  levels: readonly string[];
  isWildcard: boolean;
  /** The group of a shared subscription. */
  group: string | undefined;
}

/** Parses a filter. Throws 0x8F for an invalid one. */
export function parseFilter(text: string): TopicFilter {
  if (text === "") throw refuseFilter("a topic filter is empty");
  if (Buffer.byteLength(text) > FILTER_BYTES_MAX) {
    throw refuseFilter(`topic filters have ${FILTER_BYTES_MAX} bytes at most`);
  }
  if (text.startsWith("$share/")) return parseShared(text);
  return { text, ...parseLevels(text), group: undefined };
}

function parseShared(text: string): TopicFilter {
  const rest = text.slice("$share/".length);
  const slash = rest.indexOf("/");
  const group = rest.slice(0, Math.max(0, slash));
  if (slash < 1 || /[+#]/.test(group)) {
    throw refuseFilter(
      "a shared subscription is $share/, a name without wildcards, / and a filter",
    );
  }
  const filter = rest.slice(slash + 1);
  if (filter === "") throw refuseFilter("a topic filter is empty");
  return { text, ...parseLevels(filter), group };
}

function parseLevels(text: string): { levels: string[]; isWildcard: boolean } {
  const levels = text.split("/");
  let isWildcard = false;
  for (const [index, level] of levels.entries()) {
    if (level === "+" || (level === "#" && index === levels.length - 1)) isWildcard = true;
    else if (/[+#]/.test(level)) {
      throw refuseFilter("+ stands for a whole level, # for all levels at the end");
    }
  }
  return { levels, isWildcard };
}

function refuseFilter(detail: string): MqttError {
  return new MqttError(REASON.invalidTopicFilter, detail);
}

/** Destination of a message of a client. */
export type Destination =
  /** A topic, by the broker's name. */
  | { kind: "topic"; name: string }
  /** Nowhere: it is acknowledged and dropped. */
  | { kind: "dropped" }
  /** Nowhere: the acknowledgement has the reason, or the connection ends where it cannot have one. */
  | { kind: "refused"; error: MqttError };

const DROPPED: Destination = { kind: "dropped" };

/**
 * Reads the topic name of a PUBLISH or of a will. Topics that begin with `$` are the server's (section 4.7.2). Messages
 * below `$SYS/` are dropped, since bridges publish their state there. Others are refused, or dropped in MQTT 3.1.1, where
 * a refusal would be a closed connection. Throws 0x90 for names with wildcards (MQTT-3.3.2-2).
 */
export function readDestination(text: string, version: Version): Destination {
  if (text.includes("+") || text.includes("#")) throw refuseName("a topic name has no wildcards");
  if (text.startsWith("$SYS/")) return DROPPED;
  if (text.startsWith("$")) {
    if (version === 4) return DROPPED;
    return { kind: "refused", error: refuseName("topics that begin with $ are the server's") };
  }
  const name = fromLevelName(text);
  const reason = explainTopicName(name);
  return reason === undefined
    ? { kind: "topic", name }
    : { kind: "refused", error: refuseName(reason) };
}

function refuseName(detail: string): MqttError {
  return new MqttError(REASON.invalidTopicName, detail);
}
