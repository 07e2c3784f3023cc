// Responses that arrive on a stream instead of a socket, as those of tunnels.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ContentFilter,
  compilePlan,
  createEngine,
  createServer,
  createUpstreamPool,
  type UpstreamStream,
  type UpstreamStreamEvents,
} from "../../src/index.ts";
import { ask } from "../rig/raw.ts";

/** A stream whose sender answers each request with one buffer, and keeps it. */
function openAnswering(answer: Buffer, events: UpstreamStreamEvents): UpstreamStream {
  const nothing = (): void => {};
  return {
    writableLength: 0,
    writableNeedDrain: false,
    write: () => {
      setImmediate(() => events.onBytes(answer));
      return true;
    },
    end: nothing,
    destroy: () => setImmediate(() => events.onClose("")),
    destroySoon: nothing,
    pause: nothing,
    resume: nothing,
    keepReads: nothing,
  };
}

test("the sender of a stream keeps its bytes as they are when filters get the data of several chunks", async () => {
  const text =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n";
  const answer = Buffer.from(text);
  const read: string[] = [];
  const filter: ContentFilter = {
    onBytes: (bytes, output) => {
      read.push(bytes.toString());
      output.write(bytes);
    },
    onEnd: (output) => output.end(),
  };
  const engine = createEngine({ intervalMs: 20 });
  const pool = createUpstreamPool({
    engine,
    addresses: [{ path: "stream" }],
    openStream: (events) => openAnswering(answer, events),
  });
  const server = createServer({
    engine,
    handler: (exchange) => {
      exchange.responseFilter = { onResponse: () => [filter] };
      exchange.forward({ pool, plan: compilePlan() }, {});
    },
    onHandlerError: (error) => assert.fail(String(error)),
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  const { port } = server.address() as { port: number };
  try {
    const request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for (let round = 0; round < 2; round++)
      assert.match(await ask(port, request), /\r\n\r\nabcdef$/);
    assert.deepEqual(read, ["abcdef", "abcdef"], "one call for each read");
    assert.equal(answer.toString(), text);
  } finally {
    await server.close();
    pool.close();
    engine.close();
  }
});
