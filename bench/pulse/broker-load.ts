// Load on a broker, run as a child: `broker-load.ts PROTOCOL PORT CONNECTIONS WINDOW RECORDS SECONDS`.
// Each connection keeps WINDOW requests of RECORDS × 1 KB in flight and counts responses that acknowledge storage (`fetch`
// counts received bytes). Prints one JSON line. Frames are encoded once, so that little but the broker's work is measured.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { encodeBatch } from "@platform/log/batch";
import { takePercentile } from "../harness/statistics.ts";

/** Bytes of one record's value. */
export const recordBytes = 1_024;
/** The topic, subject or queue. */
export const topicName = "bench";
/** Partitions of the topic. */
export const partitions = 4;
const fetchBytes = 1_048_576;
const latenciesMax = 1_000_000;

/** Protocol of the load; `fetch` is Kafka's Fetch, `kafka` its Produce. */
export type Protocol = "kafka" | "fetch" | "http" | "nats" | "stomp";

/** The JSON line that the load prints. */
export interface LoadSummary {
  records: number;
  bytes: number;
  seconds: number;
  p99Ms: number;
}

/** Requests and responses of a protocol. */
interface Dialect {
  greet: (socket: Socket) => Promise<void>;
  request: () => Buffer;
  /** Length of the response at the start of `bytes`, for protocols that declare it. */
  measure?: (bytes: Buffer) => number;
  /** Parses the response at the start of `bytes`; undefined if it is incomplete. Throws if it reports a failure. */
  take: (bytes: Buffer) => { used: number; bytes: number } | undefined;
}

if (import.meta.main) {
  const [protocol, ...numbers] = process.argv.slice(2);
  const [port, connections, window, records, seconds] = numbers.map(Number);
  const summary = await run(
    protocol as Protocol,
    port!,
    connections!,
    window!,
    records!,
    seconds! * 1_000,
  );
  console.log(JSON.stringify(summary));
  process.exit(0);
}

async function run(
  protocol: Protocol,
  port: number,
  connections: number,
  window: number,
  records: number,
  lengthMs: number,
): Promise<LoadSummary> {
  const sockets: { socket: Socket; dialect: Dialect }[] = [];
  for (let index = 0; index < connections; index++) {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    const dialect = makeDialect(protocol, index, records);
    await dialect.greet(socket);
    sockets.push({ socket, dialect });
  }
  const latencies: number[] = [];
  let answers = 0;
  let bytes = 0;
  const started = performance.now();
  const until = started + lengthMs;
  await Promise.all(
    sockets.map(({ socket, dialect }) =>
      runOne(socket, dialect, window, until, (gained, latencyMs) => {
        answers++;
        bytes += gained;
        if (latencies.length < latenciesMax) latencies.push(latencyMs);
      }),
    ),
  );
  const seconds = (performance.now() - started) / 1_000;
  const stored = answers * records;
  return {
    records: stored,
    bytes: protocol === "fetch" ? bytes : stored * recordBytes,
    seconds,
    p99Ms: takePercentile(latencies, 0.99),
  };
}

function runOne(
  socket: Socket,
  dialect: Dialect,
  window: number,
  until: number,
  onAnswer: (bytes: number, latencyMs: number) => void,
): Promise<void> {
  const sentAt: number[] = [];
  const send = () => {
    sentAt.push(performance.now());
    socket.write(dialect.request());
  };
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let waiting = 0;
    let wanted = 0;
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the broker closed the connection")));
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      waiting += chunk.length;
      // Joined only once a response may be complete, because large ones arrive in many chunks.
      if (waiting < wanted) return;
      let rest = chunks.length === 1 ? chunk : Buffer.concat(chunks, waiting);
      try {
        for (let answer = dialect.take(rest); answer !== undefined; answer = dialect.take(rest)) {
          rest = rest.subarray(answer.used);
          const now = performance.now();
          onAnswer(answer.bytes, now - sentAt.shift()!);
          if (now < until) send();
          else if (sentAt.length === 0) resolve();
        }
        chunks = [rest];
        waiting = rest.length;
        wanted = dialect.measure?.(rest) ?? 0;
      } catch (error) {
        reject(error);
      }
    });
    for (let count = 0; count < window; count++) send();
  });
}

function makeDialect(protocol: Protocol, index: number, records: number): Dialect {
  const value = Buffer.alloc(recordBytes, "v");
  switch (protocol) {
    case "kafka":
      return speakKafkaProduce(index % partitions, records, value);
    case "fetch":
      return speakKafkaFetch(index % partitions);
    case "http":
      return speakHttp(value);
    case "nats":
      return speakNats(index, value);
    case "stomp":
      return speakStomp(index, value);
    default:
      return protocol satisfies never;
  }
}

// Most protocols need no greeting.
async function quiet(): Promise<void> {}

/* Kafka protocol guide: Produce 7 and Fetch 4, the last versions without tagged fields that have all required fields. */

function speakKafkaProduce(partition: number, records: number, value: Buffer): Dialect {
  const timestamp = Date.now();
  const one = { key: null, value, headers: [], timestamp };
  const batch = encodeBatch(Array.from({ length: records }, () => one));
  const body = Buffer.concat([int16(-1), int16(-1), int32(30_000), ...onePartition(partition)]);
  const frame = kafkaFrame(0, 7, Buffer.concat([body, int32(batch.length), batch]));
  const errorAt = 4 + 4 + 4 + 2 + topicName.length + 4 + 4;
  return {
    greet: quiet,
    request: () => frame,
    measure: measureKafka,
    take: (bytes) => takeKafka(bytes, errorAt, () => 0),
  };
}

function speakKafkaFetch(partition: number): Dialect {
  const offset = Buffer.alloc(8);
  const place = onePartition(partition);
  let next = 0n;
  const errorAt = 4 + 4 + 4 + 4 + 2 + topicName.length + 4 + 4;
  const recordsAt = errorAt + 2 + 8 + 8 + 4;
  return {
    greet: quiet,
    request: () => {
      offset.writeBigInt64BE(next);
      const head = [int32(-1), int32(0), int32(1), int32(fetchBytes), Buffer.from([0])];
      return kafkaFrame(1, 4, Buffer.concat([...head, ...place, offset, int32(fetchBytes)]));
    },
    measure: measureKafka,
    take: (bytes) =>
      takeKafka(bytes, errorAt, (frame) => {
        const length = frame.readInt32BE(recordsAt);
        const end = recordsAt + 4 + length;
        let at = recordsAt + 4;
        if (length <= 0) next = 0n;
        while (at + 61 <= end) {
          next = frame.readBigInt64BE(at) + BigInt(frame.readInt32BE(at + 23)) + 1n;
          at += 12 + frame.readInt32BE(at + 8);
        }
        return Math.max(0, length);
      }),
  };
}

function measureKafka(bytes: Buffer): number {
  return bytes.length < 4 ? 4 : 4 + bytes.readInt32BE(0);
}

function takeKafka(bytes: Buffer, errorAt: number, measure: (frame: Buffer) => number) {
  if (bytes.length < 4) return undefined;
  const used = 4 + bytes.readInt32BE(0);
  if (bytes.length < used) return undefined;
  const code = bytes.readInt16BE(errorAt);
  if (code !== 0) throw new Error(`Kafka error ${code}`);
  return { used, bytes: measure(bytes) };
}

function kafkaFrame(key: number, version: number, body: Buffer): Buffer {
  const head = Buffer.concat([int16(key), int16(version), int32(1), int16(-1)]);
  return Buffer.concat([int32(head.length + body.length), head, body]);
}

function onePartition(partition: number): Buffer[] {
  const name = Buffer.from(topicName);
  return [int32(1), int16(name.length), name, int32(1), int32(partition)];
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function speakHttp(value: Buffer): Dialect {
  const body = JSON.stringify({ topic: topicName, payload: value.toString() });
  const request = Buffer.from(
    `POST /api/v1/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  return {
    greet: quiet,
    request: () => request,
    take: (bytes) => {
      const headEnd = bytes.indexOf("\r\n\r\n");
      if (headEnd < 0) return undefined;
      const head = bytes.toString("latin1", 0, headEnd);
      if (!head.startsWith("HTTP/1.1 200")) throw new Error(bytes.toString("latin1", 0, 500));
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      const used = headEnd + 4 + length;
      return bytes.length < used ? undefined : { used, bytes: 0 };
    },
  };
}

/* https://docs.nats.io/reference/reference-protocols/nats-protocol; JetStream acknowledges to the reply subject. */

function speakNats(index: number, value: Buffer): Dialect {
  const inbox = `answers.${index}`;
  // Sent once, soon after the start; the server checks for the answer only after minutes.
  const ping = "PING\r\n";
  const request = Buffer.concat([
    Buffer.from(`PUB ${topicName} ${inbox} ${value.length}\r\n`),
    value,
    Buffer.from("\r\n"),
  ]);
  const takeMessage = (bytes: Buffer) => {
    const begin = bytes.toString("latin1", 0, ping.length) === ping ? ping.length : 0;
    const lineEnd = bytes.indexOf("\r\n", begin);
    if (lineEnd < 0) return undefined;
    const line = bytes.toString("latin1", begin, lineEnd);
    if (!line.startsWith("MSG ")) throw new Error(line);
    const used = lineEnd + 2 + Number(line.slice(line.lastIndexOf(" "))) + 2;
    if (bytes.length < used) return undefined;
    const text = bytes.toString("latin1", lineEnd + 2, used);
    if (text.includes('"error"')) throw new Error(text);
    return { used, bytes: 0 };
  };
  return {
    greet: async (socket) => {
      await once(socket, "data");
      socket.write(`CONNECT {"verbose":false}\r\nSUB ${inbox} 1\r\n`);
      if (index > 0) return;
      const stream = JSON.stringify({ name: topicName, subjects: [topicName], storage: "file" });
      socket.write(
        `PUB $JS.API.STREAM.CREATE.${topicName} ${inbox} ${stream.length}\r\n${stream}\r\n`,
      );
      takeMessage((await once(socket, "data"))[0] as Buffer);
    },
    request: () => request,
    take: takeMessage,
  };
}

/* STOMP 1.2; RabbitMQ sends the receipt of a persistent message when the queue has confirmed it. */

function speakStomp(index: number, value: Buffer): Dialect {
  const request = Buffer.concat([
    Buffer.from(
      `SEND\ndestination:/queue/${topicName}\npersistent:true\nx-queue-type:quorum\nreceipt:1\ncontent-length:${value.length}\n\n`,
    ),
    value,
    Buffer.from("\0"),
  ]);
  return {
    greet: async (socket) => {
      socket.write("CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0");
      const [answer] = (await once(socket, "data")) as [Buffer];
      if (!answer.toString().startsWith("CONNECTED")) throw new Error(answer.toString());
      if (index > 0) return;
      // Creates the queue before all connections use it concurrently.
      socket.write(request);
      await once(socket, "data");
    },
    request: () => request,
    take: (bytes) => {
      const end = bytes.indexOf(0);
      if (end < 0) return undefined;
      const text = bytes.toString("latin1", 0, end);
      if (!text.trimStart().startsWith("RECEIPT")) throw new Error(text.slice(0, 300));
      return { used: end + 1, bytes: 0 };
    },
  };
}
