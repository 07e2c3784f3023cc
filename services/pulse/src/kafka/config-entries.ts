// Topic settings under the names that Kafka's tools use.
import { TOPIC_CONFIG_DEFAULT, type TopicConfig } from "@platform/log";
import type { ExtraChanges } from "./topic-settings.ts";

/** DescribeConfigs: the type of a value. */
const CONFIG_TYPES = { boolean: 1, string: 2, int: 3, long: 5, double: 6, list: 7 } as const;
/** DescribeConfigs: where a value comes from. */
export const CONFIG_SOURCES = { topic: 1, staticBroker: 4, default: 5 } as const;

/** A setting that can be changed. `key`: the log keeps it; otherwise it is kept for Kafka's tools. */
interface Setting {
  name: string;
  key?: keyof TopicConfig;
  type: number;
  fallback: string;
  documentation: string;
  /** The value as it is kept; undefined if it cannot be one. */
  read: (value: string) => string | undefined;
}

const INT_MAX = 2 ** 31 - 1;
/** What tools write for what has no bound. */
const LONG_MAX = "9223372036854775807";
const NO_EFFECT = "Kept for tools, without effect here";

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
    documentation: "Age after which a segment is dropped; -1 for never",
    read: wholeFrom(-1),
  },
  {
    name: "retention.bytes",
    key: "retentionBytes",
    type: CONFIG_TYPES.long,
    fallback: String(TOPIC_CONFIG_DEFAULT.retentionBytes),
    documentation: "Bytes that a partition keeps before it drops its oldest segment; -1 for all",
    read: wholeFrom(-1),
  },
  {
    name: "segment.bytes",
    key: "segmentBytes",
    type: CONFIG_TYPES.int,
    fallback: String(TOPIC_CONFIG_DEFAULT.segmentBytes),
    documentation: "Size from which on a segment is followed by a new one",
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
];

/** What a broker of one replica, which syncs before it acknowledges, does anyway, or decides for itself. */
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

/** Settings that tools send and that have one value here. */
const FIXED_SETTINGS: Readonly<Record<string, string>> = {
  "message.timestamp.type": "CreateTime",
  "min.insync.replicas": "1",
};

/** One setting as Kafka's tools see it. */
export interface ConfigEntry {
  name: string;
  value: string;
  readOnly: boolean;
  configSource: number;
  configType: number;
  documentation: string;
  /** Where the value comes from, and what it would be without that: the strongest first. */
  synonyms: readonly { name: string; value: string; source: number }[];
}

/** What a topic is set to: by the log's names, and what is kept for Kafka's tools by theirs. */
export interface TopicState {
  config: TopicConfig;
  extras: ReadonlyMap<string, string>;
  /** Largest batch that any topic takes. */
  batchBytesMax: number;
}

/** All settings of a topic. */
export function listTopicConfig({ config, extras, batchBytesMax }: TopicState): ConfigEntry[] {
  const own = listSettings(batchBytesMax).map((setting) => {
    const { name, key, type, documentation, fallback } = setting;
    const value = key === undefined ? extras.get(name) : String(config[key]);
    const byDefault = { name, value: fallback, source: CONFIG_SOURCES.default };
    // What the log keeps is set or not; of the others it is known whether somebody has set them.
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
    documentation: "Has one value here",
    synonyms: [{ name, value, source: CONFIG_SOURCES.default }],
  }));
  return [...own, ...fixed];
}

/** A change of settings, or why it cannot be made. */
export type ConfigChange =
  | { changes: Partial<TopicConfig>; extras: ExtraChanges }
  | { reason: string };

/** Reads settings by their Kafka names; a null value is the default. */
export function readTopicConfig(
  entries: readonly { name: string; value: string | null }[],
  batchBytesMax: number,
): ConfigChange {
  const changes: Partial<Record<keyof TopicConfig, string | number>> = {};
  const extras: Record<string, string | null> = {};
  const settings = listSettings(batchBytesMax);
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
      const text = read ?? setting.fallback;
      const number = Math.min(Number(text), Number.MAX_SAFE_INTEGER);
      changes[setting.key] = setting.key === "cleanupPolicy" ? text : number;
    }
  }
  return { changes: changes as Partial<TopicConfig>, extras };
}

/** The names that can be changed, for a request that sets all others back. */
export function listChangeable(): string[] {
  return listSettings(0).map(({ name }) => name);
}

function listSettings(batchBytesMax: number): Setting[] {
  const batchSize: Setting = {
    name: "max.message.bytes",
    type: CONFIG_TYPES.int,
    fallback: String(batchBytesMax),
    documentation: "Largest record batch that is taken, as it comes",
    read: wholeFrom(0, batchBytesMax),
  };
  return [...OWN_SETTINGS, batchSize, ...IDLE_SETTINGS];
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
