// Probes of listeners without credentials, which only programs on this machine may use. As a program, it reads probes as JSON from
// stdin and writes the answers, so that the same probes run in another network namespace.
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { WebSocket } from "ws";

const TIMEOUT_MS = 20_000;

/** The request, without credentials. */
export type ProbeKind =
  /** GET of a path: admitted if the status is 200. */
  | "get"
  | "kafka"
  | "mqtt"
  | "stomp"
  | "mqtt-websocket"
  | "stomp-websocket"
  /** A WebSocket without a subprotocol: admitted if it opens. */
  | "websocket";

/** A probe of one listener. */
export interface Probe {
  kind: ProbeKind;
  /** Address to connect to. */
  address: string;
  port: number;
  /** Of requests and WebSockets. */
  path?: string;
  /** Header fields, Host included. */
  headers?: Record<string, string>;
}

/** Kafka's Metadata request, version 0, of the client "x" for all topics. */
const METADATA = Buffer.from("0000000f000300000000000100017800000000", "hex");
/** CONNECT of MQTT 3.1.1 without user name: clean session, client identifier "probe". */
const MQTT_CONNECT = Buffer.from("101100044d5154540402003c000570726f6265", "hex");
const STOMP_CONNECT = "CONNECT\naccept-version:1.2\nhost:probe\n\n\0";

/** True if the listener answers as it does to programs on this machine. Rejects if it does not answer at all. */
export async function isAdmitted(probe: Probe): Promise<boolean> {
  const { kind } = probe;
  switch (kind) {
    case "get":
      return (await readStatus(probe)) === 200;
    case "kafka":
      // Requests before authentication end the connection; the answer has the correlation id.
      return (await exchange(probe, METADATA)).subarray(4, 8).equals(Buffer.of(0, 0, 0, 1));
    case "mqtt":
      return isAccepted(await exchange(probe, MQTT_CONNECT));
    case "stomp":
      return (await exchange(probe, STOMP_CONNECT)).toString().startsWith("CONNECTED");
    case "mqtt-websocket":
      return isAccepted(await exchangeFrames(probe, "mqtt", MQTT_CONNECT));
    case "stomp-websocket":
      return (await exchangeFrames(probe, "v12.stomp", STOMP_CONNECT))
        .toString()
        .startsWith("CONNECTED");
    case "websocket":
      return (await exchangeFrames(probe, undefined, undefined)).length > 0;
    default:
      return kind satisfies never;
  }
}

function isAccepted(connack: Buffer): boolean {
  return connack[0] === 0x20 && connack[3] === 0;
}

/** The status of a GET. */
export async function readStatus({ address, port, path, headers }: Probe): Promise<number> {
  const sent = request({ host: address, port, path, headers, agent: false, timeout: TIMEOUT_MS });
  sent.once("timeout", () => sent.destroy(new Error("no answer")));
  sent.end();
  const [response] = (await once(sent, "response")) as [
    NodeJS.ReadableStream & { statusCode: number },
  ];
  await text(response);
  return response.statusCode;
}

/** Sends bytes and returns the first answer; empty if the connection was closed. */
async function exchange({ address, port }: Probe, bytes: Buffer | string): Promise<Buffer> {
  const socket = connect({ host: address, port, timeout: TIMEOUT_MS });
  socket.once("timeout", () => socket.destroy(new Error("no answer")));
  await once(socket, "connect");
  socket.write(bytes);
  try {
    for await (const chunk of socket) return chunk as Buffer;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ECONNRESET") throw error;
  } finally {
    socket.destroy();
  }
  return Buffer.alloc(0);
}

/** As `exchange`, over a WebSocket; without bytes the answer is "open". */
async function exchangeFrames(
  { address, port, path = "/", headers }: Probe,
  subprotocol: string | undefined,
  bytes: Buffer | string | undefined,
): Promise<Buffer> {
  const host = address.includes(":") ? `[${address}]` : address;
  const socket = new WebSocket(`ws://${host}:${port}${path}`, subprotocol ?? [], {
    headers,
    handshakeTimeout: TIMEOUT_MS,
  });
  const answer = Promise.withResolvers<Buffer>();
  socket.on("open", () => {
    if (bytes === undefined) answer.resolve(Buffer.from("open"));
    else socket.send(bytes);
  });
  socket.on("message", (data: Buffer) => answer.resolve(data));
  socket.on("unexpected-response", () => answer.resolve(Buffer.alloc(0)));
  socket.on("close", () => answer.resolve(Buffer.alloc(0)));
  socket.on("error", (error) => answer.reject(error));
  const timer = setTimeout(() => answer.reject(new Error("no answer")), TIMEOUT_MS);
  try {
    return await answer.promise;
  } finally {
    clearTimeout(timer);
    socket.on("error", () => undefined);
    socket.terminate();
  }
}

if (import.meta.main) {
  const probes = JSON.parse(await text(process.stdin)) as Probe[];
  const answers = await Promise.all(probes.map(isAdmitted));
  process.stdout.write(JSON.stringify(answers));
}
