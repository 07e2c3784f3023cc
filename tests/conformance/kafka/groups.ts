// Consumer groups.
import assert from "node:assert/strict";
import { ERROR_CODES } from "../../../services/pulse/src/kafka/protocol/error-codes.ts";
import {
  deleteGroups,
  describeGroups,
  findCoordinator,
  heartbeat,
  joinGroup,
  leaveGroup,
  listGroups,
  offsetCommit,
  offsetDelete,
  offsetFetch,
  syncGroup,
} from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import { casesOf, type Case, type Scene } from "./case.ts";

const metadata = Buffer.from("subscription");

async function join(
  { client, version }: Scene,
  groupId: string,
  changes: {
    memberId?: string;
    sessionTimeoutMs?: number;
    protocols?: readonly string[];
    protocolType?: string;
    groupInstanceId?: string;
  } = {},
) {
  const { protocols = ["range"], ...rest } = changes;
  return client.ask(joinGroup, version, {
    groupId,
    sessionTimeoutMs: 10_000,
    rebalanceTimeoutMs: 10_000,
    memberId: "",
    protocolType: "consumer",
    protocols: protocols.map((name) => ({ name, metadata })),
    ...rest,
  });
}

/** Joins a group, with the assigned id if one is required. */
async function enter(scene: Scene, groupId: string) {
  const first = await join(scene, groupId);
  if (first.errorCode !== ERROR_CODES.memberIdRequired) return first;
  return join(scene, groupId, { memberId: first.memberId });
}

/** Creates a group of one member with its assignment. */
async function settle(scene: Scene) {
  const groupId = scene.createName("group");
  const current = { ...scene, version: 5 };
  const { memberId, generationId } = await enter(current, groupId);
  const claim = { groupId, memberId, generationId };
  await scene.client.ask(syncGroup, 5, {
    ...claim,
    assignments: [{ memberId, assignment: Buffer.from("mine") }],
  });
  return claim;
}

async function commit(
  { client, version }: Scene,
  claim: { groupId: string; memberId: string; generationId: number },
  name: string,
  committedOffset: number,
  committedMetadata: string | null = "note",
  partitionIndex = 0,
) {
  const partitions = [{ partitionIndex, committedOffset, committedMetadata }];
  const { topics } = await client.ask(offsetCommit, version, {
    ...claim,
    topics: [{ name, partitions }],
  });
  return topics[0]!.partitions[0]!.errorCode;
}

async function committed({ client, version }: Scene, groupId: string, name: string | null) {
  const topics = name === null ? null : [{ name, partitionIndexes: [0] }];
  const body = version < 8 ? { groupId, topics } : { groups: [{ groupId, topics }] };
  const answer = await client.ask(offsetFetch, version, body);
  return version < 8 ? answer.topics : answer.groups[0]!.topics;
}

function nobody(groupId: string) {
  return { groupId, memberId: "", generationId: -1 };
}

export const groupCases: readonly Case[] = [
  ...casesOf(
    "FindCoordinator",
    [
      [0, 5],
      "gives this broker for a group",
      async ({ client, version, stage }) => {
        const answer = await client.ask(
          findCoordinator,
          version,
          version < 4 ? { key: "g" } : { keyType: 0, coordinatorKeys: ["g"] },
        );
        const found = version < 4 ? answer : answer.coordinators[0]!;
        const { errorCode, nodeId, host, port } = found;
        assert.deepEqual([errorCode, nodeId, host, port], [0, 1, "127.0.0.1", stage.port]);
      },
    ],
    [
      [1, 5],
      "TRANSACTIONAL_ID_AUTHORIZATION_FAILED for a transactional id, INVALID_REQUEST for other types",
      async ({ client, version }) => {
        for (const [keyType, code] of [
          [1, ERROR_CODES.transactionalIdAuthorizationFailed],
          [7, ERROR_CODES.invalidRequest],
        ] as const) {
          const body = version < 4 ? { key: "t", keyType } : { keyType, coordinatorKeys: ["t"] };
          const answer = await client.ask(findCoordinator, version, body);
          const { errorCode } = version < 4 ? answer : answer.coordinators[0]!;
          assert.equal(errorCode, code);
        }
      },
    ],
  ),
  ...casesOf(
    "JoinGroup",
    [
      [0, 9],
      "makes the first member the leader of generation 1",
      async (scene) => {
        const joined = await enter(scene, scene.createName("group"));
        assert.deepEqual([joined.errorCode, joined.generationId], [0, 1]);
        assert.equal(joined.leader, joined.memberId);
        assert.equal(joined.protocolName, "range");
        assert.deepEqual(joined.members[0]!.metadata, metadata);
      },
    ],
    [
      [4, 9],
      "MEMBER_ID_REQUIRED with an id to come back with",
      async (scene) => {
        const answer = await join(scene, scene.createName("group"));
        assert.equal(answer.errorCode, ERROR_CODES.memberIdRequired);
        assert.match(answer.memberId, /^test-/);
      },
    ],
    [
      [5, 9],
      "lets a static member in at once, and again without a rebalance",
      async (scene) => {
        const groupId = scene.createName("group");
        const first = await join(scene, groupId, { groupInstanceId: "i" });
        const { memberId, generationId } = first;
        assert.equal(first.errorCode, 0);
        const claim = { groupId, memberId, generationId, groupInstanceId: "i" };
        await scene.client.ask(syncGroup, 5, {
          ...claim,
          assignments: [{ memberId, assignment: metadata }],
        });
        const again = await join(scene, groupId, { groupInstanceId: "i" });
        assert.equal(again.generationId, generationId);
        assert.notEqual(again.memberId, memberId);
        const { errorCode } = await scene.client.ask(heartbeat, 4, claim);
        assert.equal(errorCode, ERROR_CODES.fencedInstanceId);
      },
    ],
    [
      [0, 9],
      "INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, UNKNOWN_MEMBER_ID, INCONSISTENT_GROUP_PROTOCOL",
      async (scene) => {
        const { groupId } = await settle(scene);
        const codes = [
          (await join(scene, "")).errorCode,
          (await join(scene, groupId, { sessionTimeoutMs: 1 })).errorCode,
          (await join(scene, groupId, { memberId: "nobody" })).errorCode,
          (await join(scene, groupId, { protocols: ["other"] })).errorCode,
          (await join(scene, groupId, { protocolType: "connect" })).errorCode,
          (await join(scene, groupId, { protocols: [] })).errorCode,
        ];
        assert.deepEqual(codes, [
          ERROR_CODES.invalidGroupId,
          ERROR_CODES.invalidSessionTimeout,
          ERROR_CODES.unknownMemberId,
          ERROR_CODES.inconsistentGroupProtocol,
          ERROR_CODES.inconsistentGroupProtocol,
          ERROR_CODES.inconsistentGroupProtocol,
        ]);
      },
    ],
    [
      [0, 9],
      "INCONSISTENT_GROUP_PROTOCOL for a group of the broker's own",
      async (scene) => {
        const groupId = scene.createName("group");
        await scene.stage.broker.offsets.claim("", groupId, "dispatch");
        const { errorCode } = await join(scene, groupId);
        assert.equal(errorCode, ERROR_CODES.inconsistentGroupProtocol);
      },
    ],
  ),
  ...casesOf(
    "SyncGroup",
    [
      [0, 5],
      "gives a member what the leader has assigned to it",
      async (scene) => {
        const groupId = scene.createName("group");
        const { memberId, generationId } = await enter({ ...scene, version: 5 }, groupId);
        const { errorCode, assignment } = await scene.client.ask(syncGroup, scene.version, {
          groupId,
          memberId,
          generationId,
          assignments: [{ memberId, assignment: Buffer.from("mine") }],
        });
        assert.deepEqual([errorCode, assignment.toString()], [0, "mine"]);
      },
    ],
    [
      [0, 5],
      "UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION",
      async (scene) => {
        const claim = await settle(scene);
        const ask = async (changes: object) =>
          (
            await scene.client.ask(syncGroup, scene.version, {
              ...claim,
              assignments: [],
              ...changes,
            })
          ).errorCode;
        assert.equal(await ask({ memberId: "nobody" }), ERROR_CODES.unknownMemberId);
        assert.equal(await ask({ generationId: 9 }), ERROR_CODES.illegalGeneration);
        assert.equal(await ask({ groupId: "nothing" }), ERROR_CODES.unknownMemberId);
      },
    ],
    [
      [5, 5],
      "INCONSISTENT_GROUP_PROTOCOL for another protocol than was chosen",
      async (scene) => {
        const claim = await settle(scene);
        const { errorCode } = await scene.client.ask(syncGroup, scene.version, {
          ...claim,
          protocolName: "other",
          assignments: [],
        });
        assert.equal(errorCode, ERROR_CODES.inconsistentGroupProtocol);
      },
    ],
  ),
  ...casesOf(
    "Heartbeat",
    [
      [0, 4],
      "is fine for a member of the generation",
      async (scene) => {
        const claim = await settle(scene);
        assert.equal((await scene.client.ask(heartbeat, scene.version, claim)).errorCode, 0);
      },
    ],
    [
      [0, 4],
      "UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION",
      async (scene) => {
        const claim = await settle(scene);
        const ask = async (changes: object) =>
          (await scene.client.ask(heartbeat, scene.version, { ...claim, ...changes })).errorCode;
        assert.equal(await ask({ memberId: "nobody" }), ERROR_CODES.unknownMemberId);
        assert.equal(await ask({ generationId: 0 }), ERROR_CODES.illegalGeneration);
      },
    ],
    [
      [0, 4],
      "REBALANCE_IN_PROGRESS while others join",
      async (scene) => {
        const claim = await settle(scene);
        const other = await scene.stage.connect();
        void enter({ ...scene, client: other, version: 3 }, claim.groupId).catch(() => undefined);
        const endMs = performance.now() + 5_000;
        for (;;) {
          const { errorCode } = await scene.client.ask(heartbeat, scene.version, claim);
          if (errorCode === ERROR_CODES.rebalanceInProgress) break;
          assert.ok(performance.now() < endMs);
        }
        other.socket.destroy();
      },
    ],
  ),
  ...casesOf("LeaveGroup", [
    [0, 5],
    "lets a member go, once",
    async (scene) => {
      const { groupId, memberId } = await settle(scene);
      const leave = async () => {
        const body =
          scene.version < 3
            ? { groupId, memberId }
            : { groupId, members: [{ memberId, groupInstanceId: null }] };
        const { errorCode, members } = await scene.client.ask(leaveGroup, scene.version, body);
        return scene.version < 3 ? errorCode : members[0]!.errorCode;
      };
      assert.equal(await leave(), 0);
      assert.equal(await leave(), ERROR_CODES.unknownMemberId);
    },
  ]),
  ...casesOf(
    "OffsetCommit",
    [
      [2, 9],
      "keeps the offset and its metadata",
      async (scene) => {
        const { name } = await scene.createTopic();
        const claim = await settle(scene);
        assert.equal(await commit(scene, claim, name, 17), 0);
        const topics = await committed({ ...scene, version: 7 }, claim.groupId, name);
        const { committedOffset, metadata: note } = topics[0]!.partitions[0]!;
        assert.deepEqual([committedOffset, note], [17, "note"]);
      },
    ],
    [
      [2, 9],
      "keeps the metadata of a commit without an offset (-1)",
      async (scene) => {
        const { name } = await scene.createTopic();
        const claim = nobody(scene.createName("group"));
        assert.equal(await commit(scene, claim, name, 17), 0);
        assert.equal(await commit(scene, claim, name, -1), 0);
        const topics = await committed({ ...scene, version: 7 }, claim.groupId, name);
        const { committedOffset, metadata: note, errorCode } = topics[0]!.partitions[0]!;
        assert.deepEqual([committedOffset, note, errorCode], [-1, "note", 0]);
      },
    ],
    [
      [2, 9],
      "takes offsets for a group without members",
      async (scene) => {
        const { name } = await scene.createTopic();
        assert.equal(await commit(scene, nobody(scene.createName("group")), name, 3), 0);
      },
    ],
    [
      [2, 9],
      "ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE",
      async (scene) => {
        const { name } = await scene.createTopic();
        const claim = await settle(scene);
        const codes = [
          await commit(scene, { ...claim, generationId: 9 }, name, 1),
          await commit(scene, { ...claim, memberId: "nobody" }, name, 1),
          await commit(scene, nobody(claim.groupId), name, 1),
          await commit(scene, claim, "missing", 1),
          await commit(scene, claim, name, 1, null, 5),
          await commit(scene, claim, name, 1, "x".repeat(4097)),
          await commit(scene, { ...nobody(scene.createName("group")), generationId: 4 }, name, 1),
        ];
        assert.deepEqual(codes, [
          ERROR_CODES.illegalGeneration,
          ERROR_CODES.unknownMemberId,
          ERROR_CODES.unknownMemberId,
          ERROR_CODES.unknownTopicOrPartition,
          ERROR_CODES.unknownTopicOrPartition,
          ERROR_CODES.offsetMetadataTooLarge,
          ERROR_CODES.illegalGeneration,
        ]);
      },
    ],
    [
      [2, 9],
      "INVALID_GROUP_ID for no name, INCONSISTENT_GROUP_PROTOCOL for a group of the broker's own",
      async (scene) => {
        const { name } = await scene.createTopic();
        const own = scene.createName("group");
        await scene.stage.broker.offsets.claim("", own, "dispatch");
        assert.equal(await commit(scene, nobody(""), name, 1), ERROR_CODES.invalidGroupId);
        assert.equal(
          await commit(scene, nobody(own), name, 1),
          ERROR_CODES.inconsistentGroupProtocol,
        );
      },
    ],
  ),
  ...casesOf(
    "OffsetFetch",
    [
      [1, 9],
      "gives what was committed, -1 for what was not",
      async (scene) => {
        const { name } = await scene.createTopic();
        const groupId = scene.createName("group");
        const before = await committed(scene, groupId, name);
        assert.equal(before[0]!.partitions[0]!.committedOffset, -1);
        await commit({ ...scene, version: 9 }, nobody(groupId), name, 5);
        const found = (await committed(scene, groupId, name))[0]!.partitions[0]!;
        assert.deepEqual([found.committedOffset, found.metadata], [5, "note"]);
      },
    ],
    [
      [2, 9],
      "gives everything for null topics",
      async (scene) => {
        const { name } = await scene.createTopic();
        const groupId = scene.createName("group");
        await commit({ ...scene, version: 9 }, nobody(groupId), name, 5);
        const found = await committed(scene, groupId, null);
        assert.deepEqual([found.length, found[0]!.name], [1, name]);
      },
    ],
  ),
  ...casesOf(
    "OffsetDelete",
    [
      [0, 0],
      "forgets an offset of a group without members",
      async (scene) => {
        const { name } = await scene.createTopic();
        const groupId = scene.createName("group");
        await commit({ ...scene, version: 9 }, nobody(groupId), name, 5);
        const topics = [{ name, partitions: [{ partitionIndex: 0 }] }];
        const answer = await scene.client.ask(offsetDelete, 0, { groupId, topics });
        assert.deepEqual([answer.errorCode, answer.topics[0]!.partitions[0]!.errorCode], [0, 0]);
        const found = await committed({ ...scene, version: 7 }, groupId, name);
        assert.equal(found[0]!.partitions[0]!.committedOffset, -1);
      },
    ],
    [
      [0, 0],
      "NON_EMPTY_GROUP with members that are no consumers, GROUP_ID_NOT_FOUND for no group",
      async (scene) => {
        const groupId = scene.createName("group");
        await join({ ...scene, version: 3 }, groupId, { protocolType: "connect" });
        const active = await scene.client.ask(offsetDelete, 0, { groupId, topics: [] });
        assert.equal(active.errorCode, ERROR_CODES.nonEmptyGroup);
        const missing = await scene.client.ask(offsetDelete, 0, { groupId: "missing", topics: [] });
        assert.equal(missing.errorCode, ERROR_CODES.groupIdNotFound);
      },
    ],
  ),
  ...casesOf(
    "DescribeGroups",
    [
      [0, 5],
      "shows state, members and their assignments",
      async (scene) => {
        const { groupId, memberId } = await settle(scene);
        const { groups } = await scene.client.ask(describeGroups, scene.version, {
          groups: [groupId],
        });
        const [group] = groups;
        assert.deepEqual(
          [group!.errorCode, group!.groupState, group!.protocolData],
          [0, "Stable", "range"],
        );
        const [member] = group!.members;
        assert.deepEqual(
          [member!.memberId, member!.clientId, member!.clientHost],
          [memberId, "test", "/127.0.0.1"],
        );
        assert.equal(member!.memberAssignment.toString(), "mine");
      },
    ],
    [
      [0, 5],
      "says Dead of a group that is not there, Empty of one without members",
      async (scene) => {
        const { name } = await scene.createTopic();
        const groupId = scene.createName("group");
        await commit({ ...scene, version: 9 }, nobody(groupId), name, 5);
        const body = { groups: ["missing", groupId] };
        const { groups } = await scene.client.ask(describeGroups, scene.version, body);
        assert.deepEqual(
          groups.map(({ groupState }) => groupState),
          ["Dead", "Empty"],
        );
      },
    ],
  ),
  ...casesOf(
    "ListGroups",
    [
      [0, 5],
      "lists groups with members and those with offsets alone",
      async (scene) => {
        const { name } = await scene.createTopic();
        const { groupId } = await settle(scene);
        const quiet = scene.createName("group");
        await commit({ ...scene, version: 9 }, nobody(quiet), name, 5);
        const { groups } = await scene.client.ask(listGroups, scene.version, {});
        const names = groups.map((group) => group.groupId);
        assert.ok(names.includes(groupId) && names.includes(quiet));
      },
    ],
    [
      [4, 5],
      "filters by state",
      async (scene) => {
        const { groupId } = await settle(scene);
        const ask = async (state: string) =>
          (await scene.client.ask(listGroups, scene.version, { statesFilter: [state] })).groups;
        assert.ok((await ask("Stable")).some((group) => group.groupId === groupId));
        assert.ok((await ask("Empty")).every((group) => group.groupId !== groupId));
      },
    ],
    [
      [5, 5],
      "filters by type",
      async (scene) => {
        await settle(scene);
        const ask = async (type: string) =>
          (await scene.client.ask(listGroups, 5, { typesFilter: [type] })).groups.length;
        assert.ok((await ask("classic")) > 0);
        assert.equal(await ask("consumer"), 0);
      },
    ],
  ),
  ...casesOf("DeleteGroups", [
    [0, 2],
    "forgets a group without members; NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND otherwise",
    async (scene) => {
      const { name } = await scene.createTopic();
      const { groupId } = await settle(scene);
      const quiet = scene.createName("group");
      await commit({ ...scene, version: 9 }, nobody(quiet), name, 5);
      const body = { groupsNames: [groupId, "missing", quiet] };
      const { results } = await scene.client.ask(deleteGroups, scene.version, body);
      assert.deepEqual(
        results.map(({ errorCode }) => errorCode),
        [ERROR_CODES.nonEmptyGroup, ERROR_CODES.groupIdNotFound, 0],
      );
      const found = await committed({ ...scene, version: 7 }, quiet, name);
      assert.equal(found[0]!.partitions[0]!.committedOffset, -1);
    },
  ]),
];
