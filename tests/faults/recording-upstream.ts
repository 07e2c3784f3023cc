// An upstream that records all received bytes, and parses requests without the gateway's code.
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { takeRequest, type RecordedRequest } from "../../packages/http1/test/peers/recorder.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/** Recorded requests. */
export interface Recording {
  readonly url: string;
  /** Complete requests, in order of completion. */
  readonly requests: RecordedRequest[];
  /** Number of bytes received on all connections. */
  countBytes(): number;
  /** Number of open connections with an incomplete request. */
  countUnfinished(): number;
  stop(): void;
}

/** Starts an upstream that responds to each complete request with an empty 200 and keeps its connections open. */
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
