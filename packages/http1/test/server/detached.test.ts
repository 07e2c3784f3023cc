// Requests that no client waits for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createEngine, createServer, type Exchange, type RequestEnd } from "../../src/index.ts";

const HEAD = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

function createRig(handle: (exchange: Exchange<string>) => void) {
  const engine = createEngine();
  const ends: string[] = [];
  const server = createServer<string>({
    engine,
    handler: (exchange) => {
      exchange.onEnd = ({ userData, head }, end: RequestEnd) =>
        ends.push(`${userData} ${head.pathString()} ${end.status} ${end.outcome}`);
      handle(exchange);
    },
  });
  const run = async (head: string): Promise<void> => {
    const closed = Promise.withResolvers<void>();
    server.handleDetached(Buffer.from(head), "own", closed.resolve);
    assert.equal(server.counts.connections, 1);
    await closed.promise;
    assert.equal(server.counts.connections, 0);
  };
  return { server, ends, run, close: () => engine.close() };
}

test("a response without a client is discarded, also a long one, and its connection ends", async () => {
  for (const size of [0, 10, 5_000_000]) {
    const { ends, run, close } = createRig((exchange) =>
      exchange.respond({ status: 200, body: "x".repeat(size) }),
    );
    await run(HEAD);
    assert.deepEqual(ends, ["own /x 200 complete"]);
    close();
  }
});

test("a streamed response without a client never waits for its reader", async () => {
  const { ends, run, close } = createRig((exchange) => {
    exchange.startResponse({ status: 200 });
    for (let times = 0; times < 100; times++) assert.ok(exchange.write(Buffer.alloc(100_000)));
    exchange.end();
  });
  await run(HEAD);
  assert.deepEqual(ends, ["own /x 200 complete"]);
  close();
});

test("the end of a request without a client is reported if its head is refused, too", async () => {
  const { ends, run, close } = createRig(() => assert.fail("it reached the handler"));
  await run(HEAD.replace("Host: a", "Host : a"));
  assert.deepEqual(ends, []);
  close();
});

test("a server that drains waits for requests without a client", async () => {
  const held = Promise.withResolvers<Exchange<string>>();
  const { server, ends, run, close } = createRig((exchange) => held.resolve(exchange));
  await server.listen({ host: "127.0.0.1" });
  const done = run(HEAD);
  const exchange = await held.promise;
  const drained = server.drain(60_000);
  exchange.respond({ status: 204 });
  await Promise.all([done, drained]);
  assert.deepEqual(ends, ["own /x 204 complete"]);
  close();
});
