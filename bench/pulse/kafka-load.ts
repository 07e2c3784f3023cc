// A producer and a consumer of the Kafka protocol that cost as little as can be: batches are made once, answers are
// looked at only as far as must be. Produce 7, Fetch 11, Metadata 5: the last versions without compact fields.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { encodeBatch } from "@platform/log/batch";

const keys = { produce: 0, fetch: 1, metadata: 3 } as const;
const recordBytes = 1_024;

/** What to write. */
export type KafkaLoad = {
  port: number;
  topic: string;
  /** Connections, each of which has a partition of its own. */
  connections: number;
  /** Records of 1 KB in a batch. */
  records: number;
  /** Produce requests of a connection that wait for their answer at a time. */
  inFlight: number;
};

/** Bytes that were moved, and how long it took. */
export type KafkaFigures = { megabytesPerSecond: number; p99Ms: number };

/** Writes `bytes` with acks −1; every answer is checked for an error. */
export async function produceAll(load: KafkaLoad, bytes: number): Promise<KafkaFigures> {
  const batch = makeBatch(load.records);
  const perConnection = Math.ceil(bytes / batch.length / load.connections);
  const wires = await connectAll(load);
  const latencies: number[] = [];
  const started = performance.now();
  await Promise.all(
    wires.map(async (wire, partition) => {
      const request = produceRequest(load.topic, partition, batch);
      let left = perConnection;
      const lane = async () => {
        while (left-- > 0) {
          const begun = performance.now();
          readProduceError(await wire.ask(request), load.topic);
          latencies.push(performance.now() - begun);
        }
      };
      await Promise.all(Array.from({ length: load.inFlight }, lane));
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  for (const wire of wires) wire.close();
  latencies.sort((one, other) => one - other);
  return {
    megabytesPerSecond: (perConnection * load.connections * batch.length) / 1e6 / seconds,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
  };
}

/** Reads everything there is in the partitions once, 1 MiB of each at a time. */
export async function fetchAll(load: KafkaLoad): Promise<KafkaFigures> {
  const wires = await connectAll(load);
  const latencies: number[] = [];
  let bytes = 0;
  const started = performance.now();
  await Promise.all(
    wires.map(async (wire, partition) => {
      for (let offset = 0; ;) {
        const begun = performance.now();
        const found = readFetched(await wire.ask(fetchRequest(load.topic, partition, offset)));
        if (found.bytes === 0) return;
        latencies.push(performance.now() - begun);
        bytes += found.bytes;
        offset = found.nextOffset;
      }
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  for (const wire of wires) wire.close();
  latencies.sort((one, other) => one - other);
  return {
    megabytesPerSecond: bytes / 1e6 / seconds,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
  };
}

/** Asks for a topic's metadata, which makes the topic. */
export async function askMetadata(port: number, topic: string): Promise<void> {
  const wire = await Wire.connect(port);
  const array = Buffer.alloc(4);
  array.writeInt32BE(1);
  await wire.ask(frameOf(keys.metadata, 5, [array, text(topic), Buffer.from([1])]));
  wire.close();
}

/** One connection: answers come in the order of the requests. */
class Wire {
  readonly #socket: Socket;
  readonly #waiting: ((answer: Buffer) => void)[] = [];
  #chunks: Buffer[] = [];
  #bytes = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
      this.#take();
    });
  }

  static async connect(port: number): Promise<Wire> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    return new Wire(socket);
  }

  ask(request: readonly Buffer[]): Promise<Buffer> {
    this.#socket.cork();
    for (const part of request) this.#socket.write(part);
    this.#socket.uncork();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(): void {
    while (this.#bytes >= 4) {
      const [first] = this.#chunks;
      if (first!.length < 4) this.#chunks = [Buffer.concat(this.#chunks)];
      const length = this.#chunks[0]!.readInt32BE(0) + 4;
      if (this.#bytes < length) return;
      const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
      this.#chunks = all.length === length ? [] : [all.subarray(length)];
      this.#bytes -= length;
      this.#waiting.shift()!(all.subarray(8, length));
    }
  }
}

function connectAll(load: KafkaLoad): Promise<Wire[]> {
  return Promise.all(Array.from({ length: load.connections }, () => Wire.connect(load.port)));
}

function makeBatch(records: number): Buffer {
  const value = Buffer.alloc(recordBytes - 20, "v");
  return encodeBatch(
    Array.from({ length: records }, () => ({ key: null, value, headers: [], timestamp: 1 })),
  );
}

/** Length, request header 1, body. */
function frameOf(key: number, version: number, body: readonly Buffer[]): Buffer[] {
  const head = Buffer.alloc(14);
  head.writeInt16BE(key, 4);
  head.writeInt16BE(version, 6);
  // No client id; all requests have the correlation id 0, as answers come in order.
  head.writeInt16BE(-1, 12);
  head.writeInt32BE(body.reduce((sum, part) => sum + part.length, 10));
  return [head, ...body];
}

function produceRequest(topic: string, partition: number, batch: Buffer): Buffer[] {
  const head = Buffer.alloc(12);
  head.writeInt16BE(-1, 0);
  head.writeInt16BE(-1, 2);
  head.writeInt32BE(30_000, 4);
  head.writeInt32BE(1, 8);
  const place = Buffer.alloc(12);
  place.writeInt32BE(1, 0);
  place.writeInt32BE(partition, 4);
  place.writeInt32BE(batch.length, 8);
  return frameOf(keys.produce, 7, [Buffer.concat([head, text(topic), place]), batch]);
}

/** correlation id, [topic [partition error …]]: the answer's first and only partition. */
function readProduceError(answer: Buffer, topic: string): void {
  const errorCode = answer.readInt16BE(4 + 2 + Buffer.byteLength(topic) + 4 + 4);
  if (errorCode !== 0) throw new Error(`Produce failed with ${errorCode}`);
}

function fetchRequest(topic: string, partition: number, offset: number): Buffer[] {
  const head = Buffer.alloc(29);
  head.writeInt32BE(-1, 0);
  head.writeInt32BE(0, 4);
  head.writeInt32BE(1, 8);
  head.writeInt32BE(64 * 1024 * 1024, 12);
  head.writeInt32BE(0, 17);
  head.writeInt32BE(-1, 21);
  head.writeInt32BE(1, 25);
  const place = Buffer.alloc(4 + 4 + 4 + 8 + 8 + 4 + 4 + 2);
  place.writeInt32BE(1, 0);
  place.writeInt32BE(partition, 4);
  place.writeInt32BE(-1, 8);
  place.writeBigInt64BE(BigInt(offset), 12);
  place.writeBigInt64BE(-1n, 20);
  place.writeInt32BE(1_048_576, 28);
  return frameOf(keys.fetch, 11, [Buffer.concat([head, text(topic), place])]);
}

/** throttle, error, session, [topic [partition error watermark stable start [aborted] replica records]]. */
function readFetched(answer: Buffer): { bytes: number; nextOffset: number } {
  let at = 4 + 2 + 4 + 4;
  at += 2 + answer.readInt16BE(at) + 4 + 4;
  const errorCode = answer.readInt16BE(at);
  if (errorCode !== 0) throw new Error(`Fetch failed with ${errorCode}`);
  at += 2 + 8 + 8 + 8;
  const aborted = answer.readInt32BE(at);
  at += 4 + Math.max(0, aborted) * 16 + 4;
  const bytes = answer.readInt32BE(at);
  at += 4;
  let nextOffset = 0;
  for (const end = at + bytes; at < end; at += 12 + answer.readInt32BE(at + 8)) {
    nextOffset = Number(answer.readBigInt64BE(at)) + answer.readInt32BE(at + 23) + 1;
  }
  return { bytes, nextOffset };
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
