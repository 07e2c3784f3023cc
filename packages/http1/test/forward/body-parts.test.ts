// A handler that reads the beginning of a request body: the upstream gets all of it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  type Exchange,
  type ForwardObserver,
  type ForwardTarget,
  compilePlan,
  createEngine,
  createServer,
  createUpstreamPool,
} from "../../src/index.ts";
import { openRaw, startUpstream } from "../rig/raw.ts";

type Handler = (
  exchange: Exchange<undefined>,
  forward: (observer?: ForwardObserver<undefined>) => void,
) => void;

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const cleanups: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

/** A server that forwards as `handler` wants. The upstream answers requests that contain `end`. */
async function startGateway(handler: Handler, failures = 0) {
  const upstream = await startUpstream((client, count) => {
    if (!client.text.includes("end")) return;
    if (count <= failures) client.socket.destroy();
    else client.socket.write(OK);
  });
  const engine = createEngine({ intervalMs: 20 });
  const pool = createUpstreamPool({
    engine,
    addresses: [{ host: "127.0.0.1", port: upstream.port }],
  });
  const target: ForwardTarget = { pool, plan: compilePlan() };
  const server = createServer({
    engine,
    handler: (exchange) => handler(exchange, (observer = {}) => exchange.forward(target, observer)),
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  cleanups.push(
    () => upstream.stop(),
    async () => {
      await server.close();
      pool.close();
      engine.close();
    },
  );
  const { port } = server.address() as { port: number };
  const seen = (at = 0): string => upstream.connections[at]?.text ?? "";
  return { port, seen, target };
}

/** Sends the pieces of a request, each after the condition before it holds. */
async function send(port: number, pieces: readonly (string | (() => boolean))[]): Promise<string> {
  const client = await openRaw(port);
  for (const piece of pieces) {
    if (typeof piece === "string") client.socket.write(piece);
    else await client.until(piece);
  }
  await client.untilClosed();
  client.socket.destroy();
  return client.text;
}

const post = (lines: string) =>
  `POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}\r\n\r\n`;
/** Reads at least `bytesMin` bytes, and forwards. */
const readFirst =
  (bytesMin: number, parts: string[]): Handler =>
  (exchange, forward) =>
    exchange.readBodyPart(bytesMin, (_exchange, outcome, part) => {
      parts.push(`${outcome} ${String(part)}`);
      forward();
    });
const contentOf = (request: string) => request.slice(request.indexOf("\r\n\r\n") + 4);

test("a part of a body with a length is read, and goes upstream before the rest", async () => {
  const parts: string[] = [];
  const { port, seen } = await startGateway(readFirst(3, parts));
  const answer = await send(port, [
    `${post("Content-Length: 12")}begin, `,
    () => contentOf(seen()) === "begin, ",
    "  end",
  ]);
  assert.match(answer, /200 OK/);
  assert.deepEqual(parts, ["part begin, "]);
  assert.match(seen(), /\r\nContent-Length: 12\r\n\r\nbegin,   end$/);
});

test("a part of a chunked body is framed anew with the rest, in the middle of a chunk as well", async () => {
  const parts: string[] = [];
  const { port, seen } = await startGateway(readFirst(3, parts));
  const answer = await send(port, [
    `${post("Transfer-Encoding: chunked\r\nTrailer: X-Late")}a\r\nbegin`,
    () => seen().includes("begin"),
    " then\r\n3\r\nend\r\n0\r\nX-Late: 1\r\n\r\n",
  ]);
  assert.match(answer, /200 OK/);
  assert.deepEqual(parts, ["part begin"]);
  assert.equal(
    seen(),
    "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" +
      "5\r\nbegin\r\n5\r\n then\r\n3\r\nend\r\n0\r\n\r\n",
  );
});

test("a body that is read to its end in parts is forwarded with its length", async () => {
  const parts: string[] = [];
  const readAll: Handler = (exchange, forward) => {
    exchange.readBodyPart(4, (_exchange, outcome, part) => {
      parts.push(`${outcome} ${String(part)}`);
      if (outcome === "complete") forward();
      else readAll(exchange, forward);
    });
  };
  const { port, seen } = await startGateway(readAll);
  await send(port, [
    `${post("Transfer-Encoding: chunked")}5\r\nbegin\r\n`,
    () => parts.length === 1,
    "1\r\n \r\n3\r\nend\r\n",
    () => parts.length === 2,
    "0\r\n\r\n",
  ]);
  assert.deepEqual(parts, ["part begin", "part  end", "complete "]);
  assert.match(seen(), /\r\nContent-Length: 9\r\n\r\nbegin end$/);
});

test("after a part the whole body can be collected, or streamed", async () => {
  const found: string[] = [];
  const { port, seen } = await startGateway((exchange, forward) => {
    exchange.readBodyPart(1, () => {
      if (exchange.head.targetString() === "/a") {
        exchange.readBody(100, (_exchange, outcome, body) => {
          found.push(`${outcome} ${String(body)}`);
          forward();
        });
        return;
      }
      let text = "";
      exchange.streamBody({
        onBody: (bytes, start, end, isLast) => {
          text += bytes.toString("latin1", start, end);
          if (!isLast) return;
          found.push(text);
          exchange.respond({ status: 200, body: text });
        },
        onBodyRefused: () => undefined,
      });
    });
  });
  const body = ["5\r\nbegin\r\n", () => found.length > 0 || true, "3\r\nend\r\n0\r\n\r\n"];
  await send(port, [post("Transfer-Encoding: chunked"), ...body]);
  assert.match(seen(), /\r\nContent-Length: 8\r\n\r\nbeginend$/);
  await send(port, [post("Transfer-Encoding: chunked").replace("/a", "/b"), ...body]);
  assert.deepEqual(found, ["complete beginend", "beginend"]);
});

test("another attempt gets the part as well", async () => {
  for (const [lines, body] of [
    ["Content-Length: 9", "begin end"],
    ["Transfer-Encoding: chunked", "9\r\nbegin end\r\n0\r\n\r\n"],
  ] as const) {
    const gateway = await startGateway((exchange, forward) => {
      exchange.readBodyPart(9, () => forward({ onFailure: () => gateway.target }));
    }, 1);
    const [first, last] = [body.slice(0, 6), body.slice(6)];
    const answer = await send(gateway.port, [post(lines), first, last]);
    assert.match(answer, /200 OK/);
    assert.ok(gateway.seen(1).includes("begin end"));
    assert.equal(contentOf(gateway.seen(1)), contentOf(gateway.seen(0)));
  }
});

test("the rest stays at the client until it is wanted", async () => {
  let bytesIn = -1;
  let proceed = (): void => undefined;
  const { port, seen } = await startGateway((exchange, forward) => {
    exchange.readBodyPart(1, () => {
      proceed = () => {
        ({ bytesIn } = exchange);
        forward();
      };
    });
  });
  const size = 4_000_000;
  const client = await openRaw(port);
  client.socket.write(`${post(`Content-Length: ${size + 3}`)}${"x".repeat(size)}end`);
  await new Promise((resolve) => setTimeout(resolve, 100));
  proceed();
  await client.untilText("200 OK");
  assert.ok(bytesIn > 0 && bytesIn < 1_000_000, String(bytesIn));
  assert.equal(contentOf(seen()).length, size + 3);
  client.socket.destroy();
});

test("a body that is too large is reported, and a client that leaves", async () => {
  const outcomes: string[] = [];
  const { port } = await startGateway((exchange) => {
    exchange.bodyBytesMax = 6;
    exchange.readBodyPart(100, (_exchange, outcome) => {
      outcomes.push(outcome);
      if (!exchange.aborted) exchange.respond({ status: 413 });
    });
  });
  assert.match(await send(port, [post("Content-Length: 7")]), / 413 /);
  assert.match(
    await send(port, [`${post("Transfer-Encoding: chunked")}7\r\n1234567\r\n`]),
    / 413 /,
  );
  const client = await openRaw(port);
  client.socket.write(`${post("Content-Length: 5")}12`);
  await new Promise((resolve) => setTimeout(resolve, 50));
  client.socket.destroy();
  await client.until(() => outcomes.length === 3);
  assert.deepEqual(outcomes, ["too-large", "too-large", "aborted"]);
});

test("a client that waits for 100 gets it, and the upstream is not asked for another", async () => {
  const parts: string[] = [];
  const { port, seen } = await startGateway(readFirst(1, parts));
  const client = await openRaw(port);
  client.socket.write(post("Content-Length: 6\r\nExpect: 100-continue"));
  await client.untilText("HTTP/1.1 100 Continue\r\n\r\n");
  client.socket.write("be");
  await client.until(() => parts.length === 1);
  client.socket.write(" end");
  await client.untilText("200 OK");
  assert.doesNotMatch(seen(), /expect/i);
  client.socket.destroy();
});

test("the next request of a connection begins with nothing", async () => {
  let requests = 0;
  const { port, seen } = await startGateway((exchange, forward) => {
    if (++requests > 1) forward();
    else exchange.readBodyPart(1, () => exchange.respond({ status: 200, body: "first" }));
  });
  const first = "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfirst";
  await send(port, [`${first}${post("Content-Length: 3")}end`]);
  assert.equal(contentOf(seen()), "end");
});
