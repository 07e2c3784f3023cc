// Subscribers that do not read: what waits for all of them together is bounded, and others get their messages.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { EventReader, startPulseProcess } from "../fixture/pulse-process.ts";

const BUDGET_BYTES = 16 * 1_048_576;
const PAYLOAD = "a".repeat(900_000);

const streams = {
  "server-sent events": "GET /api/v1/subscribe/big?from=earliest HTTP/1.1",
  "pipelined reads": "GET /api/v1/tail?topic=big&limit=100 HTTP/1.1\r\nX: y",
};

for (const [name, head] of Object.entries(streams)) {
  test(`slow readers of ${name} share one budget`, { timeout: 90_000 }, async (t) => {
    const pulse = await startPulseProcess(t, {
      PLATFORM_PULSE_UNSENT_BYTES_MAX: String(BUDGET_BYTES),
      PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0",
    });
    for (let at = 0; at < 10; at++) {
      const { status } = await pulse.publish({ topic: "big", payload: PAYLOAD });
      assert.equal(status, 200);
    }
    const count = name === "pipelined reads" ? 20 : 1;
    for (let at = 0; at < 100; at++) {
      const socket = connect({ port: pulse.port, host: "127.0.0.1" });
      socket.on("error", () => undefined);
      socket.write(`${head}\r\nHost: 127.0.0.1:${pulse.port}\r\n\r\n`.repeat(count));
      t.after(() => socket.destroy());
    }
    let peak = 0;
    for (let dropped = 0; dropped === 0; await sleep(50)) {
      const { body } = await pulse.get("/metrics");
      peak = Math.max(peak, readSample(body, "platform_http_unsent_bytes") ?? 0);
      dropped = readSample(body, 'platform_http_clients_dropped_total{reason="over_budget"}') ?? 0;
    }
    // The last answer that was begun may go beyond.
    assert.ok(peak < BUDGET_BYTES + 12_000_000, `${peak} bytes were held`);
    const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/big?from=earliest`);
    t.after(() => reader.close());
    await reader.wait(10);
  });
}

function readSample(text: unknown, name: string): number | undefined {
  const line = String(text)
    .split("\n")
    .find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}
