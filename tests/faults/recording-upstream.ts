// An upstream that keeps every byte that reaches it, and reads requests with none of the gateway's code.
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { takeRequest, type RecordedRequest } from "../../packages/http1/test/peers/recorder.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/** What has reached an upstream. */
export interface Recording {
  readonly url: string;
  /** Whole requests, in the order in which their last bytes came. */
  readonly requests: RecordedRequest[];
  /** How many bytes came, over all connections. */
  countBytes(): number;
  /** Open connections that brought the beginning of a request and not its end. */
  countUnfinished(): number;
  stop(): void;
}

/** Starts an upstream that answers each whole request with an empty 200 and keeps its connections open. */
export async function startRecording(): Promise<Recording> {
  const requests: RecordedRequest[] = [];
  const pending = new Map<Socket, string>();
  let bytes = 0;
  const server = createServer((socket) => {
    pending.set(socket, "");
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      let text = (pending.get(socket) ?? "") + chunk.toString("latin1");
      for (let taken = takeRequest(text); taken !== null; taken = takeRequest(text)) {
        requests.push(taken.request);
        text = taken.rest;
        socket.write(OK);
      }
      pending.set(socket, text);
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => pending.delete(socket));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    countBytes: () => bytes,
    countUnfinished: () => [...pending.values()].filter((text) => text !== "").length,
    stop: () => {
      for (const socket of pending.keys()) socket.destroy();
      server.close();
    },
  };
}
