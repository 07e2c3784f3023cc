// The budget of unsent bytes: order of grants, and disconnected peers.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { OutgoingBudget, Outflow, type OutgoingFault } from "@platform/kernel/sockets";

const KIB = 1_024;
const MIB = 1_048_576;
/** More than the system buffers for a peer that does not read. */
const UNREAD = Buffer.alloc(24 * MIB);

interface Peer {
  client: Socket;
  socket: Socket;
  outflow: Outflow;
  faults: OutgoingFault[];
}

test("space is granted in order of arrival, without overtaking", async (t) => {
  const budget = new OutgoingBudget(MIB);
  const [holder, large, small, late] = await openPeers(t, budget, 4);
  assert.ok(holder!.outflow.claim(MIB));
  const granted: string[] = [];
  large!.outflow.claimWhenRoom(512 * KIB, (isClaimed) => granted.push(`large ${isClaimed}`));
  small!.outflow.claimWhenRoom(64 * KIB, (isClaimed) => granted.push(`small ${isClaimed}`));
  release(holder!, 128 * KIB);
  assert.deepEqual(granted, []);
  assert.equal(late!.outflow.claim(1), false);
  assert.equal(budget.windowBytes, 64 * KIB);
  release(holder!, 400 * KIB);
  assert.deepEqual(granted, ["large true"]);
  release(holder!, 496 * KIB);
  assert.deepEqual(granted, ["large true", "small true"]);
  assert.equal(budget.heldBytes, 576 * KIB);
  assert.ok(late!.outflow.claim(1));
});

test("released bytes count until they are written", async (t) => {
  const budget = new OutgoingBudget(MIB);
  const [writer, waiter] = await openPeers(t, budget, 2);
  assert.ok(writer!.outflow.claim(MIB));
  let isGranted = false;
  waiter!.outflow.claimWhenRoom(64 * KIB, () => (isGranted = true));
  writer!.outflow.unclaim(MIB);
  assert.equal(isGranted, false);
  writer!.socket.write(UNREAD.subarray(0, MIB));
  writer!.outflow.settle();
  assert.equal(isGranted, writer!.socket.writableLength <= MIB - 64 * KIB);
});

test("a claim larger than the budget is granted when no other bytes are held", async (t) => {
  const budget = new OutgoingBudget(MIB);
  const [holder, giant] = await openPeers(t, budget, 2);
  assert.ok(holder!.outflow.claim(1));
  let isGranted = false;
  giant!.outflow.claimWhenRoom(3 * MIB, (isClaimed) => (isGranted = isClaimed));
  assert.equal(isGranted, false);
  release(holder!, 1);
  assert.ok(isGranted);
  assert.equal(holder!.outflow.claim(1), false);
});

test("stalled peers are disconnected for a waiting producer, even within the budget", async (t) => {
  const budget = new OutgoingBudget(64 * MIB);
  const [one, other, waiter] = await openPeers(t, budget, 3);
  for (const { socket, outflow } of [one!, other!]) {
    socket.write(UNREAD);
    outflow.settle();
  }
  await sleep(100);
  one!.outflow.settle();
  other!.outflow.settle();
  budget.bytesMax = budget.heldBytes;
  for (let second = 0; second < 5; second++) budget.sweep(1_000);
  assert.deepEqual([one!.faults, other!.faults], [[], []], "nobody waits");
  let isGranted = false;
  waiter!.outflow.claimWhenRoom(64 * KIB, (isClaimed) => (isGranted = isClaimed));
  budget.sweep(1_000);
  assert.equal(isGranted, false, "the wait has not lasted from one sweep to the next");
  budget.sweep(1_000);
  assert.ok(isGranted);
  assert.deepEqual([...one!.faults, ...other!.faults], ["over-budget"]);
  assert.deepEqual(waiter!.faults, []);
});

test("a producer whose client disconnects leaves the queue, and the next one receives the space", async (t) => {
  const budget = new OutgoingBudget(MIB);
  const [holder, first, second] = await openPeers(t, budget, 3);
  assert.ok(holder!.outflow.claim(MIB - 64 * KIB));
  const settled: string[] = [];
  first!.outflow.claimWhenRoom(MIB, (isClaimed) => settled.push(`first ${isClaimed}`));
  second!.outflow.claimWhenRoom(64 * KIB, (isClaimed) => settled.push(`second ${isClaimed}`));
  assert.deepEqual(settled, []);
  const closed = new Promise((resolve) => first!.socket.once("close", resolve));
  first!.client.resetAndDestroy();
  await closed;
  assert.deepEqual(settled, ["first false", "second true"]);
  assert.equal(budget.waiting, 0);
});

test("a wait ends without space after 30 s", async (t) => {
  const budget = new OutgoingBudget(MIB);
  const [holder, waiter] = await openPeers(t, budget, 2);
  assert.ok(holder!.outflow.claim(MIB));
  let settled: boolean | undefined;
  waiter!.outflow.claimWhenRoom(1, (isClaimed) => (settled = isClaimed));
  for (let second = 0; second < 30; second++) budget.sweep(1_000);
  assert.equal(settled, undefined);
  budget.sweep(1_000);
  assert.equal(settled, false);
  assert.equal(budget.heldBytes, MIB);
});

test("raising the budget resumes producers", async (t) => {
  const budget = new OutgoingBudget(MIB);
  const [holder, waiter] = await openPeers(t, budget, 2);
  assert.ok(holder!.outflow.claim(MIB));
  let isGranted = false;
  waiter!.outflow.claimWhenRoom(MIB, (isClaimed) => (isGranted = isClaimed));
  budget.bytesMax = 2 * MIB;
  budget.sweep(1_000);
  assert.ok(isGranted);
});

function release({ outflow }: Peer, bytes: number): void {
  outflow.unclaim(bytes);
  outflow.settle();
}

/** Connections with clients that do not read. */
async function openPeers(t: TestContext, budget: OutgoingBudget, count: number): Promise<Peer[]> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const peers: Peer[] = [];
  for (let at = 0; at < count; at++) {
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    client.on("error", () => undefined).pause();
    const [socket] = (await once(server, "connection")) as [Socket];
    const faults: OutgoingFault[] = [];
    const bounds = { writeStallMs: 0, answerPace: { bytesMin: 0, windowMs: 1_000 } };
    const outflow = new Outflow(socket, budget, bounds, (fault) => {
      faults.push(fault);
      socket.destroy();
    });
    socket.on("error", () => undefined).on("close", () => outflow.close());
    t.after(() => [client, socket].forEach((one) => one.destroy()));
    peers.push({ client, socket, outflow, faults });
  }
  return peers;
}
