// Limits and waits of the pool, with real sockets and a manual clock.
import assert from "node:assert/strict";
import { type AddressInfo, type Server, type Socket, createServer } from "node:net";
import { afterEach, test } from "node:test";

import { waitFor } from "@platform/testing/wait";
import { type Engine, type UpstreamPoolOptions, createEngine } from "../../src/index.ts";
import { type Acquirer, Reuse, type ReuseKind } from "../../src/upstream/acquire.ts";
import type { UpstreamConnection } from "../../src/upstream/connection.ts";
import { ConnectionPool } from "../../src/upstream/pool.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** Waits for a connection and tells what came. */
class Waiter implements Acquirer {
  waitingSinceMs = 0;
  reuse: ReuseKind = Reuse.Any;
  connection: UpstreamConnection | null = null;
  failure = "";
  readonly settled: Promise<void>;
  #settle: () => void = () => {};

  constructor(pool: ConnectionPool, reuse: ReuseKind = Reuse.Any) {
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
    const connection = pool.acquire(this, reuse);
    if (connection !== null) this.onAcquired(connection);
  }

  onAcquired(connection: UpstreamConnection): void {
    this.connection = connection;
    this.#settle();
  }

  onAcquireFailed(kind: string, code: string): void {
    this.failure = `${kind} ${code}`.trim();
    this.#settle();
  }
}

async function listen(): Promise<{ port: number; sockets: Socket[]; server: Server }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets, server };
}

function setUp(
  port: number,
  options: Partial<UpstreamPoolOptions> = {},
): { pool: ConnectionPool; engine: Engine; advance: (ms: number) => void } {
  let nowMs = 1;
  const engine = createEngine({ now: () => nowMs, intervalMs: 10_000 });
  const pool = new ConnectionPool({ engine, addresses: [{ host: "127.0.0.1", port }], ...options });
  cleanups.push(() => {
    pool.close();
    engine.close();
  });
  return {
    pool,
    engine,
    advance: (ms) => {
      nowMs += ms;
      engine.tick();
    },
  };
}

test("the most recently idle connection is used first", async () => {
  const { port } = await listen();
  const { pool } = setUp(port);
  const [one, two] = [new Waiter(pool), new Waiter(pool)];
  await Promise.all([one.settled, two.settled]);
  pool.release(one.connection!);
  pool.release(two.connection!);
  assert.equal(new Waiter(pool).connection, two.connection);
  assert.deepEqual(pool.counts, { open: 2, connecting: 0, idle: 1, waiting: 0 });
});

test("requests beyond the maximum wait in order, and those beyond the queue limit are refused", async () => {
  const { port } = await listen();
  const { pool } = setUp(port, { connectionsMax: 1, waitingMax: 2 });
  const first = new Waiter(pool);
  await first.settled;
  const waiting = [new Waiter(pool), new Waiter(pool)];
  assert.deepEqual(pool.counts, { open: 1, connecting: 0, idle: 0, waiting: 2 });
  const refused = new Waiter(pool);
  assert.equal(refused.failure, "queue-full");
  pool.release(first.connection!);
  assert.equal(waiting[0]!.connection, first.connection);
  assert.equal(waiting[1]!.connection, null);
});

test("a released connection is not assigned to a request that needs a new one", async () => {
  const { port } = await listen();
  const { pool } = setUp(port);
  const used = new Waiter(pool);
  await used.settled;
  const fresh = new Waiter(pool, Reuse.Never);
  const any = new Waiter(pool);
  pool.release(used.connection!);
  assert.equal(any.connection, used.connection);
  assert.equal(fresh.connection, null);
  await fresh.settled;
  assert.ok(fresh.connection !== null && fresh.connection !== used.connection);
});

test("at the maximum, a released connection is closed for a request that needs a new one", async () => {
  const { port } = await listen();
  const { pool } = setUp(port, { connectionsMax: 1 });
  const used = new Waiter(pool);
  await used.settled;
  const fresh = new Waiter(pool, Reuse.Never);
  assert.deepEqual(pool.counts, { open: 1, connecting: 0, idle: 0, waiting: 1 });
  pool.release(used.connection!);
  await fresh.settled;
  assert.ok(fresh.connection !== null && fresh.connection !== used.connection);
  assert.deepEqual(pool.counts, { open: 1, connecting: 0, idle: 0, waiting: 0 });
});

test("a request that cannot be repeated does not use a connection with an unread FIN", async () => {
  const { port, sockets } = await listen();
  const { pool } = setUp(port);
  const first = new Waiter(pool);
  await first.settled;
  await waitFor(() => sockets.length === 1);
  // The reset is in the system before this turn of the event loop ends, and is read in the next one.
  sockets[0]!.resetAndDestroy();
  pool.release(first.connection!);
  const checked = new Waiter(pool, Reuse.Checked);
  await checked.settled;
  assert.ok(checked.connection !== null && checked.connection !== first.connection);
  assert.equal(checked.connection.dead, false);
});

test("a waiting request that cannot be repeated uses a released connection only after a poll", async () => {
  const { port, sockets } = await listen();
  const { pool } = setUp(port, { connectionsMax: 2 });
  const [dying, sound] = [new Waiter(pool), new Waiter(pool)];
  await Promise.all([dying.settled, sound.settled]);
  await waitFor(() => sockets.length === 2);
  const waiting = [new Waiter(pool, Reuse.Checked), new Waiter(pool, Reuse.Checked)];
  const { localPort } = dying.connection!.socket as Socket;
  sockets.find(({ remotePort }) => remotePort === localPort)!.resetAndDestroy();
  pool.release(dying.connection!);
  pool.release(sound.connection!);
  assert.deepEqual(
    waiting.map(({ connection }) => connection),
    [null, null],
  );
  await Promise.all(waiting.map(({ settled }) => settled));
  assert.equal(waiting[0]!.connection, sound.connection);
  assert.ok(waiting[1]!.connection !== null && !waiting[1]!.connection.dead);
});

test("a request that cannot be repeated uses an open idle connection, immediately after a sweep", async () => {
  const { port } = await listen();
  const { pool, advance } = setUp(port);
  const first = new Waiter(pool);
  await first.settled;
  pool.release(first.connection!);
  const next = new Waiter(pool, Reuse.Checked);
  assert.equal(next.connection, null);
  await next.settled;
  assert.equal(next.connection, first.connection);
  pool.release(first.connection!);
  advance(1_000);
  assert.equal(new Waiter(pool, Reuse.Checked).connection, first.connection);
});

test("a request that waits too long fails, one that cancels is not called", async () => {
  const { port } = await listen();
  const { pool, advance } = setUp(port, { connectionsMax: 1, waitTimeoutMs: 1_000 });
  const first = new Waiter(pool);
  await first.settled;
  const [late, cancelled] = [new Waiter(pool), new Waiter(pool)];
  pool.cancel(cancelled);
  advance(999);
  assert.equal(late.failure, "");
  advance(1);
  assert.equal(late.failure, "queue-timeout");
  assert.equal(cancelled.failure, "");
  assert.equal(pool.counts.waiting, 0);
});

test("a used connection that is lost makes room for a waiting request", async () => {
  const { port, sockets } = await listen();
  const { pool } = setUp(port, { connectionsMax: 1 });
  const first = new Waiter(pool);
  await first.settled;
  const second = new Waiter(pool);
  await waitFor(() => sockets.length === 1);
  sockets[0]!.resetAndDestroy();
  await second.settled;
  assert.ok(second.connection !== null && second.connection !== first.connection);
});

test("idle connections are limited in number and time, and removed when the upstream closes them", async () => {
  const { port, sockets } = await listen();
  const { pool, advance } = setUp(port, { idleMax: 2, idleTimeoutMs: 1_000 });
  const waiters = [new Waiter(pool), new Waiter(pool), new Waiter(pool)];
  await Promise.all(waiters.map(({ settled }) => settled));
  for (const { connection } of waiters) pool.release(connection!);
  assert.equal(pool.counts.idle, 2);
  await waitFor(() => pool.counts.open === 2 && sockets.length === 3);
  advance(999);
  assert.equal(pool.counts.idle, 2);
  advance(1);
  assert.equal(pool.counts.idle, 0);
  await waitFor(() => pool.counts.open === 0);
  const next = new Waiter(pool);
  await next.settled;
  pool.release(next.connection!);
  await waitFor(() => sockets.length === 4);
  sockets[3]!.end();
  await waitFor(() => pool.counts.open === 0);
});

test("addresses are tried in turn, and the one that worked is tried first", async () => {
  const gone = await listen();
  await new Promise<void>((resolve) => {
    gone.server.close(() => {
      resolve();
    });
  });
  const { port } = await listen();
  const { pool } = setUp(port, {
    addresses: [
      { host: "127.0.0.1", port: gone.port },
      { host: "127.0.0.1", port },
    ],
  });
  const first = new Waiter(pool);
  await first.settled;
  assert.equal((first.connection!.socket as Socket).remotePort, port);
  pool.setAddresses([{ host: "127.0.0.1", port: gone.port }]);
  const second = new Waiter(pool);
  await second.settled;
  assert.equal(second.failure, "connect-refused ECONNREFUSED");
  pool.setAddresses([]);
  assert.equal(new Waiter(pool).failure, "connect-failed ENOTFOUND");
});

test("when the addresses change, connections to previous ones are not reused", async () => {
  const [before, after] = [await listen(), await listen()];
  const { pool } = setUp(before.port);
  const [idle, lent] = [new Waiter(pool), new Waiter(pool)];
  await Promise.all([idle.settled, lent.settled]);
  pool.release(idle.connection!);
  pool.setAddresses([{ host: "127.0.0.1", port: after.port }]);
  assert.equal(idle.connection!.dead, true);
  assert.equal(lent.connection!.dead, false);
  const next = new Waiter(pool);
  await next.settled;
  assert.equal((next.connection!.socket as Socket).remotePort, after.port);
  pool.release(lent.connection!);
  assert.equal(lent.connection!.dead, true);
  pool.release(next.connection!);
  // An answer that only reorders the addresses or adds one closes nothing.
  pool.setAddresses([
    { host: "127.0.0.1", port: before.port },
    { host: "127.0.0.1", port: after.port },
  ]);
  assert.equal(new Waiter(pool).connection, next.connection);
});

test("a connection attempt that takes too long is aborted", async () => {
  const { port } = await listen();
  // A TLS handshake with a peer that never answers stands for an address that swallows packets.
  const { pool, advance } = setUp(port, { connectTimeoutMs: 2_000, tls: { serverName: "a.test" } });
  const waiter = new Waiter(pool);
  await waitFor(() => pool.counts.connecting === 1);
  advance(1_999);
  assert.equal(waiter.failure, "");
  advance(1);
  await waiter.settled;
  assert.match(waiter.failure, /^connect-timeout/);
  assert.deepEqual(pool.counts, { open: 0, connecting: 0, idle: 0, waiting: 0 });
});

test("a drained pool refuses requests, closes idle connections and waits for used ones", async () => {
  const { port } = await listen();
  const { pool } = setUp(port);
  const [lent, idle] = [new Waiter(pool), new Waiter(pool)];
  await Promise.all([lent.settled, idle.settled]);
  pool.release(idle.connection!);
  let isDrained = false;
  const drained = pool.drain(5_000).then(() => (isDrained = true));
  assert.equal(new Waiter(pool).failure, "pool-closed");
  await waitFor(() => pool.counts.open === 1);
  assert.equal(isDrained, false);
  pool.release(lent.connection!);
  await drained;
  assert.equal(pool.counts.open, 0);
});
