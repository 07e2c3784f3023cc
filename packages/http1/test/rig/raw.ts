// Clients and upstreams that speak bytes, so that tests can send what no HTTP library would.
import { type AddressInfo, type Socket, connect, createServer } from "node:net";

/** Generous, so that a busy machine does not look like a defect. */
const WAIT_MS = 30_000;

/** One connection of a client that collects what it gets. */
export class RawClient {
  readonly socket: Socket;
  text = "";
  ended = false;
  closed = false;
  #changed: (() => void)[] = [];

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.text += bytes.toString("latin1");
      this.#wake();
    });
    socket.on("end", () => {
      this.ended = true;
      this.#wake();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.closed = true;
      this.#wake();
    });
  }

  /** Waits until `accept` holds, at most half a minute. */
  async until(accept: () => boolean, what = "what was expected"): Promise<void> {
    const deadline = performance.now() + WAIT_MS;
    while (!accept()) {
      const leftMs = deadline - performance.now();
      if (leftMs <= 0)
        throw new Error(`Waited in vain for ${what}; got ${JSON.stringify(this.text.slice(-600))}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(leftMs, 10));
        this.#changed.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Waits until the text contains this part. */
  untilText(part: string): Promise<void> {
    return this.until(() => this.text.includes(part), part);
  }

  /** Waits until the other side has closed. */
  untilClosed(): Promise<void> {
    return this.until(() => this.closed || this.ended, "the close");
  }

  #wake(): void {
    for (const resolve of this.#changed.splice(0)) resolve();
  }
}

/** Opens a raw connection. */
export async function openRaw(port: number): Promise<RawClient> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return new RawClient(socket);
}

/** Sends bytes and returns everything received until the other side closes. */
export async function ask(port: number, request: string | Buffer): Promise<string> {
  const client = await openRaw(port);
  client.socket.write(request);
  await client.untilClosed();
  client.socket.destroy();
  return client.text;
}

/** An upstream whose connections are handled by the test. */
export interface RawUpstream {
  readonly port: number;
  readonly connections: RawClient[];
  /** Connections that are open now. */
  open(): number;
  stop(): Promise<void>;
}

/**
 * Starts an upstream. `onRequest` is called for every chunk received, with the connection (`client.text` is everything
 * received so far) and the connection's number, counted from 1.
 */
export async function startUpstream(
  onRequest: (client: RawClient, count: number) => void,
): Promise<RawUpstream> {
  const connections: RawClient[] = [];
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const client = new RawClient(socket);
    connections.push(client);
    const count = connections.length;
    socket.on("end", () => socket.end());
    socket.on("data", () => {
      onRequest(client, count);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    connections,
    open: () => connections.filter((connection) => !connection.closed).length,
    stop: () =>
      new Promise((resolve) => {
        for (const { socket } of connections) socket.destroy();
        server.close(() => {
          resolve();
        });
      }),
  };
}

/** Returns an `onRequest` that responds to every complete head with the same bytes. */
export function answering(bytes: string | Buffer): (client: RawClient) => void {
  return (client) => {
    while (client.text.includes("\r\n\r\n")) {
      client.text = client.text.slice(client.text.indexOf("\r\n\r\n") + 4);
      client.socket.write(bytes);
    }
  };
}
