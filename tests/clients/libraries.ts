// Client libraries for Node.js.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import { EventSource } from "eventsource";
import { Client } from "undici";
import { WebSocket } from "ws";
import type { RealClient } from "./client.ts";

const MESSAGE_BYTES = 1_000_000;
const FIRST_EVENT_MS_MAX = 2_000;

const nodeHttp: RealClient = {
  name: "node:http",
  side: "in front",
  readVersion: () => process.versions.node,
  shows: "keep-alive agent, `100 Continue`, chunked upload, chunked response",
  exercise: async ({ gateway }) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const request = http.request(`${gateway.url}/echo`, {
      agent,
      method: "POST",
      headers: { expect: "100-continue", "transfer-encoding": "chunked" },
    });
    request.flushHeaders();
    await once(request, "continue");
    request.write("one,");
    request.end("two");
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    const echo = JSON.parse(await readText(response)) as { bodyBytes: number };
    assert.equal(echo.bodyBytes, 7);
    const again = http.get(`${gateway.url}/stream?chunks=5&ms=1`, { agent });
    const [streamed] = (await once(again, "response")) as [http.IncomingMessage];
    assert.equal(await readText(streamed), "chunk 1\nchunk 2\nchunk 3\nchunk 4\nchunk 5\n");
    assert.ok(again.reusedSocket, "the agent could not reuse its connection");
    agent.destroy();
  },
};

const undici: RealClient = {
  name: "undici",
  side: "in front",
  readVersion: () => readPackageVersion("undici"),
  shows: "eight requests pipelined on one connection, answered in order",
  exercise: async ({ gateway }) => {
    const client = new Client(gateway.url, { pipelining: 8 });
    const answers = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const { statusCode, body } = await client.request({
          path: `/echo?n=${index}`,
          method: "GET",
        });
        return [statusCode, ((await body.json()) as { url: string }).url];
      }),
    );
    assert.deepEqual(
      answers,
      Array.from({ length: 8 }, (_, index) => [200, `/echo?n=${index}`]),
    );
    await client.close();
  },
};

const ws: RealClient = {
  name: "ws",
  side: "in front",
  readVersion: () => readPackageVersion("ws"),
  shows: "text and a 1 MB binary message in both directions, ping and pong, close codes",
  exercise: async ({ gateway }) => {
    const socket = new WebSocket(`${gateway.url.replace("http", "ws")}/socket`);
    await once(socket, "open");
    const exchange = async (message: string | Buffer): Promise<Buffer> => {
      const received = once(socket, "message") as Promise<[Buffer]>;
      socket.send(message);
      return (await received)[0];
    };
    assert.equal((await exchange("hello")).toString(), "hello");
    const large = Buffer.alloc(MESSAGE_BYTES, 7);
    assert.ok((await exchange(large)).equals(large));
    const pong = once(socket, "pong");
    socket.ping();
    await pong;
    const closed = once(socket, "close") as Promise<[number]>;
    socket.close(4001, "done");
    assert.equal((await closed)[0], 4001);
  },
};

const eventSource: RealClient = {
  name: "eventsource",
  side: "in front",
  readVersion: () => readPackageVersion("eventsource"),
  shows: "server-sent events arrive one by one",
  exercise: async ({ gateway }) => {
    const startedAt = performance.now();
    const source = new EventSource(`${gateway.url}/events?ms=100`);
    const arrivals: number[] = [];
    await new Promise<void>((resolve, reject) => {
      source.addEventListener("error", (event) =>
        reject(new Error(`EventSource: ${event.message}`)),
      );
      source.addEventListener("message", (event) => {
        arrivals.push(performance.now() - startedAt);
        assert.equal(event.lastEventId, String(arrivals.length));
        if (arrivals.length === 5) resolve();
      });
    });
    source.close();
    const [first = Infinity, , , , last = 0] = arrivals;
    assert.ok(first < FIRST_EVENT_MS_MAX, `the first event came after ${first} ms`);
    assert.ok(last - first > 200, "the events were held back and came at once");
  },
};

/** Libraries, in the order of the table. */
export const LIBRARIES: readonly RealClient[] = [nodeHttp, undici, ws, eventSource];

async function readText(response: http.IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  return text;
}

// Reads the manifest next to the module's entry: not every package exports its package.json.
function readPackageVersion(name: string): string {
  const path = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
}
