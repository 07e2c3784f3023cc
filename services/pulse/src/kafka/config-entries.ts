// Topic settings under the names of Kafka's tools.
import { TOPIC_CONFIG_DEFAULT, type TopicConfig } from "@platform/log";
import type { ExtraChanges } from "./topic-settings.ts";

/** DescribeConfigs: the type of a value. */
const CONFIG_TYPES = { boolean: 1, string: 2, int: 3, long: 5, double: 6, list: 7 } as const;
/** DescribeConfigs: the source of a value. */
export const CONFIG_SOURCES = { topic: 1, staticBroker: 4, default: 5 } as const;

/** A setting that can be changed. With `key` the log keeps it; otherwise it is stored for Kafka's tools. */
interface Setting {
  name: string;
  key?: keyof TopicConfig;
  type: number;
  fallback: string;
  documentation: string;
  /** Parses a value; `undefined` if it is invalid. */
  read: (value: string) => string | undefined;
}

const INT_MAX = 2 ** 31 - 1;
/** Written by tools for "unlimited". */
const LONG_MAX = "9223372036854775807";
const NO_EFFECT = "Stored for tools, without effect here";

const OWN_SETTINGS: readonly Setting[] = [
  {
    name: "cleanup.policy",
    key: "cleanupPolicy",
    type: CONFIG_TYPES.list,
    fallback: TOPIC_CONFIG_DEFAULT.cleanupPolicy,
    documentation: "delete drops old segments, compact keeps the last record of each key",
    read: readPolicy,
  },
  {
    name: "retention.ms",
    key: "retentionMs",
    type: CONFIG_TYPES.long,
    fallback: String(TOPIC_CONFIG_DEFAULT.retentionMs),
    documentation: "Age after which a segment is deleted; -1 for never",
    read: wholeFrom(-1),
  },
  {
    name: "retention.bytes",
    key: "retentionBytes",
    type: CONFIG_TYPES.long,
    fallback: String(TOPIC_CONFIG_DEFAULT.retentionBytes),
    documentation: "Size from which a partition deletes its oldest segments; -1 for unlimited",
    read: wholeFrom(-1),
  },
  {
    name: "segment.bytes",
    key: "segmentBytes",
    type: CONFIG_TYPES.int,
    fallback: String(TOPIC_CONFIG_DEFAULT.segmentBytes),
    documentation: "Size from which a new segment is started",
    read: wholeFrom(1024),
  },
  {
    name: "delete.retention.ms",
    key: "deleteRetentionMs",
    type: CONFIG_TYPES.long,
    fallback: String(TOPIC_CONFIG_DEFAULT.deleteRetentionMs),
    documentation: "How long compaction keeps tombstones",
    read: wholeFrom(0),
  },
  {
    name: "remote.storage.enable",
    key: "offload",
    type: CONFIG_TYPES.boolean,
    fallback: String(TOPIC_CONFIG_DEFAULT.offload),
    documentation: "Closed segments are uploaded to object storage; not for compact",
    read: readBoolean,
  },
  {
    name: "local.retention.ms",
    key: "localRetentionMs",
    type: CONFIG_TYPES.long,
    fallback: String(TOPIC_CONFIG_DEFAULT.localRetentionMs),
    documentation: "Age after which an uploaded segment leaves the disk; -2 as retention.ms",
    read: wholeFrom(-2),
  },
  {
    name: "local.retention.bytes",
    key: "localRetentionBytes",
    type: CONFIG_TYPES.long,
    fallback: String(TOPIC_CONFIG_DEFAULT.localRetentionBytes),
    documentation: "Size on the disk from which uploaded segments leave it; -2 as retention.bytes",
    read: wholeFrom(-2),
  },
];

/** Bounds of the timestamps of records; see `TopicSettings.timesOf`. */
const TIME_SETTINGS: readonly Setting[] = [
  timeBound("message.timestamp.before.max.ms", "before the broker's time"),
  timeBound("message.timestamp.after.max.ms", "after the broker's time"),
  timeBound(
    "message.timestamp.difference.max.ms",
    "before or after the broker's time where the newer settings are not set",
  ),
];

/** Settings whose behaviour is fixed in a broker with one replica that syncs before it acknowledges. */
const IDLE_SETTINGS: readonly Setting[] = [
  idle("compression.type", CONFIG_TYPES.string, "producer", (value) =>
    ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"].find((one) => one === value),
  ),
  idle("file.delete.delay.ms", CONFIG_TYPES.long, "60000", wholeFrom(0)),
  idle("flush.messages", CONFIG_TYPES.long, "1", wholeFrom(1)),
  idle("flush.ms", CONFIG_TYPES.long, "0", wholeFrom(0)),
  idle("index.interval.bytes", CONFIG_TYPES.int, "4096", wholeFrom(0, INT_MAX)),
  idle("min.cleanable.dirty.ratio", CONFIG_TYPES.double, "0.5", readRatio),
  idle("preallocate", CONFIG_TYPES.boolean, "false", readBoolean),
  idle("segment.index.bytes", CONFIG_TYPES.int, "10485760", wholeFrom(4, INT_MAX)),
  idle("segment.jitter.ms", CONFIG_TYPES.long, "0", wholeFrom(0)),
  idle("segment.ms", CONFIG_TYPES.long, "604800000", wholeFrom(1)),
  idle("unclean.leader.election.enable", CONFIG_TYPES.boolean, "false", readBoolean),
];

/** Settings that tools send and that have a fixed value here. */
const FIXED_SETTINGS: Readonly<Record<string, string>> = {
  "message.timestamp.type": "CreateTime",
  "min.insync.replicas": "1",
};

/** A setting in the form of Kafka's tools. */
export interface ConfigEntry {
  name: string;
  value: string;
  readOnly: boolean;
  configSource: number;
  configType: number;
  documentation: string;
  /** The sources of the value, highest precedence first. */
  synonyms: readonly { name: string; value: string; source: number }[];
}

/** The settings of a topic: those of the log, and those stored for Kafka's tools. */
export interface TopicState {
  config: TopicConfig;
  extras: ReadonlyMap<string, string>;
  /** Largest message of any topic, in bytes. */
  messageBytesMax: number;
}

/** All settings of a topic. */
export function listTopicConfig({ config, extras, messageBytesMax }: TopicState): ConfigEntry[] {
  const own = listSettings(messageBytesMax).map((setting) => {
    const { name, key, type, documentation, fallback } = setting;
    const stored = key === undefined ? extras.get(name) : String(config[key]);
    // A stored value that is no longer valid is above a limit that was lowered: the limit applies.
    const value = stored === undefined ? undefined : (setting.read(stored) ?? fallback);
    const byDefault = { name, value: fallback, source: CONFIG_SOURCES.default };
    // The log's settings are compared with the defaults; for the others it is known whether they were set.
    const isDefault = value === undefined || (key !== undefined && value === fallback);
    return {
      name,
      value: value ?? fallback,
      readOnly: false,
      configSource: isDefault ? CONFIG_SOURCES.default : CONFIG_SOURCES.topic,
      configType: type,
      documentation,
      synonyms: isDefault
        ? [byDefault]
        : [{ name, value, source: CONFIG_SOURCES.topic }, byDefault],
    };
  });
  const fixed = Object.entries(FIXED_SETTINGS).map(([name, value]) => ({
    name,
    value,
    readOnly: true,
    configSource: CONFIG_SOURCES.default,
    configType: CONFIG_TYPES.string,
    documentation: "Has a fixed value here",
    synonyms: [{ name, value, source: CONFIG_SOURCES.default }],
  }));
  return [...own, ...fixed];
}

/** A change of settings, or the reason why it is invalid. */
export type ConfigChange =
  | { changes: Partial<TopicConfig>; extras: ExtraChanges }
  | { reason: string };

/** Parses settings by their Kafka names; a null value is the default. */
export function readTopicConfig(
  entries: readonly { name: string; value: string | null }[],
  messageBytesMax: number,
): ConfigChange {
  const changes: Partial<Record<keyof TopicConfig, string | number | boolean>> = {};
  const extras: Record<string, string | null> = {};
  const settings = listSettings(messageBytesMax);
  const named = new Set<string>();
  for (const { name, value } of entries) {
    if (named.has(name)) return { reason: `${name} is there twice` };
    named.add(name);
    const fixed = FIXED_SETTINGS[name];
    if (Object.hasOwn(FIXED_SETTINGS, name)) {
      if (value === null || value === fixed) continue;
      return { reason: `${name} can only be ${fixed}` };
    }
    const setting = settings.find((one) => one.name === name);
    if (setting === undefined) return { reason: `${name} is not a setting of a topic here` };
    const read = value === null ? null : setting.read(value.trim());
    if (read === undefined) return { reason: `${name} cannot be "${value}"` };
    if (setting.key === undefined) extras[name] = read;
    else {
      changes[setting.key] = toStored(setting, read ?? setting.fallback);
    }
  }
  return { changes: changes as Partial<TopicConfig>, extras };
}

function toStored({ type }: Setting, text: string): string | number | boolean {
  if (type === CONFIG_TYPES.boolean) return text === "true";
  return type === CONFIG_TYPES.list ? text : Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

/** The names that can be changed, for requests that reset all others. */
export function listChangeable(): string[] {
  return listSettings(0).map(({ name }) => name);
}

function listSettings(messageBytesMax: number): Setting[] {
  const size: Setting = {
    name: "max.message.bytes",
    type: CONFIG_TYPES.int,
    fallback: String(messageBytesMax),
    documentation: "Largest message; if set, also the largest record batch, as received",
    read: wholeFrom(0, messageBytesMax),
  };
  return [...OWN_SETTINGS, size, ...TIME_SETTINGS, ...IDLE_SETTINGS];
}

function timeBound(name: string, place: string): Setting {
  return {
    name,
    type: CONFIG_TYPES.long,
    fallback: LONG_MAX,
    documentation: `Time by which the timestamp of a record may lie ${place}`,
    read: wholeFrom(0),
  };
}

function idle(name: string, type: number, fallback: string, read: Setting["read"]): Setting {
  return { name, type, fallback, documentation: NO_EFFECT, read };
}

function wholeFrom(min: number, max = Number.MAX_SAFE_INTEGER): Setting["read"] {
  return (value) => {
    if (value === LONG_MAX) return max === Number.MAX_SAFE_INTEGER ? value : undefined;
    const number = Number(value);
    const isWhole = /^-?\d{1,16}$/.test(value) && Number.isSafeInteger(number);
    return isWhole && number >= min && number <= max ? String(number) : undefined;
  };
}

function readRatio(value: string): string | undefined {
  return /^(?:0|1|[01]?\.\d{1,9})$/.test(value) && Number(value) <= 1 ? value : undefined;
}

function readBoolean(value: string): string | undefined {
  return ["true", "false"].find((one) => one === value.toLowerCase());
}

function readPolicy(value: string): string | undefined {
  const policy = value
    .split(",")
    .map((part) => part.trim())
    .sort()
    .join(",");
  return ["delete", "compact", "compact,delete"].find((one) => one === policy);
}
