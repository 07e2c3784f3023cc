// More cases of groups and administration: concurrent members, static members, validation without changes.
import assert from "node:assert/strict";
import { ERROR_CODES } from "../../../services/pulse/src/kafka/protocol/error-codes.ts";
import {
  alterConfigs,
  createPartitions,
  deleteGroups,
  describeConfigs,
  describeGroups,
  heartbeat,
  incrementalAlterConfigs,
  joinGroup,
  leaveGroup,
  offsetCommit,
  offsetDelete,
  offsetFetch,
  syncGroup,
} from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import type { KafkaClient } from "../../../services/pulse/test/kafka/client.ts";
import { casesOf, type Case, type Scene } from "./case.ts";

const topicResource = 2;

async function join(client: KafkaClient, groupId: string, instanceId: string | null, version = 5) {
  const body = {
    groupId,
    sessionTimeoutMs: 20_000,
    rebalanceTimeoutMs: 20_000,
    memberId: "",
    groupInstanceId: version >= 5 ? instanceId : null,
    protocolType: "consumer",
    protocols: [{ name: "range", metadata: Buffer.from("m") }],
  };
  const first = await client.ask(joinGroup, version, body);
  if (first.errorCode !== ERROR_CODES.memberIdRequired) return first;
  return client.ask(joinGroup, version, { ...body, memberId: first.memberId });
}

/** Creates a group of one static member with its assignment. */
async function settle({ client, createName }: Scene) {
  const groupId = createName("group");
  const { memberId, generationId } = await join(client, groupId, "one");
  const claim = { groupId, generationId, memberId, groupInstanceId: "one" };
  const assignments = [{ memberId, assignment: Buffer.from("a") }];
  await client.ask(syncGroup, 5, { ...claim, assignments });
  return claim;
}

async function readRetention({ client }: Scene, name: string): Promise<string | null> {
  const { results } = await client.ask(describeConfigs, 4, {
    resources: [
      { resourceType: topicResource, resourceName: name, configurationKeys: ["retention.ms"] },
    ],
    includeSynonyms: false,
  });
  return results[0]!.configs[0]!.value;
}

/** A consumer's subscription: version 0, topics, no user data. */
function subscriptionTo(name: string): Buffer {
  const bytes = Buffer.alloc(2 + 4 + 2 + name.length + 4);
  bytes.writeInt32BE(1, 2);
  bytes.writeInt16BE(name.length, 6);
  bytes.write(name, 8);
  bytes.writeInt32BE(-1, 8 + name.length);
  return bytes;
}

export const membershipCases: readonly Case[] = [
  ...casesOf("OffsetDelete", [
    [0, 0],
    "GROUP_SUBSCRIBED_TO_TOPIC for what a group with members reads, while other offsets can go",
    async ({ client, createName, createTopic }) => {
      const [read, left] = [await createTopic(), await createTopic()];
      const groupId = createName("group");
      const request = {
        groupId,
        sessionTimeoutMs: 20_000,
        memberId: "",
        protocolType: "consumer",
        protocols: [{ name: "range", metadata: subscriptionTo(read.name) }],
      };
      const { memberId, generationId } = await client.ask(joinGroup, 3, request);
      const claim = { groupId, memberId, generationId };
      const topics = [read, left].map(({ name }) => ({
        name,
        partitions: [{ partitionIndex: 0, committedOffset: 5, committedMetadata: null }],
      }));
      const ask = async () => {
        const places = topics.map(({ name }) => ({ name, partitions: [{ partitionIndex: 0 }] }));
        const answer = await client.ask(offsetDelete, 0, { groupId, topics: places });
        assert.equal(answer.errorCode, 0);
        return answer.topics.map(({ partitions }) => partitions[0]!.errorCode);
      };
      const { groupSubscribedToTopic } = ERROR_CODES;
      assert.deepEqual(await ask(), [groupSubscribedToTopic, groupSubscribedToTopic]);
      const assignments = [{ memberId, assignment: Buffer.from("a") }];
      await client.ask(syncGroup, 5, { ...claim, assignments });
      await client.ask(offsetCommit, 8, { ...claim, topics });
      assert.deepEqual(await ask(), [groupSubscribedToTopic, 0]);
      const kept = await client.ask(offsetFetch, 7, { groupId, topics: null });
      assert.deepEqual(
        kept.topics.map(({ name }) => name),
        [read.name],
      );
    },
  ]),
  ...casesOf("DeleteGroups", [
    [0, 2],
    "deletes a group in which somebody was given an id and never came back, INVALID_GROUP_ID for no name",
    async ({ client, version, createName }) => {
      const groupId = createName("group");
      const { errorCode } = await client.ask(joinGroup, 5, {
        groupId,
        sessionTimeoutMs: 20_000,
        memberId: "",
        protocolType: "consumer",
        protocols: [{ name: "range", metadata: Buffer.from("m") }],
      });
      assert.equal(errorCode, ERROR_CODES.memberIdRequired);
      const { groups } = await client.ask(describeGroups, 5, { groups: [groupId] });
      assert.equal(groups[0]!.groupState, "Empty");
      const { results } = await client.ask(deleteGroups, version, { groupsNames: [groupId, ""] });
      assert.deepEqual(
        results.map((result) => result.errorCode),
        [0, ERROR_CODES.invalidGroupId],
      );
    },
  ]),
  ...casesOf("Heartbeat", [
    [0, 4],
    "INVALID_GROUP_ID for no name",
    async ({ client, version }) => {
      const body = { groupId: "", generationId: 1, memberId: "m" };
      assert.equal(
        (await client.ask(heartbeat, version, body)).errorCode,
        ERROR_CODES.invalidGroupId,
      );
    },
  ]),
  ...casesOf("SyncGroup", [
    [0, 5],
    "INVALID_GROUP_ID for no name",
    async ({ client, version }) => {
      const body = { groupId: "", generationId: 1, memberId: "m", assignments: [] };
      assert.equal(
        (await client.ask(syncGroup, version, body)).errorCode,
        ERROR_CODES.invalidGroupId,
      );
    },
  ]),
  ...casesOf("LeaveGroup", [
    [0, 5],
    "INVALID_GROUP_ID for no name",
    async ({ client, version }) => {
      const { errorCode } = await client.ask(leaveGroup, version, { groupId: "" });
      assert.equal(errorCode, ERROR_CODES.invalidGroupId);
    },
  ]),
  ...casesOf("JoinGroup", [
    [0, 9],
    "brings a second member into a new generation; only the leader is told who is there",
    async ({ client, version, stage, createName }) => {
      const groupId = createName("group");
      const leader = await join(client, groupId, null, version);
      const other = await stage.connect();
      const entering = join(other, groupId, null, version);
      const claim = { groupId, generationId: leader.generationId, memberId: leader.memberId };
      let errorCode: number = ERROR_CODES.none;
      while (errorCode !== ERROR_CODES.rebalanceInProgress) {
        ({ errorCode } = await client.ask(heartbeat, 4, claim));
      }
      const again = await client.ask(joinGroup, version, {
        groupId,
        sessionTimeoutMs: 20_000,
        rebalanceTimeoutMs: 20_000,
        memberId: leader.memberId,
        protocolType: "consumer",
        protocols: [{ name: "range", metadata: Buffer.from("m") }],
      });
      const second = await entering;
      assert.equal(again.generationId, second.generationId);
      assert.equal(second.leader, leader.memberId);
      assert.deepEqual([again.members.length, second.members.length], [2, 0]);
    },
  ]),
  ...casesOf("Heartbeat", [
    [3, 4],
    "FENCED_INSTANCE_ID for a member whose name another one has taken over",
    async (scene) => {
      const claim = await settle(scene);
      const other = await scene.stage.connect();
      await join(other, claim.groupId, "one");
      const { errorCode } = await scene.client.ask(heartbeat, scene.version, claim);
      assert.equal(errorCode, ERROR_CODES.fencedInstanceId);
    },
  ]),
  ...casesOf("SyncGroup", [
    [3, 5],
    "FENCED_INSTANCE_ID for a member whose name another one has taken over",
    async (scene) => {
      const claim = await settle(scene);
      await join(await scene.stage.connect(), claim.groupId, "one");
      const body = { ...claim, assignments: [] };
      const { errorCode } = await scene.client.ask(syncGroup, scene.version, body);
      assert.equal(errorCode, ERROR_CODES.fencedInstanceId);
    },
  ]),
  ...casesOf("LeaveGroup", [
    [3, 5],
    "lets several members go at once, each with its own error, also by name",
    async (scene) => {
      const { groupId } = await settle(scene);
      const { errorCode, members } = await scene.client.ask(leaveGroup, scene.version, {
        groupId,
        members: [
          { memberId: "nobody", groupInstanceId: null },
          { memberId: "", groupInstanceId: "one" },
          { memberId: "", groupInstanceId: "two" },
        ],
      });
      assert.equal(errorCode, 0);
      assert.deepEqual(
        members.map((member) => member.errorCode),
        [ERROR_CODES.unknownMemberId, 0, ERROR_CODES.unknownMemberId],
      );
    },
  ]),
  ...casesOf("OffsetCommit", [
    [7, 9],
    "FENCED_INSTANCE_ID for a member whose name another one has taken over",
    async (scene) => {
      const claim = await settle(scene);
      const { name } = await scene.createTopic();
      await join(await scene.stage.connect(), claim.groupId, "one");
      const partitions = [{ partitionIndex: 0, committedOffset: 1, committedMetadata: null }];
      const { topics } = await scene.client.ask(offsetCommit, scene.version, {
        ...claim,
        topics: [{ name, partitions }],
      });
      assert.equal(topics[0]!.partitions[0]!.errorCode, ERROR_CODES.fencedInstanceId);
    },
  ]),
  ...casesOf(
    "OffsetFetch",
    [
      [8, 9],
      "answers for several groups, with nothing for those that are not there",
      async (scene) => {
        const { name } = await scene.createTopic();
        const names = [scene.createName("group"), scene.createName("group")];
        const partitions = [{ partitionIndex: 0, committedOffset: 5, committedMetadata: null }];
        await scene.client.ask(offsetCommit, 8, {
          groupId: names[0]!,
          memberId: "",
          generationId: -1,
          topics: [{ name, partitions }],
        });
        const { groups } = await scene.client.ask(offsetFetch, scene.version, {
          groups: [
            { groupId: names[0]!, topics: null },
            { groupId: names[1]!, topics: null },
            { groupId: names[1]!, topics: [{ name, partitionIndexes: [0, 9] }] },
          ],
        });
        assert.deepEqual(
          groups.map(({ errorCode }) => errorCode),
          [0, 0, 0],
        );
        assert.equal(groups[0]!.topics[0]!.partitions[0]!.committedOffset, 5);
        assert.deepEqual(groups[1]!.topics, []);
        const unknown = groups[2]!.topics[0]!.partitions.map((one) => one.committedOffset);
        assert.deepEqual(unknown, [-1, -1]);
      },
    ],
    [
      [2, 7],
      "gives nothing for null topics of a group that is not there",
      async ({ client, version, createName }) => {
        const body = { groupId: createName("group"), topics: null };
        const { topics, errorCode } = await client.ask(offsetFetch, version, body);
        assert.deepEqual([topics, errorCode], [[], 0]);
      },
    ],
  ),
  ...casesOf("DescribeGroups", [
    [3, 5],
    "says nothing of operations that it knows no rights for",
    async ({ client, version }) => {
      const body = { groups: ["none"], includeAuthorizedOperations: true };
      const { groups } = await client.ask(describeGroups, version, body);
      assert.equal(groups[0]!.authorizedOperations, -2147483648);
    },
  ]),
  ...casesOf("AlterConfigs", [
    [0, 2],
    "changes nothing if it is only to check, and says what would be wrong",
    async (scene) => {
      const { name } = await scene.createTopic();
      for (const [value, expected] of [
        ["1000", ERROR_CODES.none],
        ["soon", ERROR_CODES.invalidConfig],
      ] as const) {
        const configs = [{ name: "retention.ms", value }];
        const resources = [{ resourceType: topicResource, resourceName: name, configs }];
        const body = { resources, validateOnly: true };
        const { responses } = await scene.client.ask(alterConfigs, scene.version, body);
        assert.equal(responses[0]!.errorCode, expected);
      }
      assert.equal(await readRetention(scene, name), "-1");
    },
  ]),
  ...casesOf("IncrementalAlterConfigs", [
    [0, 1],
    "changes nothing if it is only to check, and says what would be wrong",
    async (scene) => {
      const { name } = await scene.createTopic();
      for (const [value, expected] of [
        ["1000", ERROR_CODES.none],
        ["soon", ERROR_CODES.invalidConfig],
      ] as const) {
        const configs = [{ name: "retention.ms", configOperation: 0, value }];
        const resources = [{ resourceType: topicResource, resourceName: name, configs }];
        const body = { resources, validateOnly: true };
        const { responses } = await scene.client.ask(incrementalAlterConfigs, scene.version, body);
        assert.equal(responses[0]!.errorCode, expected);
      }
      assert.equal(await readRetention(scene, name), "-1");
    },
  ]),
  ...casesOf("CreatePartitions", [
    [0, 3],
    "adds nothing if it is only to check",
    async ({ client, version, stage, createTopic }) => {
      const { name } = await createTopic();
      const topics = [{ name, count: 3, assignments: null }];
      const body = { topics, timeoutMs: 1000, validateOnly: true };
      const { results } = await client.ask(createPartitions, version, body);
      assert.equal(results[0]!.errorCode, 0);
      assert.equal(stage.broker.topics.get("", name).stored.partitions.length, 1);
    },
  ]),
];
