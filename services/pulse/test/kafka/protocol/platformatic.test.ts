// Against @platformatic/kafka's own codecs: its requests byte for byte, our responses value by value.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as platformatic from "@platformatic/kafka";
import fc from "fast-check";
import {
  readRequestBody,
  readRequestHeader,
  writeRequest,
  writeResponse,
} from "../../../src/kafka/protocol/frame.ts";
import { Reader } from "../../../src/kafka/protocol/reader.ts";
import type { Shape } from "../../../src/kafka/protocol/schema.ts";
import { allMessages, toWritten, valueOf, versionsOf, type AnyMessage } from "./arbitrary.ts";

type Parse = (correlationId: number, key: number, version: number, reader: unknown) => unknown;
interface Peer {
  createRequest: () => { buffer: Buffer };
  parseResponse: Parse;
}

const uuid = "0f".repeat(4) + "-" + ["0f0f", "4f0f", "8f0f"].join("-") + "-" + "0f".repeat(6);
const bytes = Buffer.from("some bytes");
const messages = [
  { topic: "one", partition: 0, key: Buffer.from("k"), value: Buffer.from("v"), timestamp: 17n },
  { topic: "two", partition: 3, value: Buffer.from("w"), timestamp: 18n },
];
const acl = {
  resourceType: 2,
  resourceName: "one",
  resourcePatternType: 3,
  principal: "Role:editor",
  host: "*",
  operation: 4,
  permissionType: 3,
};
const offsets = [
  { name: "one", partitionIndexes: [0, 1] },
  { name: "two", partitionIndexes: [] },
];

/** Arguments of the peer's request functions; they take the same ones in every version, mostly. */
const requests: Record<string, (version: number) => unknown[]> = {
  Produce: () => [-1, 1500, messages, { transactionalId: "t" }],
  Fetch: (version) => [
    500,
    1,
    1000,
    1,
    0,
    -1,
    [
      {
        topic: "one",
        topicId: uuid,
        partitions: [
          {
            partition: 1,
            currentLeaderEpoch: 2,
            fetchOffset: 3n,
            lastFetchedEpoch: 4,
            partitionMaxBytes: 5,
          },
        ],
      },
    ],
    version >= 7 && version <= 12 ? [{ topic: "two", topicId: uuid, partitions: [1, 2] }] : [],
    "rack",
  ],
  ListOffsets: () => [
    -1,
    1,
    [{ name: "one", partitions: [{ partitionIndex: 1, currentLeaderEpoch: 2, timestamp: -1n }] }],
  ],
  Metadata: () => [["one", "two"], true, false, true],
  OffsetCommit: () => [
    "g",
    4,
    "m",
    "i",
    [
      {
        name: "one",
        partitions: [
          {
            partitionIndex: 1,
            committedOffset: 99n,
            committedLeaderEpoch: 3,
            committedMetadata: "meta",
          },
        ],
      },
    ],
  ],
  OffsetFetch: () => [[{ groupId: "g", memberId: "m", memberEpoch: 3, topics: offsets }], true],
  FindCoordinator: () => [0, ["g"]],
  JoinGroup: () => [
    "g",
    10_000,
    60_000,
    "m",
    "i",
    "consumer",
    [{ name: "range", metadata: bytes }],
    "why",
  ],
  Heartbeat: () => ["g", 5, "m", "i"],
  LeaveGroup: () => ["g", [{ memberId: "m", groupInstanceId: "i", reason: "why" }]],
  SyncGroup: () => ["g", 5, "m", "i", "consumer", "range", [{ memberId: "m", assignment: bytes }]],
  DescribeGroups: () => [["g", "h"], true],
  ListGroups: () => [["Stable"], ["classic"]],
  SaslHandshake: () => ["PLAIN"],
  SaslAuthenticate: () => [bytes],
  ApiVersions: () => ["name", "1.0.0"],
  CreateTopics: () => [
    [
      {
        name: "one",
        numPartitions: 3,
        replicationFactor: 1,
        assignments: [{ partitionIndex: 0, brokerIds: [1] }],
        configs: [{ name: "cleanup.policy", value: "compact" }],
      },
    ],
    3000,
    true,
  ],
  DeleteTopics: () => [[{ name: "one", topicId: uuid }], 3000],
  DeleteRecords: () => [[{ name: "one", partitions: [{ partitionIndex: 1, offset: 17n }] }], 3000],
  InitProducerId: () => [null, 60_000, 7n, 2],
  OffsetForLeaderEpoch: () => [
    -1,
    [
      {
        name: "one",
        partitions: [{ partition: 1, index: 1, currentLeaderEpoch: 2, leaderEpoch: 1 }],
      },
    ],
  ],
  DescribeCluster: () => [true, 1],
  DescribeConfigs: () => [
    [{ resourceType: 2, resourceName: "one", configurationKeys: ["a"] }],
    true,
    true,
  ],
  AlterConfigs: () => [
    [{ resourceType: 2, resourceName: "one", configs: [{ name: "a", value: "b" }] }],
    true,
  ],
  IncrementalAlterConfigs: () => [
    [
      {
        resourceType: 2,
        resourceName: "one",
        configs: [{ name: "a", configOperation: 1, value: null }],
      },
    ],
    true,
  ],
  CreatePartitions: () => [
    [{ name: "one", count: 4, assignments: [{ brokerIds: [1, 2] }] }],
    3000,
    true,
  ],
  DescribeAcls: () => [acl],
  CreateAcls: () => [[acl]],
  DeleteAcls: () => [[acl]],
  DeleteGroups: () => [["g", "h"]],
  OffsetDelete: () => ["g", [{ name: "one", partitions: [{ partitionIndex: 1 }] }]],
};

function findPeer(message: AnyMessage, version: number): Peer | undefined {
  const name = `${message.name[0]!.toLowerCase()}${message.name.slice(1)}V${version}`;
  const module = (platformatic as unknown as Record<string, { api: Function } | undefined>)[name];
  if (module === undefined) return undefined;
  let peer: Peer | undefined;
  const send = (
    _key: number,
    _version: number,
    createRequest: Peer["createRequest"],
    parseResponse: Parse,
  ) => {
    peer = { createRequest, parseResponse };
  };
  module.api({ send }, ...requests[message.name]!(version), () => undefined);
  return peer;
}

/** The numbers and texts in a value, as texts, sorted. */
function leavesOf(value: unknown): string[] {
  if (value === null || value === undefined) return [];
  if (Buffer.isBuffer(value)) return [value.toString("hex")];
  if (typeof value === "string") return [value.replaceAll("-", "")];
  if (typeof value !== "object") return [JSON.stringify(Number(value))];
  return Object.values(value).flatMap(leavesOf).sort();
}

function leavesThere(shape: Shape, value: unknown, version: number): string[] {
  if (shape.kind === "array") {
    return ((value as unknown[] | null) ?? []).flatMap((item) =>
      leavesThere(shape.item, item, version),
    );
  }
  if (shape.kind !== "struct" || value === null) return leavesOf(value);
  return shape.fields
    .filter(({ since, until }) => version >= since && version <= until)
    .flatMap((field) =>
      leavesThere(field.shape, (value as Record<string, unknown>)[field.name], version),
    );
}

for (const message of allMessages) {
  describe(message.name, () => {
    for (const version of versionsOf(message)) {
      const peer = findPeer(message, version);
      const skip = peer === undefined ? "the peer has no such version" : false;

      test(
        `a request of version ${version} is parsed and encoded to the same bytes`,
        { skip },
        () => {
          const body = peer!.createRequest().buffer;
          const frame = Buffer.concat([encodeHeader(message, version), body]);
          const reader = new Reader(frame);
          const header = readRequestHeader(reader);
          const read = readRequestBody(reader, message, version);
          const written = writeRequest(message, header, toWritten(message.request.shape, read));
          assert.equal(Buffer.concat(written).subarray(4).toString("hex"), frame.toString("hex"));
        },
      );

      test(`a response of version ${version} is parsed by the peer`, { skip }, () => {
        const flexible = version >= message.flexibleFrom;
        const values = valueOf(message.response.shape, version, flexible);
        fc.assert(
          fc.property(values, (value) => {
            const response = clean(message.response.shape, value) as object;
            const parts = writeResponse(
              message,
              version,
              1,
              toWritten(message.response.shape, response),
            );
            const hasTag = flexible && message.name !== "ApiVersions";
            const reader = platformatic.Reader.from(Buffer.concat(parts).subarray(hasTag ? 9 : 8));
            const seen = leavesOf(peer!.parseResponse(1, message.key, version, reader));
            assert.equal(reader.remaining, 0);
            for (const leaf of leavesThere(message.response.shape, response, version)) {
              assert.ok(seen.includes(leaf), `${leaf} is not in ${JSON.stringify(seen)}`);
            }
          }),
          { numRuns: 20 },
        );
      });
    }
  });
}

function encodeHeader(message: AnyMessage, version: number): Buffer {
  const header = Buffer.from([0, message.key, 0, version, 0, 0, 0, 5, 0, 1, 99]);
  return version >= message.flexibleFrom ? Buffer.concat([header, Buffer.from([0])]) : header;
}

/** No errors (the peer throws on them), no records (it decodes them), nothing that it does not keep. */
function clean(shape: Shape, value: unknown, name = ""): unknown {
  if (shape.kind === "records") return null;
  if (/error/i.test(name) && shape.kind === "int16") return 0;
  if (/errors$/i.test(name)) return [];
  if (value === null || value === undefined) return value;
  if (shape.kind === "array") {
    return (value as unknown[]).map((item) => clean(shape.item, item));
  }
  if (shape.kind !== "struct") return value;
  return Object.fromEntries(
    shape.fields.map((field) => {
      const given = (value as Record<string, unknown>)[field.name];
      return [
        field.name,
        field.tag === undefined ? clean(field.shape, given, field.name) : field.fallback,
      ];
    }),
  );
}
