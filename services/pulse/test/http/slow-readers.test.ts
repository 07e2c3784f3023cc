// Subscribers that do not read: the data that waits for all of them together is bounded, and others receive their messages.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";

const BUDGET_BYTES = 16 * 1_048_576;
const PAYLOAD = "a".repeat(900_000);
const MESSAGE_BYTES = PAYLOAD.length + 1_000;
const MESSAGES = 10;

interface Reading {
  head: string;
  /** Requests of one connection. */
  count: number;
  status: number;
  readers: number;
}

const readings: Record<string, Reading> = {
  "server-sent events": {
    head: "GET /api/v1/subscribe/big?from=earliest HTTP/1.1",
    count: 1,
    status: 200,
    readers: 40,
  },
  WebSockets: {
    head:
      "GET /ws/subscribe/big?from=earliest HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    count: 1,
    status: 101,
    readers: 40,
  },
  "pipelined reads": {
    head: "GET /api/v1/tail?topic=big&limit=100 HTTP/1.1",
    count: 20,
    status: 200,
    readers: 8,
  },
};

for (const [name, { head, count, status, readers }] of Object.entries(readings)) {
  test(`slow readers of ${name} share one budget`, { timeout: 90_000 }, async (t) => {
    const pulse = await startPulseHere(t, {
      PLATFORM_PULSE_UNSENT_BYTES_MAX: String(BUDGET_BYTES),
      PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0",
    });
    for (let at = 0; at < MESSAGES; at++) {
      const published = await pulse.publish({ topic: "big", payload: PAYLOAD });
      assert.equal(published.status, 200);
    }
    const openReader = (): Socket => {
      const socket = connect({ port: pulse.port, host: "127.0.0.1" });
      socket.on("error", () => undefined);
      socket.write(`${head}\r\nHost: 127.0.0.1:${pulse.port}\r\n\r\n`.repeat(count));
      t.after(() => socket.destroy());
      return socket;
    };
    const first = openReader();
    const [begin] = (await once(first, "data")) as [Buffer];
    first.pause();
    assert.ok(begin.toString("latin1").startsWith(`HTTP/1.1 ${status} `));
    for (let at = 1; at < readers; at++) openReader();
    // Slow readers are disconnected only if others need their memory, so this may end without that.
    let peak = 0;
    const endMs = performance.now() + 8_000;
    for (let dropped = 0; dropped === 0 && performance.now() < endMs; await sleep(50)) {
      const { body } = await pulse.get("/metrics");
      peak = Math.max(peak, readSample(body, "platform_http_unsent_bytes") ?? 0);
      dropped = readSample(body, 'platform_http_clients_dropped_total{reason="over_budget"}') ?? 0;
    }
    assert.ok(peak >= BUDGET_BYTES / 4, `only ${peak} bytes were counted`);
    assert.ok(peak <= BUDGET_BYTES + MESSAGE_BYTES, `${peak} bytes were held`);
    const url = `${pulse.url}/api/v1/subscribe/big?from=earliest`;
    let reader = await EventReader.open(url);
    for (; reader.status === 503; reader = await EventReader.open(url)) await sleep(200);
    t.after(() => reader.close());
    await reader.wait(MESSAGES);
  });
}

function readSample(text: unknown, name: string): number | undefined {
  const line = String(text)
    .split("\n")
    .find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}
