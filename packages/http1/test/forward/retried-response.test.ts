// Responses that a filter replaces by those of another attempt, and requests that are forwarded again after a failure.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  type ContentFilter,
  type Exchange,
  type ForwardObserver,
  type ForwardTarget,
  compilePlan,
  createEngine,
  createServer,
  createUpstreamPool,
} from "../../src/index.ts";
import { ask, openRaw, startUpstream } from "../rig/raw.ts";

const FIRST = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
const SECOND = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CUT = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart";
const cleanups: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

interface Gateway {
  port: number;
  /** Requests of the upstream. */
  seen: string[];
  /** Calls of the filters, and the ends of requests. */
  notes: string[];
}

/** A filter that holds the head and calls `work` with the first bytes, or at the end. */
type Work = (
  exchange: Exchange<undefined>,
  retry: () => boolean,
  output: Parameters<ContentFilter["onBytes"]>[1],
) => void;

async function serveAnswers(
  answers: readonly (string | null)[],
  seen: string[],
): Promise<{ port: number; stop: () => Promise<void> }> {
  return startUpstream((client) => {
    const answer = answers[Math.min(seen.length, answers.length - 1)]!;
    seen.push(client.text);
    client.text = "";
    if (answer === null) client.socket.destroy();
    else if (answer === CUT) client.socket.end(answer);
    else client.socket.write(answer);
  });
}

async function startGateway(
  answers: readonly (string | null)[],
  work: Work,
  options: { when?: "bytes" | "end"; reads?: boolean; observer?: ForwardObserver<undefined> } = {},
): Promise<Gateway> {
  const { when = "bytes", reads = true } = options;
  const seen: string[] = [];
  const notes: string[] = [];
  const upstream = await serveAnswers(answers, seen);
  const engine = createEngine({ intervalMs: 20 });
  const pool = createUpstreamPool({
    engine,
    addresses: [{ host: "127.0.0.1", port: upstream.port }],
  });
  const target: ForwardTarget = { pool, plan: compilePlan() };
  const server = createServer({
    engine,
    onHandlerError: (error) => notes.push(String(error)),
    handler: (exchange) => {
      exchange.onEnd = (_exchange, { outcome, status, attempts }) =>
        notes.push(`end ${outcome} ${status} ${attempts}`);
      let answered = 0;
      exchange.responseFilter = {
        onResponse: (_exchange, draft) => {
          notes.push(`head ${draft.status}`);
          if (answered++ > 0) return [];
          return [
            {
              holdsHead: true,
              onBytes: (_bytes, output) => {
                if (when === "bytes") work(exchange, () => output.retry(target), output);
              },
              onEnd: (output) => {
                if (when === "end") work(exchange, () => output.retry(target), output);
              },
              onAbort: () => notes.push("aborted"),
            },
          ];
        },
      };
      const forward = (): void => exchange.forward(target, options.observer ?? {});
      if (reads) exchange.readBody(100, forward);
      else forward();
    },
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
  return { port, seen, notes };
}

const post = (body: string, more = "Connection: close\r\n") =>
  `POST /a HTTP/1.1\r\nHost: a\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;

for (const when of ["bytes", "end"] as const) {
  for (const isLater of [false, true]) {
    const time = `${isLater ? "later, after" : "with"} the ${when}`;
    test(`a filter replaces a response by that of another attempt, ${time}`, async () => {
      const gateway = await startGateway(
        [FIRST, SECOND],
        (exchange, retry) => {
          const work = (): void => {
            exchange.replaceBody(Buffer.from("again"));
            assert.equal(retry(), true);
          };
          if (isLater) setTimeout(work, 10);
          else work();
        },
        { when },
      );
      const answer = await ask(gateway.port, post("first"));
      assert.match(answer, /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nok$/s);
      assert.match(gateway.seen[0]!, /\r\n\r\nfirst$/);
      assert.match(gateway.seen[1]!, /Content-Length: 5\r\n\r\nagain$/);
      assert.deepEqual(gateway.notes, ["head 503", "aborted", "head 200", "end complete 200 2"]);
    });
  }
}

test("the connection of a client serves further requests after a replaced response", async () => {
  const gateway = await startGateway([FIRST, SECOND], (_exchange, retry) => retry());
  const client = await openRaw(gateway.port);
  client.socket.write(post("first", ""));
  await client.untilText("\r\n\r\nok");
  client.socket.write(post("next", ""));
  await client.until(() => client.text.split("\r\n\r\nok").length === 3);
  client.socket.destroy();
  assert.equal(gateway.seen.length, 4);
});

test("a response is not replaced once its head was sent", async () => {
  const results: boolean[] = [];
  const gateway = await startGateway([FIRST, SECOND], (_exchange, retry, output) => {
    output.write(Buffer.from("busy"));
    setTimeout(() => {
      results.push(retry());
      output.end();
    }, 20);
  });
  assert.match(await ask(gateway.port, post("first")), /^HTTP\/1\.1 503 .*busy$/s);
  assert.deepEqual(results, [false]);
  assert.equal(gateway.seen.length, 1);
});

test("a response to a body that was not collected is not replaced", async () => {
  const results: boolean[] = [];
  const gateway = await startGateway(
    [FIRST, SECOND],
    (_exchange, retry, output) => {
      results.push(retry());
      output.write(Buffer.from("busy"));
      output.end();
    },
    { reads: false },
  );
  assert.match(await ask(gateway.port, post("first")), /^HTTP\/1\.1 503 .*busy$/s);
  assert.deepEqual(results, [false]);
});

test("attempts end after sixteen", async () => {
  const gateway = await startGateway([null], () => undefined, {
    observer: {
      onFailure: (exchange, { target }) => {
        exchange.answersLater = true;
        setTimeout(() => {
          try {
            exchange.forward(target, { onFailure: () => target });
          } catch {
            exchange.respond({ status: 502, body: "no more" });
          }
        }, 1);
        return null;
      },
    },
  });
  assert.match(await ask(gateway.port, post("x")), /^HTTP\/1\.1 502 /);
  assert.equal(gateway.seen.length, 16);
});

test("a failed request is forwarded again later", async () => {
  const passOn: Work = (_exchange, _retry, output) => {
    output.write(Buffer.from("ok"));
    output.end();
  };
  const gateway = await startGateway([null, SECOND], passOn, {
    when: "end",
    observer: {
      onFailure: (exchange, { target }) => {
        exchange.answersLater = true;
        setTimeout(() => {
          exchange.replaceBody(Buffer.from("again"));
          exchange.forward(target, {});
        }, 10);
        return null;
      },
    },
  });
  assert.match(await ask(gateway.port, post("first")), /^HTTP\/1\.1 200 OK/);
  assert.match(gateway.seen[1]!, /\r\n\r\nagain$/);
  assert.deepEqual(gateway.notes, ["head 200", "end complete 200 2"]);
});

test("a held response that breaks off is a failure after which a collected request can be sent again", async () => {
  const failures: string[] = [];
  const gateway = await startGateway([CUT, SECOND], () => undefined, {
    observer: {
      onFailure: (_exchange, { kind, replayable, target }) => {
        failures.push(`${kind} ${replayable}`);
        return target;
      },
    },
  });
  assert.match(await ask(gateway.port, post("first")), /^HTTP\/1\.1 200 OK\r\n.*ok$/s);
  assert.deepEqual(failures, ["malformed-response true"]);
});
