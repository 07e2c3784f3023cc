// Sessions that outlive their connections.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { RawClient, type Received } from "./client.ts";

async function start(t: TestContext) {
  const pulse = await startPulseHere(t);
  const connect = async (packet: Received) => {
    const client = await RawClient.open(pulse.mqttPort, 5);
    t.after(() => client.socket.destroy());
    return { client, connack: await client.connect(packet) };
  };
  return { pulse, connect };
}

for (const isRestarted of [false, true]) {
  const title = isRestarted ? ", also after a restart of the broker" : "";
  test(`a kept session that is resumed without an expiry delivers its queue, then ends${title}`, async (t) => {
    const { pulse, connect } = await start(t);
    const kept = { clientId: "c", clean: false, properties: { sessionExpiryInterval: 600 } };
    const { client: first } = await connect(kept);
    await first.subscribe("queue/+", { qos: 1 });
    await first.subscribe("exact", { qos: 2 });
    await first.disconnect();
    const { client: publisher } = await connect({ clientId: "p" });
    for (const text of ["1", "2", "3"]) await publisher.publish("queue/a", text);
    await publisher.publish("queue/new", "of a new topic");
    await publisher.publish("exact", "once", { qos: 2 });
    if (isRestarted) {
      await pulse.kill();
      await pulse.start();
    }
    // Section 3.1.2.11.2: if the Session Expiry Interval is absent, the value 0 is used; it counts from the end of the
    // connection. Session Present 1 says that the server has the session, with its queue (section 3.1.3.1).
    const { client: last, connack } = await connect({ clientId: "c", clean: false });
    assert.equal(connack.sessionPresent, true);
    const texts: string[] = [];
    for (let count = 0; count < 5; count++) {
      const { payload, qos, messageId } = await last.next("publish");
      texts.push(String(payload));
      last.send({ cmd: qos === 1 ? "puback" : "pubrec", messageId, reasonCode: 0 });
      if (qos === 1) continue;
      await last.next("pubrel");
      last.send({ cmd: "pubcomp", messageId, reasonCode: 0 });
    }
    assert.deepEqual(texts.toSorted(), ["1", "2", "3", "of a new topic", "once"]);
    await last.expectNothing();
    await last.disconnect();
    const { connack: after } = await connect({ clientId: "c", clean: false });
    assert.equal(after.sessionPresent, false, "it has ended with its connection");
  });
}
