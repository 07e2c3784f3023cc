// Requests whose head and body a handler changes before they are forwarded.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  type Exchange,
  type ForwardObserver,
  type ForwardTarget,
  compilePlan,
  createEngine,
  createServer,
  createUpstreamPool,
  Known,
} from "../../src/index.ts";
import { ask, openRaw, startUpstream } from "../rig/raw.ts";

type Handler = (
  exchange: Exchange<undefined>,
  forward: (observer?: ForwardObserver<undefined>) => void,
) => void;

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const cleanups: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

/** A server that forwards as `handler` wants; `seen` are the requests of the upstream. */
async function startGateway(handler: Handler, answers: readonly (string | null)[] = [OK]) {
  const seen: string[] = [];
  const upstream = await startUpstream((client, count) => {
    seen.push(client.text);
    client.text = "";
    const answer = answers[Math.min(count, answers.length) - 1]!;
    if (answer === null) client.socket.destroy();
    else client.socket.write(answer);
  });
  const engine = createEngine({ intervalMs: 20 });
  const pool = createUpstreamPool({
    engine,
    addresses: [{ host: "127.0.0.1", port: upstream.port }],
  });
  const target: ForwardTarget = { pool, plan: compilePlan() };
  const errors: unknown[] = [];
  const server = createServer({
    engine,
    handler: (exchange) => handler(exchange, (observer = {}) => exchange.forward(target, observer)),
    onHandlerError: (error) => errors.push(error),
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
  return { port, seen, errors, target };
}

const get = (lines = "", body = "") =>
  `GET /a?b HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nConnection: close\r\n${lines}\r\n${body}`;
const post = (lines: string, body: string) => get(lines, body).replace("GET", "POST");

/** The fields of a request, with those that `change` maps. */
function listFields(
  exchange: Exchange<undefined>,
  change: (name: string, value: string) => [string, string][] = (name, value) => [[name, value]],
): [string, string][] {
  const { fields } = exchange.head;
  return Array.from({ length: fields.count }, (_, at) =>
    change(fields.name(at), fields.value(at)),
  ).flat();
}

test("fields and method that are replaced are what later readers and the upstream see", async () => {
  let method = "";
  const gateway = await startGateway((exchange, forward) => {
    exchange.replaceHead({
      method: "DELETE",
      target: "/c?d",
      fields: [
        ...listFields(exchange, (name, value) => (name === "X-One" ? [] : [[name, value]])),
        ["X-Two", "2"],
      ],
    });
    method = exchange.head.method;
    assert.equal(exchange.head.fields.find("x-two"), "2");
    assert.equal(exchange.head.fields.find("x-one"), undefined);
    forward();
  });
  assert.match(await ask(gateway.port, get()), /200 OK/);
  assert.equal(method, "DELETE");
  assert.equal(gateway.seen[0], "DELETE /c?d HTTP/1.1\r\nHost: a\r\nX-Two: 2\r\n\r\n");
});

test("fields that are added are what later readers and the upstream see, also those of known names", async () => {
  const added: [string, string][][] = [
    [["X-Two", "2"]],
    [
      ["X-Three", "3"],
      ["Accept", "a/b"],
    ],
    [],
  ];
  const gateway = await startGateway((exchange, forward) => {
    for (const fields of added) exchange.appendFields(fields);
    assert.equal(exchange.head.fields.find("x-two"), "2");
    assert.equal(exchange.head.fields.get(Known.Accept), "a/b");
    assert.equal(exchange.head.targetString(), "/a?b");
    forward();
  });
  await ask(gateway.port, get("X-More: y\r\n"));
  const own = "Host: a\r\nX-One: 1\r\nX-More: y\r\n";
  const all = `GET /a?b HTTP/1.1\r\n${own}X-Two: 2\r\nX-Three: 3\r\nAccept: a/b\r\n\r\n`;
  assert.equal(gateway.seen[0], all);
  // The content follows, and so does the next request of the connection.
  const body = await ask(gateway.port, post("Content-Length: 5\r\n", "hello"));
  assert.match(body, /200 OK/);
  assert.match(gateway.seen.slice(1).join(""), /X-Two: 2.*\r\n\r\nhello$/s);
});

test("fields are added to a head that arrives in pieces, with what belongs to its content", async () => {
  for (const bad of [false, true]) {
    const gateway = await startGateway((exchange, forward) => {
      exchange.appendFields([["X-Two", "2".repeat(60)]]);
      if (bad)
        assert.throws(() => exchange.appendFields([["X A", "1"]]), { code: "space_before_colon" });
      exchange.appendFields([["X-Three", "3"]]);
      forward();
    });
    const client = await openRaw(gateway.port);
    const whole = post("Content-Length: 5\r\n", "hello");
    client.socket.write(whole.slice(0, 25));
    await new Promise((resolve) => setTimeout(resolve, 20));
    client.socket.write(whole.slice(25));
    await client.untilClosed();
    client.socket.destroy();
    const own = "POST /a?b HTTP/1.1\r\nHost: a\r\nX-One: 1\r\n";
    const added = `X-Two: ${"2".repeat(60)}\r\nX-Three: 3\r\n`;
    assert.equal(gateway.seen.join(""), `${own}${added}Content-Length: 5\r\n\r\nhello`);
  }
});

test("a client that nominates a name cannot take away a field that is added", async () => {
  const gateway = await startGateway((exchange, forward) => {
    exchange.appendFields([["X-Two", "2"]]);
    forward();
  });
  await ask(gateway.port, get().replace("Connection: close", "Connection: close, X-Two"));
  assert.match(gateway.seen[0]!, /\r\nX-Two: 2\r\n/);
});

test("the body of a request follows a head that is replaced", async () => {
  for (const lines of ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"]) {
    const gateway = await startGateway((exchange, forward) => {
      exchange.replaceHead({ method: "PUT", target: "/", fields: listFields(exchange) });
      forward();
    });
    const body = lines.startsWith("C") ? "hello" : "5\r\nhello\r\n0\r\n\r\n";
    await ask(gateway.port, post(lines, body));
    assert.match(gateway.seen.join(""), /^PUT /);
    assert.ok(gateway.seen.join("").endsWith(`\r\n\r\n${body}`));
  }
});

const refused: [
  name: string,
  method: string,
  fields: (own: [string, string][]) => [string, string][],
  code: string,
][] = [
  ["a line break in a value", "GET", (own) => [...own, ["X-A", "1\r\nX-B: 2"]], "bad_field_value"],
  ["a name with a space", "GET", (own) => [...own, ["X A", "1"]], "space_before_colon"],
  [
    "an end of the head in a value",
    "GET",
    (own) => [...own, ["X-A", "1\r\n\r\nGET / HTTP/1.1"]],
    "bad_field_value",
  ],
  [
    "a length that the request does not have",
    "GET",
    (own) => [...own, ["Content-Length", "3"]],
    "framing_changed",
  ],
  ["two hosts", "GET", (own) => [...own, ["Host", "b"]], "host_repeated"],
  ["HEAD for GET", "HEAD", (own) => own, "method_changed"],
  ["a method with a space", "GET /b", (own) => own, "bad_request_line"],
];
for (const [name, method, change, code] of refused) {
  test(`${name} is refused, and the request stays as it was`, async () => {
    let found = "accepted";
    const gateway = await startGateway((exchange, forward) => {
      try {
        exchange.replaceHead({ method, target: "/a?b", fields: change(listFields(exchange)) });
      } catch (error) {
        found = (error as { code: string }).code;
      }
      forward();
    });
    await ask(gateway.port, get());
    assert.equal(found, code);
    assert.match(gateway.seen[0]!, /^GET \/a\?b .*\r\nX-One: 1\r\n\r\n$/s);
  });
}

const notAdded: [name: string, fields: [string, string][], code: string][] = [
  ["a line break", [["X-A", "1\r\nX-B: 2"]], "bad_field_value"],
  ["an end of the head", [["X-A", "1\r\n\r\nGET / HTTP/1.1"]], "bad_field_value"],
  [
    "a name with a space",
    [
      ["X-B", "1"],
      ["X A", "1"],
    ],
    "space_before_colon",
  ],
  ["a length", [["Content-Length", "3"]], "framing_changed"],
  ["a transfer coding", [["Transfer-Encoding", "chunked"]], "framing_changed"],
  [
    "another host",
    [
      ["X-B", "1"],
      ["Host", "b"],
    ],
    "host_repeated",
  ],
  ["too many fields", Array.from({ length: 200 }, (_, at) => [`X-${at}`, "1"]), "too_many_fields"],
  ["too large a head", [["X-A", "x".repeat(70_000)]], "head_too_large"],
];
for (const [name, fields, code] of notAdded) {
  test(`${name} is not added, and the request stays as it was`, async () => {
    let found = "accepted";
    const gateway = await startGateway((exchange, forward) => {
      try {
        exchange.appendFields(fields);
      } catch (error) {
        found = (error as { code: string }).code;
      }
      forward();
    });
    await ask(gateway.port, get());
    assert.equal(found, code);
    assert.match(gateway.seen[0]!, /^GET \/a\?b .*\r\nX-One: 1\r\n\r\n$/s);
  });
}

test("a replaced body is sent with its length, also by a request that had none", async () => {
  const gateway = await startGateway((exchange, forward) => {
    exchange.readBody(100, () => {
      exchange.replaceBody(Buffer.from("changed"));
      forward();
    });
  });
  const length = "Content-Length: 5\r\n";
  await ask(gateway.port, post(length, "hello"));
  await ask(gateway.port, post("Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n\r\n"));
  await ask(gateway.port, get());
  for (const request of gateway.seen)
    assert.match(request, /\r\nContent-Length: 7\r\n\r\nchanged$/);
  assert.equal(gateway.seen.length, 3);
});

test("a body that has not been collected cannot be replaced", async () => {
  const gateway = await startGateway((exchange) => {
    exchange.replaceBody(Buffer.alloc(0));
  });
  assert.match(await ask(gateway.port, post("Content-Length: 5\r\n", "")), / 500 /);
});

test("a body is replaced between two attempts", async () => {
  const gateway = await startGateway(
    (exchange, forward) => {
      exchange.readBody(100, () => {
        forward({
          onFailure: () => {
            exchange.replaceBody(Buffer.from("second"));
            return gateway.target;
          },
        });
      });
    },
    [null, OK],
  );
  assert.match(await ask(gateway.port, post("Content-Length: 5\r\n", "first")), /200 OK/);
  assert.match(gateway.seen[0]!, /first$/);
  assert.match(gateway.seen[1]!, /Content-Length: 6\r\n\r\nsecond$/);
});

test("a handler answers a failed request later", async () => {
  const ends: string[] = [];
  const gateway = await startGateway(
    (exchange, forward) => {
      exchange.onEnd = (_exchange, { outcome, status }) => ends.push(`${outcome} ${status}`);
      forward({
        onFailure: () => {
          exchange.answersLater = true;
          setTimeout(() => exchange.respond({ status: 502, body: "later" }), 20);
          return null;
        },
      });
    },
    [null],
  );
  assert.match(await ask(gateway.port, get()), /^HTTP\/1.1 502 .*later$/s);
  assert.deepEqual(ends, ["failed 502"]);
});

test("a client that leaves ends a request that is to be answered later", async () => {
  const ends: string[] = [];
  const gateway = await startGateway(
    (exchange, forward) => {
      exchange.onEnd = (_exchange, { outcome }) => ends.push(outcome);
      forward({
        onFailure: () => {
          exchange.answersLater = true;
          return null;
        },
      });
    },
    [null],
  );
  const client = await openRaw(gateway.port);
  client.socket.write(get());
  await waitFor(() => gateway.seen.length === 1);
  client.socket.destroy();
  await waitFor(() => ends.length === 1);
  assert.deepEqual(ends, ["client-aborted"]);
});

test("a connection whose content a filter held is used again", async () => {
  const gateway = await startGateway((exchange, forward) => {
    exchange.responseFilter = {
      onResponse: () => [
        {
          holdsHead: true,
          // All of the content is here: the filter passes it on later.
          onBytes: (bytes, output) => {
            const kept = Buffer.from(bytes);
            output.pause();
            setTimeout(() => {
              output.write(kept);
              output.end();
            }, 20);
          },
          onEnd: () => undefined,
        },
      ],
    };
    forward();
  });
  for (let request = 0; request < 3; request++)
    assert.match(await ask(gateway.port, get()), /200 OK.*\r\n\r\nok$/s);
  assert.equal(gateway.seen.length, 3);
});
