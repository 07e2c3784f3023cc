// Transactions, receipts and their promise: what a receipt was sent for is on disk.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PulseHere } from "../fixture/pulse-here.ts";
import { startPulseProcess } from "../fixture/pulse-process.ts";
import { StompClient } from "./client.ts";

const KILLS = Number(process.env["PLATFORM_STOMP_KILLS"] ?? 3);
let pulse: PulseHere;
const folder = mkdtempSync(join(tmpdir(), "platform-pulse-"));

before(async () => {
  pulse = new PulseHere(folder, {});
  await pulse.start();
});

after(async () => {
  await pulse.end();
});

async function readTopic(topic: string): Promise<string[]> {
  const { status, body } = await pulse.get(`/api/v1/tail?topic=${topic}&n=1000`);
  if (status === 404) return [];
  const lines =
    typeof body === "string"
      ? body
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line))
      : (body.messages ?? body);
  return (lines as { payload: string }[]).map(({ payload }) => payload);
}

test("the messages of a transaction come together at COMMIT, or not at all", async (t) => {
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  await client.ask("BEGIN", { transaction: "tx" });
  await client.ask("SEND", { destination: "bank.a", transaction: "tx" }, "-5");
  await client.ask("SEND", { destination: "bank.b", transaction: "tx" }, "+5");
  assert.deepEqual(await readTopic("bank.a"), []);
  await client.ask("COMMIT", { transaction: "tx" });
  assert.deepEqual(await readTopic("bank.a"), ["-5"]);
  assert.deepEqual(await readTopic("bank.b"), ["+5"]);
  await client.ask("BEGIN", { transaction: "tx" });
  await client.ask("SEND", { destination: "bank.a", transaction: "tx" }, "-9");
  await client.ask("ABORT", { transaction: "tx" });
  assert.deepEqual(await readTopic("bank.a"), ["-5"]);
});

test("an invalid message keeps a whole transaction out", async (t) => {
  const schema = { type: "object", required: ["n"] };
  await pulse.publish({ topic: "strict", payload: '{"n":1}' });
  assert.equal((await pulse.post("/api/v1/topics/strict/schema", schema)).status, 200);
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  await client.ask("BEGIN", { transaction: "tx" });
  await client.ask("SEND", { destination: "lenient", transaction: "tx" }, "x");
  await client.ask("SEND", { destination: "strict", transaction: "tx" }, "{}");
  client.send("COMMIT", { transaction: "tx", receipt: "r" });
  const { headers, body } = await client.error();
  assert.equal(headers["receipt-id"], "r");
  assert.equal(headers["code"], "unprocessable");
  assert.match(body, /COMMIT: .*schema/i);
  assert.deepEqual(await readTopic("lenient"), []);
});

test("acknowledgements of a transaction apply at COMMIT", async (t) => {
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  await client.ask("SEND", { destination: "in" }, "a");
  const options = {
    destination: "in",
    id: "s",
    ack: "client-individual",
    group: "g",
    from: "earliest",
  };
  client.send("SUBSCRIBE", options);
  const first = await client.message();
  await client.ask("BEGIN", { transaction: "tx" });
  client.send("ACK", { id: first.headers["ack"]!, transaction: "tx" });
  await client.ask("ABORT", { transaction: "tx" });
  await client.ask("UNSUBSCRIBE", { id: "s" });
  client.send("SUBSCRIBE", options);
  const second = await client.message();
  assert.equal(second.body, "a", "an aborted ACK has no effect");
  await client.ask("BEGIN", { transaction: "tx" });
  client.send("ACK", { id: second.headers["ack"]!, transaction: "tx" });
  client.send("SEND", { destination: "out", transaction: "tx" }, "A");
  await client.ask("COMMIT", { transaction: "tx" });
  assert.deepEqual(await readTopic("out"), ["A"]);
  await client.ask("UNSUBSCRIBE", { id: "s" });
  await client.ask("SEND", { destination: "in" }, "b");
  client.send("SUBSCRIBE", options);
  assert.deepEqual(await client.bodies(1), ["b"]);
});

test("a transaction ends with its connection", async (t) => {
  const client = await StompClient.connect(pulse.stompPort);
  await client.ask("BEGIN", { transaction: "tx" });
  await client.ask("SEND", { destination: "lost", transaction: "tx" }, "x");
  client.close();
  const other = await StompClient.connect(pulse.stompPort);
  t.after(() => other.close());
  await other.ask("SEND", { destination: "lost" }, "y");
  assert.deepEqual(await readTopic("lost"), ["y"]);
});

test("transactions are bounded", async () => {
  const client = await StompClient.connect(pulse.stompPort);
  await client.ask("BEGIN", { transaction: "tx" });
  const body = Buffer.alloc(1_000_000);
  for (let count = 0; count < 9; count++)
    client.send("SEND", { destination: "big", transaction: "tx" }, body);
  assert.match((await client.error()).body, /open transactions hold 8388608 bytes at most/);
  const many = await StompClient.connect(pulse.stompPort);
  for (let count = 0; count <= 100; count++) many.send("BEGIN", { transaction: String(count) });
  assert.match((await many.error()).body, /100 open transactions at most/);
});

test("pipelined messages keep their order, and those before an invalid one are stored", async (t) => {
  const client = await StompClient.connect(pulse.stompPort);
  for (let at = 0; at < 500; at++) {
    client.send("SEND", { destination: "row", receipt: String(at) }, String(at));
  }
  client.send("SEND", { destination: "strict", receipt: "bad" }, "{}");
  client.send("SEND", { destination: "row", receipt: "after" }, "never");
  for (let at = 0; at < 500; at++) {
    const { command, headers } = await client.next();
    assert.deepEqual([command, headers["receipt-id"]], ["RECEIPT", String(at)]);
  }
  const { headers } = await client.error();
  assert.equal(headers["receipt-id"], "bad");
  assert.deepEqual(
    await readTopic("row"),
    Array.from({ length: 500 }, (_, at) => String(at)),
  );
  t.after(() => client.close());
});

test("what had a receipt survives kill -9", async (t) => {
  const killed = await startPulseProcess(t);
  let acknowledged = 0;
  /** Numbers with a receipt, of all rounds. */
  const receipts = new Set<number>();
  for (let round = 0; round < KILLS; round++) {
    const client = await StompClient.connect(killed.stompPort);
    t.after(() => client.close());
    for (let at = 0; at < 2_000; at++) {
      const number = String(round * 2_000 + at);
      client.send("SEND", { destination: "kept", receipt: number }, number);
    }
    const takeReceipt = async () => {
      acknowledged = Number((await client.next()).headers["receipt-id"]);
      receipts.add(acknowledged);
    };
    for (let at = 0; at < 200; at++) await takeReceipt();
    await killed.kill();
    while (client.waiting > 0) await takeReceipt();
    await killed.start();
    const reader = await StompClient.connect(killed.stompPort);
    t.after(() => reader.close());
    reader.send("SUBSCRIBE", { destination: "kept", id: "s", from: "earliest" });
    const kept = new Set<number>();
    while (!kept.has(acknowledged)) kept.add(Number((await reader.message()).body));
    reader.close();
    const lost = receipts.values().filter((number) => !kept.has(number));
    assert.deepEqual([...lost], [], "had a receipt");
  }
  t.diagnostic(`${KILLS} kills: ${receipts.size} receipts, 0 lost`);
});
