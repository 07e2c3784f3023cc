// One message in by HTTP, out by everything that the HTTP face offers.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";
import { test } from "node:test";
import { WebSocket } from "ws";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";

const { version } = createRequire(import.meta.url)("ws/package.json") as { version: string };

const contents = [
  { name: "text", message: { payload: "hëllo", key: "k", headers: { a: "1" }, priority: 2 } },
  { name: "bytes", message: { payload: "/wD+", encoding: "base64" } },
  { name: "nothing", message: { payload: "" } },
];

for (const { name, message } of contents) {
  test(`${name} published over HTTP comes the same by tail, SSE and WebSocket, alone and in a group`, async (t) => {
    t.diagnostic(`ws ${version}`);
    const pulse = await startPulseHere(t);
    const sse = await EventReader.open(`${pulse.url}/api/v1/subscribe/m`);
    const member = await EventReader.open(`${pulse.url}/api/v1/subscribe/m?group=g`);
    const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/ws/subscribe/m`);
    await once(socket, "open");
    const framed = once(socket, "message") as Promise<[Buffer]>;
    const published = await pulse.publish({ topic: "m", message_id: "id", ...message });
    assert.equal(published.status, 200);
    const { messages } = (await pulse.get("/api/v1/tail?topic=m")).body;
    const [frame] = await framed;
    const expected = {
      topic: "m",
      partition: 0,
      offset: 0,
      message_id: "id",
      key: message.key ?? null,
      payload: message.payload,
      ...(message.encoding === undefined ? {} : { encoding: message.encoding }),
      priority: message.priority ?? 0,
    };
    const seen = {
      tail: messages[0],
      sse: (await sse.wait(1))[0]!.data,
      group: (await member.wait(1))[0]!.data,
      socket: JSON.parse(frame.toString()) as unknown,
    };
    for (const [face, got] of Object.entries(seen)) {
      assert.partialDeepStrictEqual(got, expected, face);
      assert.deepEqual(got, seen.tail, face);
    }
    assert.equal(messages[0].headers.a, message.headers?.a);
    socket.terminate();
    sse.close();
    member.close();
  });
}
