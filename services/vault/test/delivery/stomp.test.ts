// Events reach a STOMP broker with a receipt for each; frames are parsed in any chunks.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { waitFor } from "@platform/testing/wait";
import { StompFrameReader, encodeFrame, type StompFrame } from "../../src/delivery/stomp-frame.ts";
import type { DeliveryTarget } from "../../src/delivery/target.ts";
import { rabbitMissing, startRabbitMq, type RabbitMq } from "./rabbitmq.ts";
import { serve } from "../serving/serving.ts";
import { MemoryOutbox, deliver } from "./rig.ts";

const PASSWORD = "s3cret:pass";

test("frames are decoded as they were encoded, however the bytes are chunked", () => {
  const header = fc.string({ minLength: 1, maxLength: 12 }).filter((text) => !text.includes("\0"));
  const body = fc.string({ maxLength: 40 });
  fc.assert(
    fc.property(header, header, body, fc.array(fc.nat(200)), (name, value, text, cuts) => {
      const length = String(Buffer.byteLength(text));
      const headers = { "content-length": length, [`x-${name}`]: value };
      const bytes = Buffer.concat([
        encodeFrame("MESSAGE", headers, text),
        Buffer.from("\n\r\n"),
        encodeFrame("RECEIPT", { "receipt-id": "7" }),
      ]);
      const reader = new StompFrameReader(4_096);
      const frames: StompFrame[] = [];
      let at = 0;
      for (const cut of [...cuts, bytes.length].sort((a, b) => a - b)) {
        frames.push(...reader.read(bytes.subarray(at, Math.max(at, cut))));
        at = Math.max(at, cut);
      }
      assert.equal(frames.length, 2);
      assert.equal(frames[0]!.headers.get(`x-${name}`), value);
      assert.equal(frames[0]!.body.toString(), text);
      assert.equal(frames[1]!.headers.get("receipt-id"), "7");
    }),
  );
});

for (const [what, bytes] of [
  ["a header without a colon", "ERROR\nmessage\n\n\0"],
  ["an unknown escape", "ERROR\nmessage:a\\tb\n\n\0"],
  ["a content-length that is not a number", "ERROR\ncontent-length:-1\n\n\0"],
  ["a body longer than its content-length", "ERROR\ncontent-length:1\n\nab\0"],
  ["a content-length over the bound", "ERROR\ncontent-length:5000\n\n"],
  ["a head without an end", "E".repeat(5_000)],
] as const) {
  test(`${what} is refused`, () => {
    assert.throws(() => new StompFrameReader(4_096).read(Buffer.from(bytes)), {
      name: "StompFrameError",
    });
  });
}

/** A minimal broker for the behaviour that a correct broker does not have. */
async function startBroker(onFrame: (frame: StompFrame, socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    const reader = new StompFrameReader(65_536);
    socket.on("data", (bytes: Buffer) => {
      for (const frame of reader.read(bytes)) onFrame(frame, socket);
    });
    socket.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => server.close());
  return `stomp://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("messages that lost their connection before the receipt are sent again", async () => {
  const seen: string[] = [];
  const url = await startBroker((frame, socket) => {
    if (frame.command === "CONNECT") socket.write(encodeFrame("CONNECTED", { version: "1.2" }));
    if (frame.command !== "SEND") return;
    const id = frame.headers.get("event-id")!;
    if (!seen.includes(id)) socket.destroy();
    else socket.write(encodeFrame("RECEIPT", { "receipt-id": frame.headers.get("receipt")! }));
    seen.push(id);
  });
  const outbox = new MemoryOutbox();
  deliver(outbox, { concurrency: 1 });
  const target: DeliveryTarget = { kind: "stomp", url, destination: "/queue/a", names: "s3" };
  for (let count = 0; count < 5; count++) outbox.add(target);
  await waitFor(() => outbox.pending.size === 0, "all acknowledged");
  assert.equal(new Set(seen).size, 5);
});

test("an invalid or refusing broker is retried and named in the log", async () => {
  let count = 0;
  const url = await startBroker((frame, socket) => {
    if (++count === 1) socket.write("HTTP/1.1 400 Bad Request\r\n\r\n\0");
    else if (count === 2) socket.write(encodeFrame("ERROR", { message: "Access refused" }));
    else if (frame.command === "CONNECT") socket.write(encodeFrame("CONNECTED", {}));
    else socket.write(encodeFrame("RECEIPT", { "receipt-id": frame.headers.get("receipt")! }));
  });
  const outbox = new MemoryOutbox();
  const { lines } = deliver(outbox, { concurrency: 1 });
  outbox.add({
    kind: "stomp",
    url,
    destination: "/queue/a",
    user: "u",
    password: PASSWORD,
    names: "s3",
  });
  await waitFor(() => outbox.pending.size === 0, "acknowledged");
  assert.match(lines.join(""), /Access refused/);
  assert.ok(!lines.join("").includes(PASSWORD));
});

let rabbit: RabbitMq | undefined;
before(async () => {
  if (rabbitMissing === false) rabbit = await startRabbitMq();
});
after(() => rabbit?.stop());

/** Subscribes to a queue and yields the bodies. */
async function subscribe(port: number, destination: string): Promise<{ bodies: string[] }> {
  const socket = connect(port, "127.0.0.1");
  const reader = new StompFrameReader(1_048_576);
  const bodies: string[] = [];
  const ready = Promise.withResolvers<void>();
  socket.on("data", (bytes: Buffer) => {
    for (const frame of reader.read(bytes)) {
      if (frame.command === "CONNECTED")
        socket.write(encodeFrame("SUBSCRIBE", { id: "1", destination, receipt: "sub" }));
      else if (frame.command === "RECEIPT") ready.resolve();
      else if (frame.command === "MESSAGE") bodies.push(frame.body.toString());
    }
  });
  socket.write(
    encodeFrame("CONNECT", {
      "accept-version": "1.2",
      host: "/",
      login: "vault",
      passcode: PASSWORD,
    }),
  );
  after(() => socket.destroy());
  await ready.promise;
  return { bodies };
}

test("stomp://platform is the configured broker, for destinations of its own only", async () => {
  const seen: string[] = [];
  const url = await startBroker((frame, socket) => {
    if (frame.command === "CONNECT") {
      assert.equal(frame.headers.get("passcode"), PASSWORD);
      socket.write(encodeFrame("CONNECTED", { version: "1.2" }));
      return;
    }
    seen.push(frame.headers.get("destination")!);
    socket.write(encodeFrame("RECEIPT", { "receipt-id": frame.headers.get("receipt")! }));
  });
  await using serving = await serve({
    env: {
      PLATFORM_VAULT_EVENT_BROKER_URL: url,
      PLATFORM_VAULT_EVENT_BROKER_USER: "storage",
      PLATFORM_VAULT_EVENT_BROKER_PASSWORD: PASSWORD,
    },
  });
  const { s3 } = serving;
  await s3.must("PUT", "/photos");
  const put = (stomp: Record<string, string>) =>
    s3.send("PUT", "/photos?notification", {
      body: JSON.stringify({ bucket: "photos", events: ["objstore:ObjectCreated:*"], stomp }),
    });
  for (const stomp of [
    { url: "stomp://platform", destination: "/topic/orders" },
    { url: "stomp://platform", destination: "/topic/store.#" },
    { url: "stomp://platform", destination: "/topic/store.a", user: "u", password: "p" },
    // The broker's address is private for everyone else.
    { url, destination: "/topic/store.a" },
  ]) {
    assert.equal((await put(stomp)).status, 400, JSON.stringify(stomp));
  }
  const answer = await put({ url: "stomp://platform", destination: "/topic/store.photos" });
  assert.equal(answer.status, 200);
  await s3.must("PUT", "/photos/a.jpg", { body: "hello" });
  await waitFor(() => seen.length === 1, "the event");
  assert.deepEqual(seen, ["/topic/store.photos"]);
});

test("RabbitMQ accepts the events and passes them on", { skip: rabbitMissing }, async () => {
  const { bodies } = await subscribe(rabbit!.stompPort, "/queue/store-events");
  const outbox = new MemoryOutbox();
  const { delivery } = deliver(outbox);
  const target: DeliveryTarget = {
    kind: "stomp",
    url: `stomp://127.0.0.1:${rabbit!.stompPort}`,
    destination: "/queue/store-events",
    user: "vault",
    password: PASSWORD,
    names: "objstore",
  };
  for (let count = 0; count < 100; count++) outbox.add(target);
  await waitFor(() => bodies.length === 100, "all messages");
  await waitFor(() => outbox.pending.size === 0, "all acknowledged");
  const names = bodies.map(
    (body) => (JSON.parse(body) as { Records: { eventName: string }[] }).Records[0]!.eventName,
  );
  assert.deepEqual(new Set(names), new Set(["objstore:ObjectCreated:Put"]));
  assert.deepEqual(delivery.stats, { delivered: 100, failed: 0, givenUp: 0 });
});

test(
  "a bucket's subscription leads from a running store to RabbitMQ",
  { skip: rabbitMissing },
  async () => {
    const { bodies } = await subscribe(rabbit!.stompPort, "/queue/photos");
    await using serving = await serve({ env: { PLATFORM_VAULT_EVENT_NETWORKS: "127.0.0.0/8" } });
    const { s3 } = serving;
    await s3.must("PUT", "/photos");
    const stomp = {
      url: `stomp://127.0.0.1:${rabbit!.stompPort}`,
      destination: "/queue/photos",
      user: "vault",
      password: PASSWORD,
    };
    await s3.must("PUT", "/photos?notification", {
      body: JSON.stringify({ bucket: "photos", events: ["objstore:ObjectCreated:*"], stomp }),
    });
    await s3.must("PUT", "/photos/a.jpg", { body: "hello" });
    await waitFor(() => bodies.length === 1, "the event");
    const { Records } = JSON.parse(bodies[0]!) as {
      Records: { eventName: string; s3: { object: { key: string } } }[];
    };
    assert.equal(Records[0]!.eventName, "objstore:ObjectCreated:Put");
    assert.equal(Records[0]!.s3.object.key, "a.jpg");
    const kept = await s3.must("GET", "/photos?notification");
    assert.ok(!kept.text.includes(PASSWORD), "the password is not returned");
  },
);

test(
  "RabbitMQ refuses a wrong password, and the events wait",
  { skip: rabbitMissing },
  async () => {
    const outbox = new MemoryOutbox();
    const { lines } = deliver(outbox);
    outbox.add({
      kind: "stomp",
      url: `stomp://127.0.0.1:${rabbit!.stompPort}`,
      destination: "/queue/store-events",
      user: "vault",
      password: "wrong",
      names: "objstore",
    });
    await waitFor(() => lines.length > 0, "a failure in the log");
    assert.match(lines[0]!, /said Bad CONNECT|said Access refused|closed the connection/);
    assert.equal(outbox.pending.size, 1);
  },
);
