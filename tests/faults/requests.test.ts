// The request corpus through the real gateway: rejected requests never reach the upstream, accepted ones end at the
// same byte for the upstream.
import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { after, before, describe, test } from "node:test";
import { requestCorpus, type CorpusEntry } from "../../packages/http1/test/corpus/requests.ts";
import { takeRequest, type RecordedRequest } from "../../packages/http1/test/peers/recorder.ts";
import { ask, openRaw, type RawClient } from "../../packages/http1/test/rig/raw.ts";
import { readMetric, RUNTIMES, skipRuntime, sumMetrics } from "../stage/gateway-state.ts";
import { Stage, type StagedGateway } from "../stage/stage.ts";
import { startRecording, type Recording } from "./recording-upstream.ts";

const MARKER = "GET /marker HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
const INNOCENT = MARKER.replace("/marker", "/innocent");
const CHUNKED_HEAD = "POST /p HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";
const PIECES_MAX = 64;

type Delivery = (client: RawClient, bytes: Buffer) => Promise<void>;

const DELIVERIES: Record<string, Delivery> = {
  "in one write": async (client, bytes) => void client.socket.write(bytes),
  "in small pieces": async (client, bytes) => {
    const size = Math.ceil(bytes.length / PIECES_MAX);
    for (let at = 0; at < bytes.length; at += size) {
      client.socket.write(bytes.subarray(at, at + size));
      await setImmediate();
    }
  },
};

for (const runtime of RUNTIMES) {
  describe(`malformed requests, the gateway on ${runtime}`, { skip: skipRuntime(runtime) }, () => {
    const stage = new Stage();
    let recording: Recording;
    let gateway: StagedGateway;
    const counts = { refused: 0, refusedInContent: 0 };

    before(async () => {
      recording = await startRecording();
      gateway = await stage.startGateway(
        [{ prefix: "/", target: recording.url }],
        { workers: 1 },
        { PLATFORM_RUNTIME: runtime },
      );
    });
    after(async () => {
      recording.stop();
      await stage[Symbol.asyncDispose]();
    });

    for (const [how, deliver] of Object.entries(DELIVERIES)) {
      test(`each receives its status and a closed connection, ${how}; the upstream receives nothing, or incomplete content`, async () => {
        for (const entry of listRefused()) {
          // The part before invalid content may have been forwarded.
          const inContent = isRefusedInContent(entry);
          const reached = await expectRefusal(entry, deliver);
          if (how === "in one write" || !inContent) assert.equal(reached, 0, entry.name);
          counts[inContent ? "refusedInContent" : "refused"] += 1;
        }
      });

      test(`valid ones end at the same byte for upstream and client, ${how}`, async () => {
        for (const { name, payload } of listAccepted()) {
          const sent = payload + MARKER;
          const expected = [...readRequests(sent), ...readRequests(INNOCENT)];
          const seen = recording.requests.length;
          const statuses = await readStatuses(sent, deliver);
          await ask(gateway.port, INNOCENT);
          assert.deepEqual(recording.requests.slice(seen), expected, name);
          assert.deepEqual(statuses, Array(expected.length - 1).fill(200), name);
        }
      });
    }

    test("invalid content is rejected after its head was forwarded, and the upstream never receives it completely", async () => {
      const deliver: Delivery = async (client, bytes) => {
        const reached = recording.countBytes();
        client.socket.write(bytes.subarray(0, CHUNKED_HEAD.length));
        await client.until(() => recording.countBytes() > reached, "the head at the upstream");
        client.socket.write(bytes.subarray(CHUNKED_HEAD.length));
      };
      for (const entry of listRefused().filter(isRefusedInContent)) {
        await expectRefusal(entry, deliver);
        counts.refusedInContent += 1;
      }
    });

    test("the first worker has rejected and counted them all, and holds no resources", async () => {
      assert.equal(await readMetric(gateway, "platform_gate_workers_replaced_total"), 0);
      assert.equal(await readMetric(gateway, "platform_gate_bad_requests_total"), counts.refused);
      const answered = /^platform_http_requests_total\{route="\/",method="POST",status="4\d\d"\}$/;
      assert.equal(await sumMetrics(gateway, answered), counts.refusedInContent);
      assert.equal(recording.countUnfinished(), 0);
    });

    /** Returns the number of bytes that reached the upstream. */
    async function expectRefusal(
      { name, payload, expected }: CorpusEntry,
      deliver: Delivery,
    ): Promise<number> {
      const seen = recording.requests.length;
      const bytes = recording.countBytes();
      const status = typeof expected === "number" ? 200 : expected[0];
      assert.deepEqual(await readStatuses(payload + MARKER, deliver), [status], name);
      const reached = recording.countBytes() - bytes;
      // The next request arrives complete and alone: the connection has no leftover bytes.
      assert.match(await ask(gateway.port, INNOCENT), /^HTTP\/1\.1 200 /, name);
      assert.deepEqual(recording.requests.slice(seen), readRequests(INNOCENT), name);
      return reached;
    }

    /** Returns the statuses of the responses before the gateway closed the connection, which it must. */
    async function readStatuses(sent: string, deliver: Delivery): Promise<number[]> {
      const client = await openRaw(gateway.port);
      await deliver(client, Buffer.from(sent, "latin1"));
      await client.untilClosed();
      client.socket.destroy();
      return [...client.text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));
    }
  });
}

function listRefused(): CorpusEntry[] {
  return requestCorpus.filter(({ expected }) => typeof expected !== "number");
}

function listAccepted(): CorpusEntry[] {
  return requestCorpus.filter(({ expected }) => typeof expected === "number");
}

/** True if the head is valid. */
function isRefusedInContent({ payload }: CorpusEntry): boolean {
  return payload.startsWith(CHUNKED_HEAD);
}

/** Requests as parsed by an independent parser. */
function readRequests(text: string): RecordedRequest[] {
  const requests: RecordedRequest[] = [];
  // A server may skip empty lines before a request (RFC 9112, 2.2).
  let rest = text.replace(/^(?:\r\n)+/, "");
  for (let taken = takeRequest(rest); taken !== null; taken = takeRequest(rest)) {
    const { request } = taken;
    // Forwarded requests have the origin form.
    requests.push({ ...request, target: request.target.replace(/^https?:\/\/[^/]*/, "") });
    rest = taken.rest;
  }
  assert.equal(rest, "");
  return requests;
}
