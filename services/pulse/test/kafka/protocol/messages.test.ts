// Every message in every version: what is written is read back, and nothing else is.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "../../../src/kafka/protocol/error.ts";
import {
  readRequestBody,
  readRequestHeader,
  readResponse,
  writeRequest,
  writeResponse,
} from "../../../src/kafka/protocol/frame.ts";
import { Reader } from "../../../src/kafka/protocol/reader.ts";
import { allMessages, toWritten, valueOf, versionsOf, type AnyMessage } from "./arbitrary.ts";

const runs = { numRuns: 25 };

function encodeRequest(message: AnyMessage, version: number, body: unknown): Buffer {
  const header = { apiVersion: version, correlationId: 7, clientId: "test" };
  const written = toWritten(message.request.shape, body);
  const frame = Buffer.concat(writeRequest(message, header, written));
  assert.equal(frame.readInt32BE(0), frame.length - 4);
  return frame.subarray(4);
}

function encodeResponse(message: AnyMessage, version: number, body: unknown): Buffer {
  const written = toWritten(message.response.shape, body);
  const frame = Buffer.concat(writeResponse(message, version, 9, written));
  assert.equal(frame.readInt32BE(0), frame.length - 4);
  return frame.subarray(4);
}

function decodeRequest(frame: Buffer, message: AnyMessage): unknown {
  const reader = new Reader(frame);
  const header = readRequestHeader(reader);
  assert.equal(header.correlationId, 7);
  return readRequestBody(reader, message, header.apiVersion);
}

for (const message of allMessages) {
  describe(`${message.name} (key ${message.key})`, () => {
    for (const version of versionsOf(message)) {
      const flexible = version >= message.flexibleFrom;
      const requests = valueOf(message.request.shape, version, flexible);
      const responses = valueOf(message.response.shape, version, flexible);

      test(`version ${version} is parsed as it was encoded`, () => {
        fc.assert(
          fc.property(requests, responses, (request, response) => {
            const asked = encodeRequest(message, version, request);
            assert.deepEqual(decodeRequest(asked, message), request);
            const answered = encodeResponse(message, version, response);
            const read = readResponse(answered, message, version);
            assert.deepEqual(read, { correlationId: 9, body: response });
          }),
          runs,
        );
      });

      test(`version ${version} is parsed the same with surplus bytes after it, and rejected if truncated at any byte`, () => {
        fc.assert(
          fc.property(requests, (request) => {
            const frame = encodeRequest(message, version, request);
            for (let length = 0; length < frame.length; length++) {
              assert.throws(() => decodeRequest(frame.subarray(0, length), message), ProtocolError);
            }
            for (const surplus of [[0], [1, 0, 0], [0xff, 0xff, 0xff, 0xff]]) {
              const longer = Buffer.concat([frame, Buffer.from(surplus)]);
              assert.deepEqual(decodeRequest(longer, message), request);
            }
          }),
          { numRuns: 5 },
        );
      });

      test(`version ${version} with flipped bytes is parsed or rejected, without any other error`, () => {
        fc.assert(
          fc.property(
            requests,
            fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 4 }),
            (request, changes) => {
              const frame = Buffer.from(encodeRequest(message, version, request));
              for (const [at, byte] of changes) {
                if (frame.length > 16) frame[8 + (at % (frame.length - 8))] = byte;
              }
              try {
                decodeRequest(frame, message);
              } catch (error) {
                assert.ok(error instanceof ProtocolError, String(error));
              }
            },
          ),
          runs,
        );
      });
    }
  });
}
