// Topic filters (section 4.7) and shared subscriptions (section 4.8.2), topic names of clients.
import { fromLevelName } from "../../topic/level-name.ts";
import { explainTopicName } from "../../topic/name.ts";
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

/** The broker's name for the topic name of a client. Throws 0x90 for names that cannot be published to. */
export function readTopicName(text: string): string {
  if (text.includes("+") || text.includes("#")) throw refuseName("a topic name has no wildcards");
  if (text.startsWith("$")) throw refuseName("topics that begin with $ are the server's");
  const name = fromLevelName(text);
  const reason = explainTopicName(name);
  if (reason !== undefined) throw refuseName(reason);
  return name;
}

function refuseName(detail: string): MqttError {
  return new MqttError(REASON.invalidTopicName, detail);
}
