// MQTT 3.1.1 load on a broker, run as a child: `mqtt-load.ts fan-out PORT SUBSCRIBERS WINDOW SECONDS`,
// `mqtt-load.ts paced PORT SUBSCRIBERS RATE SECONDS`, `mqtt-load.ts queue PORT CONNECTIONS WINDOW SECONDS` or
// `mqtt-load.ts idle PORT CONNECTIONS`. Packets are encoded once, and
// received ones are counted by their length, so that little but the broker's work is measured. Prints one JSON line.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { takePercentile } from "../harness/statistics.ts";

/** Bytes of a payload. */
export const payloadBytes = { "fan-out": 64, queue: 1_024 } as const;

const LOADS = { "fan-out": fanOut, paced: fanOutPaced, queue };

const TOPIC = "bench/load";
const LATENCIES_MAX = 1_000_000;
const OPENING_AT_ONCE_MAX = 64;
const LAST_ONES_MS = 10_000;

/** The JSON line that the load prints. */
export interface MqttLoadSummary {
  /** Messages received by all subscribers. */
  received: number;
  /** Messages published; with QoS 1, acknowledged ones. */
  published: number;
  seconds: number;
  /** From PUBLISH to PUBACK; 0 with QoS 0. */
  p99Ms: number;
  /** CPU time of this process, in ms. */
  cpuMs: number;
}

if (import.meta.main) {
  const [mode, ...numbers] = process.argv.slice(2);
  const [port = 0, count = 0, window = 0, seconds = 0] = numbers.map(Number);
  if (mode === "idle") {
    await openIdle(port, count);
    console.log(`open ${count}`);
    setInterval(() => undefined, 60_000);
  } else {
    const run = LOADS[mode as keyof typeof LOADS];
    console.log(JSON.stringify(await run(port, count, window, seconds * 1_000)));
    process.exit(0);
  }
}

interface FanOut {
  packet: Buffer;
  publisher: Socket;
  /** By subscriber. */
  receivedBytes: Float64Array;
  /** Called when something has arrived. */
  onReceived: () => void;
}

async function openFanOut(port: number, subscribers: number): Promise<FanOut> {
  const opened: FanOut = {
    packet: encodePublish(payloadBytes["fan-out"], 0),
    publisher: await openClient(port, `fan-${process.pid}-p`, true),
    receivedBytes: new Float64Array(subscribers),
    onReceived: () => undefined,
  };
  const { receivedBytes } = opened;
  for (let at = 0; at < subscribers; at++) {
    const socket = await openClient(port, `fan-${process.pid}-${at}`, true);
    await subscribe(socket, 0);
    socket.on("data", (bytes: Buffer) => {
      receivedBytes[at] = receivedBytes[at]! + bytes.length;
      opened.onReceived();
    });
  }
  return opened;
}

/** Resolves with the number of received messages once all have arrived. */
async function awaitAll({ receivedBytes, packet }: FanOut, published: number): Promise<number> {
  const count = () => receivedBytes.reduce((sum, bytes) => sum + bytes, 0) / packet.length;
  const wanted = published * receivedBytes.length;
  const deadline = performance.now() + LAST_ONES_MS;
  while (count() < wanted && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  if (count() < wanted) throw new Error("messages with QoS 0 were dropped");
  return count();
}

/** One publisher with QoS 0; at most `window` messages are not yet received by the slowest subscriber. */
async function fanOut(
  port: number,
  subscribers: number,
  window: number,
  lengthMs: number,
): Promise<MqttLoadSummary> {
  const opened = await openFanOut(port, subscribers);
  const { packet, publisher, receivedBytes } = opened;
  let published = 0;
  let isDue = false;
  const { started, cpuBefore } = begin();
  const publishMore = (): void => {
    isDue = false;
    if (performance.now() - started >= lengthMs) return;
    const slowest = receivedBytes.reduce((least, bytes) => Math.min(least, bytes)) / packet.length;
    const missing = window - (published - Math.floor(slowest));
    // Half of the window at a time: the broker is not measured with single messages that a subscriber has just freed.
    if (missing < window / 2) return;
    published += missing;
    publisher.write(Buffer.concat(Array.from({ length: missing }, () => packet)));
  };
  opened.onReceived = () => {
    if (isDue) return;
    isDue = true;
    setImmediate(publishMore);
  };
  publishMore();
  await new Promise((resolve) => setTimeout(resolve, lengthMs));
  const received = await awaitAll(opened, published);
  return { ...end(started, cpuBefore), published, received, p99Ms: 0 };
}

/** One publisher with QoS 0, `ratePerS` single messages a second at even intervals. */
async function fanOutPaced(
  port: number,
  subscribers: number,
  ratePerS: number,
  lengthMs: number,
): Promise<MqttLoadSummary> {
  const opened = await openFanOut(port, subscribers);
  const total = (ratePerS * lengthMs) / 1_000;
  let published = 0;
  const { started, cpuBefore } = begin();
  while (published < total) {
    const due = Math.min(total, Math.floor(((performance.now() - started) * ratePerS) / 1_000));
    if (published < due) {
      // One at a time, also when this process is late: bursts would be cheaper for the broker.
      published++;
      opened.publisher.write(opened.packet);
      await new Promise(setImmediate);
    } else await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const received = await awaitAll(opened, published);
  return { ...end(started, cpuBefore), published, received, p99Ms: 0 };
}

/** Publishers with QoS 1, and a session that receives and acknowledges everything with QoS 1. */
async function queue(
  port: number,
  connections: number,
  window: number,
  lengthMs: number,
): Promise<MqttLoadSummary> {
  // Without what the previous round has left: it would arrive before the SUBACK.
  await closeClient(await openClient(port, "queue-consumer", true));
  const consumer = await openClient(port, "queue-consumer", false);
  await subscribe(consumer, 1);
  const counts = { received: 0, published: 0 };
  readPackets(consumer, (packet) => {
    // The topic follows the fixed header; the packet identifier follows the topic.
    if (packet[0]! >> 4 !== 3) return undefined;
    counts.received++;
    const at = headerBytes(packet) + 2 + TOPIC.length;
    return Buffer.from([0x40, 2, packet[at]!, packet[at + 1]!]);
  });
  const latenciesMs: number[] = [];
  const sockets: Socket[] = [];
  for (let at = 0; at < connections; at++) {
    sockets.push(await openClient(port, `queue-${process.pid}-${at}`, true));
  }
  const { started, cpuBefore } = begin();
  await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<void>((resolve) => {
          const packet = encodePublish(payloadBytes.queue, 1);
          const idAt = headerBytes(packet) + 2 + TOPIC.length;
          const sentAt: number[] = [];
          let id = 0;
          const next = (): Buffer => {
            id = (id % 65_535) + 1;
            sentAt.push(performance.now());
            const own = Buffer.from(packet);
            own.writeUInt16BE(id, idAt);
            return own;
          };
          readPackets(socket, (answer) => {
            if (answer[0]! >> 4 !== 4) return undefined;
            const now = performance.now();
            counts.published++;
            if (latenciesMs.length < LATENCIES_MAX) latenciesMs.push(now - sentAt.shift()!);
            if (now - started < lengthMs) return next();
            if (sentAt.length === 0) resolve();
            return undefined;
          });
          socket.write(Buffer.concat(Array.from({ length: window }, next)));
        }),
    ),
  );
  const deadline = performance.now() + LAST_ONES_MS;
  while (counts.received < counts.published && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const missing = counts.published - counts.received;
  if (missing > 0) throw new Error(`${missing} messages were not delivered`);
  return { ...end(started, cpuBefore), ...counts, p99Ms: takePercentile(latenciesMs, 0.99) };
}

async function openIdle(port: number, count: number): Promise<void> {
  let opened = 0;
  const openInTurn = async (): Promise<void> => {
    while (opened < count) {
      const socket = await openClient(port, `idle-${opened++}`, true);
      socket.on("close", () => console.log("closed"));
      await subscribe(socket, 0);
    }
  };
  await Promise.all(Array.from({ length: OPENING_AT_ONCE_MAX }, openInTurn));
}

function begin() {
  return { started: performance.now(), cpuBefore: process.cpuUsage() };
}

function end(started: number, cpuBefore: NodeJS.CpuUsage) {
  const { user, system } = process.cpuUsage(cpuBefore);
  return { seconds: (performance.now() - started) / 1_000, cpuMs: (user + system) / 1_000 };
}

/* MQTT 3.1.1, sections 2.2 and 3. */

async function openClient(port: number, clientId: string, isClean: boolean): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  socket.on("error", (error) => {
    throw error;
  });
  await once(socket, "connect");
  const head = Buffer.from([0, 4, 0x4d, 0x51, 0x54, 0x54, 4, isClean ? 2 : 0, 0, 0]);
  const id = Buffer.from(clientId);
  const packet = Buffer.concat([head, Buffer.from([0, id.length]), id]);
  socket.write(Buffer.concat([Buffer.from([0x10, packet.length]), packet]));
  const [answer] = (await once(socket, "data")) as [Buffer];
  if (answer[0] !== 0x20 || answer[3] !== 0) throw new Error("CONNECT was refused");
  return socket;
}

async function closeClient(socket: Socket): Promise<void> {
  socket.end(Buffer.from([0xe0, 0]));
  await once(socket, "close");
}

async function subscribe(socket: Socket, qos: 0 | 1): Promise<void> {
  const topic = Buffer.from(TOPIC);
  const head = Buffer.from([0x82, 5 + topic.length, 0, 1, 0, topic.length]);
  socket.write(Buffer.concat([head, topic, Buffer.from([qos])]));
  const [answer] = (await once(socket, "data")) as [Buffer];
  if (answer[0] !== 0x90 || answer[4] !== qos) throw new Error("SUBSCRIBE was refused");
}

function encodePublish(bytes: number, qos: 0 | 1): Buffer {
  const topic = Buffer.from(TOPIC);
  const rest = 2 + topic.length + (qos === 0 ? 0 : 2) + bytes;
  const length = rest < 128 ? [rest] : [(rest % 128) + 128, Math.floor(rest / 128)];
  const id = qos === 0 ? [] : [0, 1];
  const head = Buffer.from([0x30 + qos * 2, ...length, 0, topic.length]);
  return Buffer.concat([head, topic, Buffer.from(id), Buffer.alloc(bytes, "v")]);
}

function headerBytes(packet: Buffer): number {
  let at = 1;
  while (packet[at]! >= 128) at++;
  return at + 1;
}

/** Calls `take` with each packet, and writes its answers together. */
function readPackets(socket: Socket, take: (packet: Buffer) => Buffer | undefined): void {
  let rest: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const answers: Buffer[] = [];
    for (;;) {
      if (rest.length < 2) break;
      let length = rest[1]! & 127;
      let at = 2;
      if (rest[1]! >= 128) {
        if (rest.length < 3) break;
        length += rest[2]! * 128;
        at = 3;
      }
      if (rest.length < at + length) break;
      const answer = take(rest.subarray(0, at + length));
      if (answer !== undefined) answers.push(answer);
      rest = rest.subarray(at + length);
    }
    if (answers.length > 0) socket.write(Buffer.concat(answers));
  });
}
