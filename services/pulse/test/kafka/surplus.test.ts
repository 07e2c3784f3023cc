// Requests with surplus bytes at the end of their frame, as newer librdkafka sends them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FRAME_LENGTH_BYTES, readResponse, writeRequest } from "../../src/kafka/protocol/frame.ts";
import { apiVersions, listGroups, metadata } from "../../src/kafka/protocol/messages/index.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { KafkaClient } from "./client.ts";

/*
 * librdkafka 2.1 and newer (rd_kafka_MetadataRequest0) reserves four bytes for the count of topics and shrinks them to
 * one where there are topics to name. In a request for all topics they stay four zeros. The first one reads as the null
 * array, the other three as the rest of the request, so that the request's own end is surplus:
 *
 *   00 03 00 0c 00000002   Metadata 12, correlation id 2
 *   0007 "rdkafka" 00      client id, no tags
 *   00 00 00 00            topics: null; auto-creation: no; authorized operations: no; no tags
 *   01 00 00               surplus: auto-creation: yes; authorized operations: no; no tags
 */
const allTopicsOfLibrdkafka = Buffer.from(
  "000000190003000c00000002000772646b61666b610000000000010000",
  "hex",
);

function withSurplus(frame: Buffer, surplus: readonly number[]): Buffer {
  const longer = Buffer.concat([frame, Buffer.from(surplus)]);
  longer.writeInt32BE(longer.length - FRAME_LENGTH_BYTES);
  return longer;
}

test("librdkafka's Metadata request for all topics is answered despite its surplus bytes", async (t) => {
  const pulse = await startPulseHere(t);
  for (const topic of ["orders", "bills"]) await pulse.publish({ topic, payload: "x" });
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  client.sendRaw(allTopicsOfLibrdkafka);
  const frame = await client.readFrame();
  assert.ok(frame !== undefined, "the connection stays open");
  const { correlationId, body } = readResponse(frame, metadata, 12);
  assert.equal(correlationId, 2);
  assert.deepEqual(
    body.topics.map(({ name }) => name),
    ["orders", "bills"],
  );
  // It counts, and what follows is served as ever.
  assert.equal((await client.ask(metadata, 12, { topics: null })).topics.length, 2);
  const metrics = String((await pulse.get("/metrics")).body);
  const counted = /^platform_pulse_kafka_surplus_requests_total\{request="Metadata"\} 1$/m;
  assert.match(metrics, counted);
  assert.doesNotMatch(metrics, /^platform_pulse_kafka_faults_total\{kind="malformed"\}/m);
});

test("surplus bytes are ignored after any request, and a truncated one closes the connection", async (t) => {
  const pulse = await startPulseHere(t);
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  const header = { correlationId: 9, clientId: "test" };
  const frames = [
    writeRequest(apiVersions, { ...header, apiVersion: 0 }, {}),
    writeRequest(listGroups, { ...header, apiVersion: 0 }, {}),
    writeRequest(listGroups, { ...header, apiVersion: 4 }, { statesFilter: [] }),
    writeRequest(metadata, { ...header, apiVersion: 1 }, { topics: null }),
  ].map((parts) => Buffer.concat(parts));
  for (const frame of frames) {
    client.sendRaw(withSurplus(frame, [1, 2, 3, 4, 5]));
    assert.equal((await client.readFrame())?.readInt32BE(0), 9);
  }
  const last = frames.at(-1)!;
  const truncated = Buffer.from(last.subarray(0, last.length - 1));
  truncated.writeInt32BE(truncated.length - FRAME_LENGTH_BYTES);
  client.sendRaw(truncated);
  assert.equal(await client.readFrame(), undefined);
  const metrics = String((await pulse.get("/metrics")).body);
  assert.match(metrics, /^platform_pulse_kafka_surplus_requests_total\{request="ListGroups"\} 2$/m);
  assert.match(metrics, /^platform_pulse_kafka_faults_total\{kind="malformed"\} 1$/m);
});
