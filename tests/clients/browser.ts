// A browser that loads a page through the gateway.
import assert from "node:assert/strict";
import { startChromium } from "@platform/kernel/testing";
import { readProgramVersion } from "../stage/program.ts";
import type { RealClient } from "./client.ts";

interface PageReport {
  echoed: { method: string; bodyBytes: number };
  eventIds: string[];
  message: string;
}

const chromium: RealClient = {
  name: "Chromium",
  side: "in front",
  debianPackage: "chromium-headless-shell",
  readVersion: () => readProgramVersion("chromium-headless-shell", ["--version", "--no-sandbox"]),
  shows: "page, `fetch` upload, EventSource, WebSocket",
  exercise: async ({ gateway }) => {
    const browser = await startChromium();
    try {
      const page = await browser.newPage();
      const response = await page.goto(`${gateway.url}/short`);
      assert.equal(response?.status(), 200);
      const report = (await page.evaluate(PAGE_SCRIPT)) as PageReport;
      assert.deepEqual(
        [report.echoed.method, report.echoed.bodyBytes, report.eventIds, report.message],
        ["POST", 300_000, ["1", "2", "3"], "from the page"],
      );
    } finally {
      await browser.close();
    }
  },
};

/** Browsers, in the order of the table. */
export const BROWSERS: readonly RealClient[] = [chromium];

const PAGE_SCRIPT = `(async () => {
  const posted = await fetch("/echo", { method: "POST", body: "x".repeat(300000) });
  const echoed = await posted.json();
  const eventIds = await new Promise((resolve, reject) => {
    const source = new EventSource("/events?ms=30");
    const ids = [];
    source.onerror = () => reject(new Error("EventSource failed"));
    source.onmessage = (event) => {
      if (ids.push(event.lastEventId) < 3) return;
      source.close();
      resolve(ids);
    };
  });
  const message = await new Promise((resolve, reject) => {
    const socket = new WebSocket(location.origin.replace("http", "ws") + "/socket");
    socket.onerror = () => reject(new Error("WebSocket failed"));
    socket.onopen = () => socket.send("from the page");
    socket.onmessage = (event) => { socket.close(); resolve(event.data); };
  });
  return { echoed, eventIds, message };
})()`;
