// A client of MQTT that sends any packet, also invalid ones, and returns every packet that comes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import mqttPacket, { type IConnackPacket } from "mqtt-packet";

export { mqttPacket };

const TIMEOUT_MS = 10_000;

/** A received packet; tests read any of its members. */
// oxlint-disable-next-line typescript/no-explicit-any -- as above
export type Received = any;

/** One connection. */
export class RawClient {
  readonly socket: Socket;
  readonly #version: 4 | 5;
  readonly #received: Received[] = [];
  #wake: (() => void) | undefined;
  #isClosed = false;

  private constructor(socket: Socket, version: 4 | 5) {
    this.socket = socket;
    this.#version = version;
    const parser = mqttPacket.parser({ protocolVersion: version });
    parser.on("packet", (packet) => {
      this.#received.push(packet);
      this.#wake?.();
    });
    socket.on("data", (bytes: Buffer) => parser.parse(bytes));
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#isClosed = true;
      this.#wake?.();
    });
  }

  /** Packets that have arrived and were not asked for yet. */
  get waiting(): number {
    return this.#received.length;
  }

  /** Connects the socket only. */
  static async open(port: number, version: 4 | 5): Promise<RawClient> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    return new RawClient(socket, version);
  }

  send(packet: Received): void {
    this.socket.write(mqttPacket.generate(packet, { protocolVersion: this.#version }));
  }

  sendBytes(...bytes: number[]): void {
    this.socket.write(Buffer.from(bytes));
  }

  /** The next packet, which must have this type if one is given. */
  async next(type?: string): Promise<Received> {
    const deadline = performance.now() + TIMEOUT_MS;
    while (this.#received.length === 0) {
      assert.ok(!this.#isClosed, `the connection was closed instead of ${type ?? "a packet"}`);
      assert.ok(performance.now() < deadline, `no ${type ?? "packet"} has come`);
      await this.#wait();
    }
    const packet = this.#received.shift();
    if (type !== undefined) assert.equal(packet.cmd, type, JSON.stringify(packet));
    return packet;
  }

  /** Sends a PINGREQ; resolves when nothing else than its answer has come. */
  async expectNothing(): Promise<void> {
    this.send({ cmd: "pingreq" });
    await this.next("pingresp");
  }

  /** Resolves when the server has closed the connection; returns the DISCONNECT or CONNACK before that, if any. */
  async closed(): Promise<Received> {
    const deadline = performance.now() + TIMEOUT_MS;
    while (!this.#isClosed) {
      assert.ok(performance.now() < deadline, "the connection stays open");
      await this.#wait();
    }
    return this.#received.find(({ cmd }) => cmd === "disconnect" || cmd === "connack");
  }

  /** Sends a CONNECT; returns the CONNACK, which must accept it. */
  async connect(packet: Received = {}): Promise<IConnackPacket> {
    this.send(createConnect(this.#version, packet));
    const connack = await this.next("connack");
    assert.equal(connack.reasonCode ?? connack.returnCode, 0, JSON.stringify(connack));
    return connack;
  }

  async subscribe(topic: string, options: Received = {}, more: Received = {}): Promise<Received> {
    const subscriptions = [{ topic, qos: 0, ...options }];
    this.send({ cmd: "subscribe", messageId: 1, subscriptions, ...more });
    return this.next("suback");
  }

  /** Publishes with QoS 1 or 2 up to the end of the exchange. */
  async publish(topic: string, payload: string | Buffer, more: Received = {}): Promise<Received> {
    const { qos = 1, messageId = 7 } = more;
    this.send({
      cmd: "publish",
      topic,
      payload,
      qos,
      messageId,
      dup: false,
      retain: false,
      ...more,
    });
    if (qos === 0) return undefined;
    if (qos === 1) return this.next("puback");
    const received = await this.next("pubrec");
    this.send({ cmd: "pubrel", messageId });
    await this.next("pubcomp");
    return received;
  }

  /** Disconnects with a DISCONNECT. */
  async disconnect(packet: Received = {}): Promise<void> {
    this.send({ cmd: "disconnect", reasonCode: 0, ...packet });
    await this.closed();
  }

  /** Breaks the connection. */
  async drop(): Promise<void> {
    this.socket.destroy();
    await this.closed();
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, 1_000);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** A CONNECT with defaults. */
export function createConnect(version: 4 | 5, packet: Received = {}): Received {
  return {
    cmd: "connect",
    protocolId: "MQTT",
    protocolVersion: version,
    clean: true,
    clientId: "",
    keepalive: 0,
    ...packet,
  };
}
