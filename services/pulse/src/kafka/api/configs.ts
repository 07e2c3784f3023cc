// DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: settings of topics, and read-only ones of the broker.
import type { TopicConfig } from "@platform/log";
import { FINE, toAnswer, type Answer } from "../answer.ts";
import { findTopic, NODE_ID, stateOf, type KafkaBroker } from "../broker.ts";
import {
  CONFIG_SOURCES,
  listChangeable,
  listTopicConfig,
  readTopicConfig,
  type ConfigChange,
  type ConfigEntry,
} from "../config-entries.ts";
import { ERROR_CODES, type ErrorCode } from "../protocol/error-codes.ts";
import {
  alterConfigs,
  CONFIG_OPERATIONS,
  describeConfigs,
  incrementalAlterConfigs,
} from "../protocol/messages/index.ts";
import { allow, requireRight } from "../server/access.ts";
import { route, type Route } from "../server/route.ts";
import { principalOf } from "../server/session.ts";
import type { Principal } from "../../user/principal.ts";

const RESOURCE_TYPES = { topic: 2, broker: 4 } as const;

/** Creates the routes of settings. */
export function createConfigRoutes(broker: KafkaBroker): Route[] {
  return [
    route(
      describeConfigs,
      allow("any", (request, { session }) => {
        const { resources, includeSynonyms, includeDocumentation } = request;
        const principal = principalOf(session);
        const results = resources.map(({ resourceType, resourceName, configurationKeys }) => {
          const found = findEntries(broker, principal, resourceType, resourceName);
          const place = { resourceType, resourceName };
          if (!Array.isArray(found)) return { ...found, ...place, configs: [] };
          const wanted = found.filter(({ name }) => configurationKeys?.includes(name) ?? true);
          const configs = wanted.map(({ documentation, synonyms, ...entry }) => ({
            ...entry,
            isSensitive: false,
            synonyms: includeSynonyms ? synonyms : [],
            documentation: includeDocumentation ? documentation : null,
          }));
          return { ...FINE, ...place, configs };
        });
        return { throttleTimeMs: 0, results };
      }),
    ),

    route(
      alterConfigs,
      requireRight(
        "manage",
        ({ resources }) => refuseChange(resources),
        async ({ resources, validateOnly }, { session }) => {
          const principal = principalOf(session);
          const responses = resources.map(async ({ resourceType, resourceName, configs }) => {
            const named = new Set(configs.map(({ name }) => name));
            const others = listChangeable().filter((name) => !named.has(name));
            const all = [...configs, ...others.map((name) => ({ name, value: null }))];
            const resource = { resourceType, resourceName };
            return {
              ...(await change(
                broker,
                principal,
                resource,
                readTopicConfig(all, broker.settings.limits.messageBytesMax),
                validateOnly,
              )),
              ...resource,
            };
          });
          return { throttleTimeMs: 0, responses: await Promise.all(responses) };
        },
      ),
    ),

    route(
      incrementalAlterConfigs,
      requireRight(
        "manage",
        ({ resources }) => refuseChange(resources),
        async ({ resources, validateOnly }, { session }) => {
          const principal = principalOf(session);
          const responses = resources.map(async ({ resourceType, resourceName, configs }) => {
            const resource = { resourceType, resourceName };
            const own = findTopic(broker.topics, principal, "manage", resourceName)?.stored.config;
            const read = readIncremental(configs, own, broker.settings.limits.messageBytesMax);
            return {
              ...(await change(broker, principal, resource, read, validateOnly)),
              ...resource,
            };
          });
          return { throttleTimeMs: 0, responses: await Promise.all(responses) };
        },
      ),
    ),
  ];
}

function refuseChange(resources: readonly { resourceType: number; resourceName: string }[]) {
  const refusal = refuse(
    ERROR_CODES.topicAuthorizationFailed,
    "The token lacks the scope pulse:manage.",
  );
  const responses = resources.map(({ resourceType, resourceName }) => ({
    ...refusal,
    resourceType,
    resourceName,
  }));
  return { throttleTimeMs: 0, responses };
}

function findEntries(
  broker: KafkaBroker,
  principal: Principal,
  resourceType: number,
  name: string,
): ConfigEntry[] | Answer {
  if (resourceType === RESOURCE_TYPES.topic) {
    const topic = findTopic(broker.topics, principal, "any", name);
    if (topic !== undefined) return listTopicConfig(stateOf(broker, topic));
    return refuse(ERROR_CODES.unknownTopicOrPartition, "The topic does not exist.");
  }
  if (resourceType === RESOURCE_TYPES.broker) {
    if (name === "" || name === String(NODE_ID)) return listBrokerConfig(broker);
    return refuse(ERROR_CODES.invalidRequest, `The only broker is ${NODE_ID}.`);
  }
  return refuse(ERROR_CODES.invalidRequest, "Only topics (2) and brokers (4) have settings.");
}

function listBrokerConfig({ topics, settings, isAutoCreating }: KafkaBroker): ConfigEntry[] {
  const entries: Record<string, string> = {
    "auto.create.topics.enable": String(isAutoCreating),
    "default.replication.factor": "1",
    "message.max.bytes": String(settings.limits.messageBytesMax),
    "num.partitions": String(topics.partitionsDefault),
  };
  return Object.entries(entries).map(([name, value]) => ({
    name,
    value,
    readOnly: true,
    configSource: CONFIG_SOURCES.staticBroker,
    configType: 2,
    documentation: "Set in the broker's configuration",
    synonyms: [{ name, value, source: CONFIG_SOURCES.staticBroker }],
  }));
}

async function change(
  broker: KafkaBroker,
  principal: Principal,
  { resourceType, resourceName }: { resourceType: number; resourceName: string },
  read: ConfigChange,
  validateOnly: boolean,
): Promise<Answer> {
  if (resourceType !== RESOURCE_TYPES.topic) {
    return refuse(ERROR_CODES.invalidRequest, "Only settings of topics can be changed.");
  }
  const topic = findTopic(broker.topics, principal, "manage", resourceName);
  if (topic === undefined)
    return refuse(ERROR_CODES.unknownTopicOrPartition, "The topic does not exist.");
  if ("reason" in read) return refuse(ERROR_CODES.invalidConfig, read.reason);
  if (validateOnly) return FINE;
  try {
    if (Object.keys(read.changes).length > 0) await broker.topics.configure(topic, read.changes);
    await broker.settings.change(topic, read.extras);
    return FINE;
  } catch (error) {
    return toAnswer(error);
  }
}

function readIncremental(
  configs: readonly { name: string; configOperation: number; value: string | null }[],
  own: TopicConfig | undefined,
  messageBytesMax: number,
): ConfigChange {
  const entries: { name: string; value: string | null }[] = [];
  for (const { name, configOperation, value } of configs) {
    switch (configOperation) {
      case CONFIG_OPERATIONS.set:
        if (value === null) return { reason: `${name} has no value` };
        entries.push({ name, value });
        break;
      case CONFIG_OPERATIONS.delete:
        entries.push({ name, value: null });
        break;
      case CONFIG_OPERATIONS.append:
      case CONFIG_OPERATIONS.subtract:
        if (name !== "cleanup.policy") return { reason: `${name} is not a list` };
        entries.push({ name, value: editList(own, configOperation, value ?? "") });
        break;
      default:
        return { reason: `there is no operation ${configOperation}` };
    }
  }
  return readTopicConfig(entries, messageBytesMax);
}

function editList(own: TopicConfig | undefined, operation: number, value: string): string {
  const parts = new Set((own?.cleanupPolicy ?? "delete").split(","));
  for (const part of value.split(",")) {
    if (operation === CONFIG_OPERATIONS.append) parts.add(part.trim());
    else parts.delete(part.trim());
  }
  return [...parts].join(",");
}

function refuse(errorCode: ErrorCode, errorMessage: string): Answer {
  return { errorCode, errorMessage };
}
