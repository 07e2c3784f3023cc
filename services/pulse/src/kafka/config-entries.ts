// Topic settings under the names that Kafka's tools use.
import { topicConfigDefault, type TopicConfig } from "@platform/log";

/** DescribeConfigs: the type of a value. */
const configTypes = { long: 5, list: 7, int: 3, string: 2 } as const;
/** DescribeConfigs: where a value comes from. */
export const configSources = { topic: 1, staticBroker: 4, default: 5 } as const;

/** A setting that can be changed. */
interface Setting {
  name: string;
  key: keyof TopicConfig;
  type: number;
  documentation: string;
}

const settings: readonly Setting[] = [
  {
    name: "cleanup.policy",
    key: "cleanupPolicy",
    type: configTypes.list,
    documentation: "delete drops old segments, compact keeps the last record of each key",
  },
  {
    name: "retention.ms",
    key: "retentionMs",
    type: configTypes.long,
    documentation: "Age after which a segment is dropped; -1 for never",
  },
  {
    name: "retention.bytes",
    key: "retentionBytes",
    type: configTypes.long,
    documentation: "Bytes that a partition keeps before it drops its oldest segment; -1 for all",
  },
  {
    name: "segment.bytes",
    key: "segmentBytes",
    type: configTypes.int,
    documentation: "Size from which on a segment is followed by a new one",
  },
  {
    name: "delete.retention.ms",
    key: "deleteRetentionMs",
    type: configTypes.long,
    documentation: "How long compaction keeps tombstones",
  },
];

/** Settings that tools send and that have one value here. */
const fixedSettings: Readonly<Record<string, string>> = {
  "compression.type": "producer",
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

/** All settings of a topic. */
export function listTopicConfig(config: TopicConfig): ConfigEntry[] {
  const own = settings.map(({ name, key, type, documentation }) => {
    const value = String(config[key]);
    const fallback = {
      name,
      value: String(topicConfigDefault[key]),
      source: configSources.default,
    };
    const isDefault = value === fallback.value;
    return {
      name,
      value,
      readOnly: false,
      configSource: isDefault ? configSources.default : configSources.topic,
      configType: type,
      documentation,
      synonyms: isDefault ? [fallback] : [{ name, value, source: configSources.topic }, fallback],
    };
  });
  const fixed = Object.entries(fixedSettings).map(([name, value]) => ({
    name,
    value,
    readOnly: true,
    configSource: configSources.default,
    configType: configTypes.string,
    documentation: "Has one value here",
    synonyms: [{ name, value, source: configSources.default }],
  }));
  return [...own, ...fixed];
}

/** A change of settings, or why it cannot be made. */
export type ConfigChange = { changes: Partial<TopicConfig> } | { reason: string };

/** Reads settings by their Kafka names; a null value is the default. */
export function readTopicConfig(
  entries: readonly { name: string; value: string | null }[],
): ConfigChange {
  const changes: Partial<Record<keyof TopicConfig, string | number>> = {};
  for (const { name, value } of entries) {
    const fixed = fixedSettings[name];
    if (Object.hasOwn(fixedSettings, name)) {
      if (value === null || value === fixed) continue;
      return { reason: `${name} can only be ${fixed}` };
    }
    const setting = settings.find((one) => one.name === name);
    if (setting === undefined) return { reason: `${name} is not a setting of a topic here` };
    if (Object.hasOwn(changes, setting.key)) return { reason: `${name} is there twice` };
    const read = value === null ? topicConfigDefault[setting.key] : readValue(setting, value);
    if (read === undefined) return { reason: `${name} cannot be "${value}"` };
    changes[setting.key] = read;
  }
  return { changes: changes as Partial<TopicConfig> };
}

/** The names that can be changed, for a request that sets all others back. */
export function listChangeable(): string[] {
  return settings.map(({ name }) => name);
}

function readValue({ key }: Setting, value: string): string | number | undefined {
  if (key === "cleanupPolicy") {
    const policy = value
      .split(",")
      .map((part) => part.trim())
      .sort()
      .join(",");
    return ["delete", "compact", "compact,delete"].includes(policy) ? policy : undefined;
  }
  const number = /^-?\d{1,16}$/.test(value.trim()) ? Number(value) : Number.NaN;
  const min =
    key === "retentionMs" || key === "retentionBytes" ? -1 : key === "segmentBytes" ? 1024 : 0;
  return Number.isSafeInteger(number) && number >= min ? number : undefined;
}
