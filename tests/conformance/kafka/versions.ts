// Unsupported requests, and properties common to all requests.
import assert from "node:assert/strict";
import { readResponse } from "../../../services/pulse/src/kafka/protocol/frame.ts";
import { ERROR_CODES } from "../../../services/pulse/src/kafka/protocol/error-codes.ts";
import {
  apiVersions,
  describeCluster,
  heartbeat,
  initProducerId,
  listGroups,
  metadata,
} from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import { casesOf, type Case, type Scene } from "./case.ts";

/** A request that consists only of its header. */
function headerOf(key: number, version: number): Buffer {
  const bytes = Buffer.alloc(4 + 10);
  bytes.writeInt32BE(bytes.length - 4);
  bytes.writeInt16BE(key, 4);
  bytes.writeInt16BE(version, 6);
  bytes.writeInt32BE(7, 8);
  bytes.writeInt16BE(-1, 12);
  return bytes;
}

async function expectClosed({ client, stage }: Scene, bytes: Buffer): Promise<void> {
  client.sendRaw(bytes);
  assert.equal(await client.readFrame(), undefined);
  const other = await stage.connect();
  assert.equal((await other.ask(apiVersions, 0, {})).errorCode, 0, "others go on");
}

export const versionCases: readonly Case[] = [
  ...casesOf(
    "ApiVersions",
    [
      [5, 7],
      "UNSUPPORTED_VERSION in version 0, with the versions of ApiVersions, for one that is not known yet",
      async ({ client, version }) => {
        client.send(apiVersions, version, {});
        const frame = await client.readFrame();
        const { errorCode, apiKeys } = readResponse(frame!, apiVersions, 0).body;
        assert.equal(errorCode, ERROR_CODES.unsupportedVersion);
        assert.deepEqual(apiKeys, [{ apiKey: 18, minVersion: 0, maxVersion: 4 }]);
        const again = await client.ask(apiVersions, 4, {
          clientSoftwareName: "test",
          clientSoftwareVersion: "1",
        });
        assert.equal(again.errorCode, 0, "the connection goes on");
      },
    ],
    [
      [0, 4],
      "leaves out transactions, and requests of other brokers",
      async ({ client, version }) => {
        const { apiKeys } = await client.ask(apiVersions, version, {
          clientSoftwareName: "test",
          clientSoftwareVersion: "1",
        });
        const listed = new Set(apiKeys.map(({ apiKey }) => apiKey));
        // AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit, LeaderAndIsr, Vote, ConsumerGroupHeartbeat.
        for (const key of [24, 25, 26, 28, 4, 52, 68]) assert.ok(!listed.has(key), `key ${key}`);
      },
    ],
  ),
  ...casesOf("unknown requests", [
    [0, 1],
    "close their own connection: AddPartitionsToTxn, EndTxn, ConsumerGroupHeartbeat, no such key",
    async (scene) => {
      for (const key of [24, 26, 68, 12_345, -1]) {
        const client = await scene.stage.connect();
        await expectClosed({ ...scene, client }, headerOf(key, scene.version));
      }
    },
  ]),
  ...casesOf("unknown versions", [
    [13, 14],
    "of Metadata close their own connection",
    async (scene) => expectClosed(scene, headerOf(metadata.key, scene.version)),
  ]),
  ...casesOf("frames", [
    [0, 0],
    "with a negative length, over the bound, of less than a header, or of an array that cannot be, close their own connection",
    async (scene) => {
      const negative = Buffer.alloc(4);
      negative.writeInt32BE(-2);
      const large = Buffer.alloc(4);
      large.writeInt32BE(0x7fff_ffff);
      const short = Buffer.from([0, 0, 0, 3, 0, 3, 0]);
      const array = Buffer.concat([
        headerOf(metadata.key, 1),
        Buffer.from([0x7f, 0xff, 0xff, 0xff]),
      ]);
      array.writeInt32BE(array.length - 4);
      for (const bytes of [negative, large, short, array]) {
        const client = await scene.stage.connect();
        await expectClosed({ ...scene, client }, bytes);
      }
    },
  ]),
  ...casesOf("answers", [
    [0, 0],
    "come in the order of the requests, and throttle nobody",
    async ({ client }) => {
      const sent = [
        client.send(metadata, 12, { topics: null }),
        client.send(describeCluster, 1, { includeClusterAuthorizedOperations: false }),
        client.send(listGroups, 4, {}),
        client.send(heartbeat, 4, { groupId: "none", generationId: 1, memberId: "none" }),
        client.send(initProducerId, 4, { transactionalId: null, transactionTimeoutMs: 0 }),
      ];
      const expected = [metadata, describeCluster, listGroups, heartbeat, initProducerId];
      const versions = [12, 1, 4, 4, 4];
      for (const [index, message] of expected.entries()) {
        const frame = await client.readFrame();
        const { correlationId, body } = readResponse(frame!, message as never, versions[index]!);
        assert.equal(correlationId, sent[index]);
        assert.equal((body as { throttleTimeMs: number }).throttleTimeMs, 0);
      }
    },
  ]),
];
