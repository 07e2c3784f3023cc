// Metadata and administration: brokers, topics and their settings.
import assert from "node:assert/strict";
import { ERROR_CODES } from "../../../services/pulse/src/kafka/protocol/error-codes.ts";
import {
  alterConfigs,
  apiVersions,
  createPartitions,
  createTopics,
  deleteTopics,
  describeCluster,
  describeConfigs,
  incrementalAlterConfigs,
  metadata,
  saslAuthenticate,
  saslHandshake,
} from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import { casesOf, type Case, type Scene } from "./case.ts";

const topicType = 2;

type Wanted = Parameters<typeof createTopics.request.write>[1]["topics"][number];

async function create(scene: Scene, changes: Partial<Wanted>, validateOnly = false) {
  const { topics } = await scene.client.ask(createTopics, scene.version, {
    topics: [
      {
        name: scene.createName("topic"),
        numPartitions: 1,
        replicationFactor: 1,
        assignments: [],
        configs: [],
        ...changes,
      },
    ],
    timeoutMs: 1000,
    validateOnly,
  });
  return topics[0]!;
}

async function describe({ client }: Scene, name: string) {
  return (await client.ask(metadata, 12, { topics: [{ name }], allowAutoTopicCreation: false }))
    .topics[0]!;
}

async function read({ client }: Scene, name: string, key: string): Promise<string | null> {
  const { results } = await client.ask(describeConfigs, 4, {
    resources: [{ resourceType: topicType, resourceName: name, configurationKeys: [key] }],
    includeSynonyms: false,
  });
  return results[0]!.configs[0]!.value;
}

async function alter(
  scene: Scene,
  name: string,
  configs: Record<string, string | null>,
  type = topicType,
) {
  const { responses } = await scene.client.ask(alterConfigs, scene.version, {
    resources: [
      {
        resourceType: type,
        resourceName: name,
        configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
      },
    ],
    validateOnly: false,
  });
  return responses[0]!.errorCode;
}

async function edit(
  scene: Scene,
  name: string,
  key: string,
  configOperation: number,
  value: string | null,
) {
  const { responses } = await scene.client.ask(incrementalAlterConfigs, scene.version, {
    resources: [
      {
        resourceType: topicType,
        resourceName: name,
        configs: [{ name: key, configOperation, value }],
      },
    ],
    validateOnly: false,
  });
  return responses[0]!.errorCode;
}

async function grow(
  { client, version }: Scene,
  name: string,
  count: number,
  assignments: { brokerIds: number[] }[] | null = null,
) {
  const body = { topics: [{ name, count, assignments }], timeoutMs: 1000, validateOnly: false };
  return (await client.ask(createPartitions, version, body)).results[0]!.errorCode;
}

async function remove({ client, version }: Scene, name: string | null, topicId = "0".repeat(32)) {
  const body =
    version < 6
      ? { topicNames: [name!], timeoutMs: 1000 }
      : { topics: [{ name, topicId }], timeoutMs: 1000 };
  return (await client.ask(deleteTopics, version, body)).topics[0]!.errorCode;
}

export const administrationCases: readonly Case[] = [
  ...casesOf(
    "ApiVersions",
    [
      [0, 4],
      "names every request with its versions",
      async ({ client, version }) => {
        const named = version < 3 ? {} : { clientSoftwareName: "a", clientSoftwareVersion: "1" };
        const { errorCode, apiKeys } = await client.ask(apiVersions, version, named);
        assert.equal(errorCode, 0);
        assert.deepEqual(
          apiKeys.find(({ apiKey }) => apiKey === 18),
          { apiKey: 18, minVersion: 0, maxVersion: 4 },
        );
        assert.deepEqual(
          apiKeys.find(({ apiKey }) => apiKey === 0),
          { apiKey: 0, minVersion: 0, maxVersion: 11 },
        );
        assert.equal(apiKeys.length, 31);
      },
    ],
    [
      [3, 4],
      "INVALID_REQUEST for software without a proper name",
      async ({ client, version }) => {
        for (const clientSoftwareName of ["", "-a", "a b"]) {
          const body = { clientSoftwareName, clientSoftwareVersion: "1" };
          const { errorCode } = await client.ask(apiVersions, version, body);
          assert.equal(errorCode, ERROR_CODES.invalidRequest);
        }
      },
    ],
  ),
  ...casesOf(
    "Metadata",
    [
      [0, 12],
      "names this broker and a topic's partitions",
      async ({ client, version, createTopic, stage }) => {
        const { name } = await createTopic(3);
        const { brokers, topics } = await client.ask(metadata, version, { topics: [{ name }] });
        assert.deepEqual(brokers, [{ nodeId: 1, host: "127.0.0.1", port: stage.port, rack: null }]);
        assert.deepEqual(
          topics[0]!.partitions.map(({ partitionIndex, leaderId, isrNodes }) => [
            partitionIndex,
            leaderId,
            isrNodes,
          ]),
          [0, 1, 2].map((index) => [index, 1, [1]]),
        );
      },
    ],
    [
      [0, 12],
      "names all topics if none are given",
      async ({ client, version, createTopic }) => {
        const { name } = await createTopic();
        const body = { topics: version === 0 ? [] : null };
        const { topics } = await client.ask(metadata, version, body);
        assert.ok(topics.some((topic) => topic.name === name));
      },
    ],
    [
      [1, 12],
      "names no topics for an empty list",
      async ({ client, version }) => {
        assert.deepEqual((await client.ask(metadata, version, { topics: [] })).topics, []);
      },
    ],
    [
      [2, 12],
      "tells the cluster's id",
      async ({ client, version, stage }) => {
        const { clusterId } = await client.ask(metadata, version, { topics: [] });
        assert.equal(clusterId, stage.broker.clusterId);
      },
    ],
    [
      [0, 12],
      "makes a topic that is asked for",
      async ({ client, version, createName }) => {
        const name = createName("made");
        const { topics } = await client.ask(metadata, version, { topics: [{ name }] });
        assert.deepEqual([topics[0]!.errorCode, topics[0]!.partitions.length], [0, 1]);
      },
    ],
    [
      [4, 12],
      "UNKNOWN_TOPIC_OR_PARTITION if it may not make the topic",
      async ({ client, version, createName }) => {
        const body = { topics: [{ name: createName("missing") }], allowAutoTopicCreation: false };
        const { topics } = await client.ask(metadata, version, body);
        assert.equal(topics[0]!.errorCode, ERROR_CODES.unknownTopicOrPartition);
      },
    ],
    [
      [0, 12],
      "INVALID_TOPIC_EXCEPTION for what cannot be a name",
      async ({ client, version }) => {
        for (const name of ["", ".", "a b", "a/b", "__state", "x".repeat(250)]) {
          const { topics } = await client.ask(metadata, version, { topics: [{ name }] });
          assert.equal(topics[0]!.errorCode, ERROR_CODES.invalidTopic, name);
        }
      },
    ],
    [
      [10, 12],
      "finds topics by id, UNKNOWN_TOPIC_ID otherwise",
      async ({ client, version, createTopic }) => {
        const { name, topicId } = await createTopic();
        const topics = [
          { name: null, topicId },
          { name: null, topicId: "ab".repeat(16) },
        ];
        const answer = await client.ask(metadata, version, { topics });
        assert.deepEqual([answer.topics[0]!.name, answer.topics[0]!.topicId], [name, topicId]);
        assert.equal(answer.topics[1]!.errorCode, ERROR_CODES.unknownTopicId);
      },
    ],
  ),
  ...casesOf(
    "DescribeCluster",
    [
      [0, 1],
      "names this broker",
      async ({ client, version, stage }) => {
        const answer = await client.ask(describeCluster, version, {
          includeClusterAuthorizedOperations: false,
        });
        assert.deepEqual([answer.errorCode, answer.controllerId], [0, 1]);
        assert.deepEqual(answer.brokers, [
          { brokerId: 1, host: "127.0.0.1", port: stage.port, rack: null },
        ]);
      },
    ],
    [
      [1, 1],
      "MISMATCHED_ENDPOINT_TYPE for controllers, UNSUPPORTED_ENDPOINT_TYPE for what nobody knows",
      async ({ client, version }) => {
        for (const [endpointType, code] of [
          [2, ERROR_CODES.mismatchedEndpointType],
          [7, ERROR_CODES.unsupportedEndpointType],
        ] as const) {
          const body = { includeClusterAuthorizedOperations: false, endpointType };
          assert.equal((await client.ask(describeCluster, version, body)).errorCode, code);
        }
      },
    ],
  ),
  ...casesOf(
    "CreateTopics",
    [
      [2, 7],
      "makes a topic with partitions and settings",
      async (scene) => {
        const made = await create(scene, {
          numPartitions: 4,
          configs: [
            { name: "cleanup.policy", value: "compact" },
            { name: "compression.type", value: "lz4" },
          ],
        });
        assert.equal(made.errorCode, 0);
        assert.equal((await describe(scene, made.name)).partitions.length, 4);
        assert.equal(await read(scene, made.name, "compression.type"), "lz4");
        assert.equal(await read(scene, made.name, "cleanup.policy"), "compact");
      },
    ],
    [
      [5, 7],
      "tells what was made",
      async (scene) => {
        const made = await create(scene, { numPartitions: -1, replicationFactor: -1 });
        assert.deepEqual([made.numPartitions, made.replicationFactor], [1, 1]);
        assert.ok(made.configs!.some(({ name }) => name === "retention.ms"));
      },
    ],
    [
      [2, 7],
      "makes nothing if it is only to check",
      async (scene) => {
        const made = await create(scene, {}, true);
        assert.equal(made.errorCode, 0);
        assert.equal(
          (await describe(scene, made.name)).errorCode,
          ERROR_CODES.unknownTopicOrPartition,
        );
      },
    ],
    [
      [2, 7],
      "takes assignments to this broker, INVALID_REPLICA_ASSIGNMENT for others",
      async (scene) => {
        const counts = { numPartitions: -1, replicationFactor: -1 };
        const here = [0, 1].map((partitionIndex) => ({ partitionIndex, brokerIds: [1] }));
        const made = await create(scene, { ...counts, assignments: here });
        assert.equal((await describe(scene, made.name)).partitions.length, 2);
        const there = [{ partitionIndex: 0, brokerIds: [2] }];
        const { errorCode } = await create(scene, { ...counts, assignments: there });
        assert.equal(errorCode, ERROR_CODES.invalidReplicaAssignment);
      },
    ],
    [
      [2, 7],
      "TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_CONFIG",
      async (scene) => {
        const { name } = await scene.createTopic();
        const codes = [
          (await create(scene, { name })).errorCode,
          (await create(scene, { name: "a b" })).errorCode,
          (await create(scene, { numPartitions: 0 })).errorCode,
          (await create(scene, { numPartitions: 1_000_000 })).errorCode,
          (await create(scene, { replicationFactor: 3 })).errorCode,
          (await create(scene, { configs: [{ name: "no.such", value: "1" }] })).errorCode,
          (await create(scene, { configs: [{ name: "retention.ms", value: "soon" }] })).errorCode,
        ];
        assert.deepEqual(codes, [
          ERROR_CODES.topicAlreadyExists,
          ERROR_CODES.invalidTopic,
          ERROR_CODES.invalidPartitions,
          ERROR_CODES.invalidPartitions,
          ERROR_CODES.invalidReplicationFactor,
          ERROR_CODES.invalidConfig,
          ERROR_CODES.invalidConfig,
        ]);
      },
    ],
    [
      [2, 7],
      "INVALID_REQUEST for a name that is there twice",
      async ({ client, version, createName }) => {
        const topic = {
          name: createName("topic"),
          numPartitions: 1,
          replicationFactor: 1,
          assignments: [],
          configs: [],
        };
        const body = { topics: [topic, topic], timeoutMs: 1000, validateOnly: false };
        const { topics } = await client.ask(createTopics, version, body);
        assert.ok(topics.every(({ errorCode }) => errorCode === ERROR_CODES.invalidRequest));
      },
    ],
  ),
  ...casesOf(
    "DeleteTopics",
    [
      [1, 6],
      "deletes a topic, UNKNOWN_TOPIC_OR_PARTITION for one that is not there",
      async (scene) => {
        const { name } = await scene.createTopic();
        assert.equal(await remove(scene, name), 0);
        assert.equal(await remove(scene, name), ERROR_CODES.unknownTopicOrPartition);
      },
    ],
    [
      [6, 6],
      "deletes by id, UNKNOWN_TOPIC_ID for one that is not there",
      async (scene) => {
        const { topicId } = await scene.createTopic();
        assert.equal(await remove(scene, null, topicId), 0);
        assert.equal(await remove(scene, null, topicId), ERROR_CODES.unknownTopicId);
      },
    ],
  ),
  ...casesOf(
    "CreatePartitions",
    [
      [0, 3],
      "adds partitions",
      async (scene) => {
        const { name } = await scene.createTopic();
        assert.equal(await grow(scene, name, 3), 0);
        assert.equal((await describe(scene, name)).partitions.length, 3);
      },
    ],
    [
      [0, 3],
      "INVALID_PARTITIONS for not more, INVALID_REPLICA_ASSIGNMENT, UNKNOWN_TOPIC_OR_PARTITION",
      async (scene) => {
        const { name } = await scene.createTopic(2);
        const codes = [
          await grow(scene, name, 2),
          await grow(scene, name, 1_000_000),
          await grow(scene, name, 3, [{ brokerIds: [2] }]),
          await grow(scene, "missing", 3),
        ];
        assert.deepEqual(codes, [
          ERROR_CODES.invalidPartitions,
          ERROR_CODES.invalidPartitions,
          ERROR_CODES.invalidReplicaAssignment,
          ERROR_CODES.unknownTopicOrPartition,
        ]);
      },
    ],
  ),
  ...casesOf(
    "DescribeConfigs",
    [
      [1, 4],
      "gives all settings, or those that are asked for",
      async ({ client, version, createTopic }) => {
        const { name } = await createTopic();
        const ask = async (configurationKeys: string[] | null) =>
          (
            await client.ask(describeConfigs, version, {
              resources: [{ resourceType: topicType, resourceName: name, configurationKeys }],
              includeSynonyms: false,
            })
          ).results[0]!.configs.map((config) => config.name);
        assert.ok((await ask(null)).length >= 5);
        assert.deepEqual(await ask(["retention.ms", "no.such"]), ["retention.ms"]);
      },
    ],
    [
      [1, 4],
      "tells where a value comes from and what it would be without that, if asked for synonyms",
      async (scene) => {
        const { name } = await scene.createTopic();
        await edit({ ...scene, version: 1 }, name, "retention.ms", 0, "60000");
        const ask = async (includeSynonyms: boolean) => {
          const configurationKeys = ["retention.ms", "retention.bytes"];
          const resources = [{ resourceType: topicType, resourceName: name, configurationKeys }];
          const body = { resources, includeSynonyms };
          const { results } = await scene.client.ask(describeConfigs, scene.version, body);
          return results[0]!.configs.map(({ synonyms }) =>
            synonyms.map(({ value, source }) => [value, source]),
          );
        };
        assert.deepEqual(await ask(false), [[], []]);
        assert.deepEqual(await ask(true), [
          [
            ["60000", 1],
            ["-1", 5],
          ],
          [["-1", 5]],
        ]);
      },
    ],
    [
      [1, 4],
      "gives the broker's, INVALID_REQUEST for other brokers and kinds, UNKNOWN_TOPIC_OR_PARTITION",
      async ({ client, version }) => {
        const resources = [
          [4, "1"],
          [4, "2"],
          [8, "1"],
          [2, "missing"],
        ] as const;
        const { results } = await client.ask(describeConfigs, version, {
          resources: resources.map(([resourceType, resourceName]) => ({
            resourceType,
            resourceName,
            configurationKeys: null,
          })),
          includeSynonyms: false,
        });
        assert.deepEqual(
          results.map(({ errorCode }) => errorCode),
          [
            0,
            ERROR_CODES.invalidRequest,
            ERROR_CODES.invalidRequest,
            ERROR_CODES.unknownTopicOrPartition,
          ],
        );
      },
    ],
  ),
  ...casesOf(
    "AlterConfigs",
    [
      [0, 2],
      "sets what is named, and everything else back",
      async (scene) => {
        const { name } = await scene.createTopic();
        assert.equal(await alter(scene, name, { "retention.ms": "60000" }), 0);
        assert.equal(await alter(scene, name, { "cleanup.policy": "compact,delete" }), 0);
        assert.equal(await read(scene, name, "retention.ms"), "-1");
        assert.equal(await read(scene, name, "cleanup.policy"), "compact,delete");
        assert.equal(await alter(scene, name, { "compression.type": "gzip" }), 0);
        assert.equal(await read(scene, name, "compression.type"), "gzip");
        assert.equal(await alter(scene, name, {}), 0);
        assert.equal(await read(scene, name, "compression.type"), "producer");
      },
    ],
    [
      [0, 2],
      "INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST for the broker",
      async (scene) => {
        const { name } = await scene.createTopic();
        const codes = [
          await alter(scene, name, { "segment.bytes": "1" }),
          await alter(scene, name, { "no.such": "1" }),
          await alter(scene, "missing", {}),
          await alter(scene, "1", {}, 4),
        ];
        assert.deepEqual(codes, [
          ERROR_CODES.invalidConfig,
          ERROR_CODES.invalidConfig,
          ERROR_CODES.unknownTopicOrPartition,
          ERROR_CODES.invalidRequest,
        ]);
      },
    ],
  ),
  ...casesOf(
    "IncrementalAlterConfigs",
    [
      [0, 1],
      "sets, deletes, appends and subtracts",
      async (scene) => {
        const { name } = await scene.createTopic();
        assert.equal(await edit(scene, name, "retention.ms", 0, "60000"), 0);
        assert.equal(await edit(scene, name, "cleanup.policy", 2, "compact"), 0);
        assert.equal(await read(scene, name, "retention.ms"), "60000");
        assert.equal(await read(scene, name, "cleanup.policy"), "compact,delete");
        assert.equal(await edit(scene, name, "cleanup.policy", 3, "delete"), 0);
        assert.equal(await read(scene, name, "cleanup.policy"), "compact");
        assert.equal(await edit(scene, name, "retention.ms", 1, null), 0);
        assert.equal(await read(scene, name, "retention.ms"), "-1");
      },
    ],
    [
      [0, 1],
      "keeps what tools set that has no effect here, as long as it could be a value of that setting",
      async (scene) => {
        const { name } = await scene.createTopic();
        for (const [setting, value, other] of [
          ["compression.type", "lz4", "zip"],
          ["flush.ms", "12345678", "-1"],
          ["flush.messages", "9223372036854775807", "0"],
          ["min.cleanable.dirty.ratio", "0.25", "1.5"],
          ["unclean.leader.election.enable", "true", "maybe"],
          ["segment.ms", "1000", "1e3"],
        ] as const) {
          const before = await read(scene, name, setting);
          assert.equal(
            await edit(scene, name, setting, 0, other),
            ERROR_CODES.invalidConfig,
            other,
          );
          assert.equal(await edit(scene, name, setting, 0, value), 0, setting);
          assert.equal(await read(scene, name, setting), value);
          assert.equal(await edit(scene, name, setting, 1, null), 0);
          assert.equal(await read(scene, name, setting), before);
        }
        assert.equal(
          await edit(scene, name, "message.timestamp.type", 0, "LogAppendTime"),
          ERROR_CODES.invalidConfig,
        );
      },
    ],
    [
      [0, 1],
      "INVALID_CONFIG for a list operation on a number, no value, no such operation",
      async (scene) => {
        const { name } = await scene.createTopic();
        for (const [operation, value] of [
          [2, "1"],
          [0, null],
          [9, "1"],
        ] as const) {
          const code = await edit(scene, name, "retention.ms", operation, value);
          assert.equal(code, ERROR_CODES.invalidConfig);
        }
      },
    ],
  ),
  ...casesOf("SaslHandshake", [
    [0, 1],
    "ILLEGAL_SASL_STATE for a client that has begun already",
    async ({ client, version }) => {
      await client.ask(saslHandshake, 1, { mechanism: "PLAIN" });
      const { errorCode } = await client.ask(saslHandshake, version, { mechanism: "PLAIN" });
      assert.equal(errorCode, ERROR_CODES.illegalSaslState);
    },
  ]),
  ...casesOf("SaslAuthenticate", [
    [0, 2],
    "ILLEGAL_SASL_STATE without a handshake",
    async ({ client, version }) => {
      const body = { authBytes: Buffer.from("x") };
      const { errorCode } = await client.ask(saslAuthenticate, version, body);
      assert.equal(errorCode, ERROR_CODES.illegalSaslState);
    },
  ]),
];
