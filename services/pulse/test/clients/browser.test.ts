// A page in Chromium that publishes and follows a topic, from another origin than the broker's.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:http";
import { test } from "node:test";
import { chromiumSkip, findFreePort, startChromium } from "@platform/kernel/testing";
import { startPulseProcess } from "../fixture/pulse-process.ts";

const token = "operator-token";

const pageScript = (broker: string) => `(() => {
  const query = "?access_token=${token}";
  window.events = [];
  window.frames2 = [];
  window.source = new EventSource("${broker}/api/v1/subscribe/page" + query);
  window.source.onmessage = (event) => window.events.push(JSON.parse(event.data).payload);
  window.socket = new WebSocket("${broker.replace("http", "ws")}/ws/subscribe/page" + query);
  window.socket.onmessage = (event) => window.frames2.push(JSON.parse(event.data).payload);
  window.publish = async (payload) => {
    const headers = { Authorization: "Bearer ${token}", "Content-Type": "application/json" };
    const body = JSON.stringify({ topic: "page", payload });
    return (await fetch("${broker}/api/v1/publish", { method: "POST", headers, body })).status;
  };
  const opened = (target) => new Promise((resolve) => target.addEventListener("open", resolve));
  return Promise.all([opened(window.source), opened(window.socket)]).then(() => "open");
})()`;

test(
  "a page publishes, follows by EventSource and WebSocket, and misses nothing when the broker is killed",
  { skip: chromiumSkip },
  async (t) => {
    const page = createServer((_request, response) => {
      response.setHeader("Content-Type", "text/html");
      response.end("<!doctype html><title>page</title>");
    }).listen(0, "127.0.0.1");
    t.after(() => page.close());
    await once(page, "listening");
    const origin = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
    const pulse = await startPulseProcess(t, {
      PLATFORM_PULSE_TOKEN: token,
      PLATFORM_PULSE_HTTP_ADDR: `127.0.0.1:${await findFreePort()}`,
      PLATFORM_PULSE_CORS_ORIGINS: JSON.stringify([origin]),
    });
    const browser = await startChromium();
    t.after(() => browser.close());
    t.diagnostic(`Chromium ${browser.version()}`);
    const tab = await browser.newPage();
    await tab.goto(origin);
    const run = (script: string) => tab.evaluate(script);
    assert.equal(await run(pageScript(pulse.url)), "open");
    for (const payload of ["1", "2", "3"]) {
      assert.equal(await run(`publish("${payload}")`), 200);
    }
    await tab.waitForFunction("events.length >= 3 && frames2.length >= 3");
    assert.deepEqual(await run("[events, frames2]"), [
      ["1", "2", "3"],
      ["1", "2", "3"],
    ]);
    await pulse.kill();
    await pulse.start();
    // Published before EventSource has tried again: it has to ask for what it missed.
    for (const payload of ["4", "5"]) {
      assert.equal((await pulse.publish({ topic: "page", payload })).status, 200);
    }
    await tab.waitForFunction("events.length >= 5", undefined, { timeout: 30_000 });
    assert.deepEqual(await run("events"), ["1", "2", "3", "4", "5"]);
  },
);
