// Findings for the operator after an upgrade, from the folder of a stopped broker.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findOperatorTopics } from "../src/upgrade-check.ts";
import { startPulseHere } from "./fixture/pulse-here.ts";
import { makeToken, startFeed } from "./fixture/tokens.ts";

test("the operator's topics are found, those of tenants and the broker's own are not", async (t) => {
  const feed = await startFeed(t);
  const pulse = await startPulseHere(t, { ...feed.env, PLATFORM_PULSE_TOKEN: "operator-token" });
  const publish = async (topic: string, token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    const { status } = await pulse.post("/api/v1/publish", { topic, payload: "x" }, headers);
    assert.equal(status, 200);
  };
  await publish("sensors", "operator-token");
  await publish("alarms", "operator-token");
  await publish("orders", makeToken({ scope: "pulse:publish", tenant: "shop" }));
  await pulse.stop();
  const place = { data_dir: pulse.folder, wal_path: "queue.wal" };
  assert.deepEqual(await findOperatorTopics(place), ["alarms", "sensors"]);
  assert.deepEqual(await findOperatorTopics({ ...place, wal_path: "none" }), []);
});
