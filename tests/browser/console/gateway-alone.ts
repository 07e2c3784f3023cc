// The gateway and the browser that tests of its own console share: each test begins without routes.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { Browser } from "playwright-core";
import { startChromium } from "@platform/kernel/testing";
import {
  runtimes,
  startGate,
  type GateProcess,
} from "../../../services/gate/test/fixture/gate-process.ts";
import { openConsole, type ConsolePage, type Look } from "./chromium.ts";

const TOKEN = "operator-token";

/** A gateway with a console. */
export interface Gateway extends GateProcess {
  url: string;
  ports: Record<string, number>;
}

interface Shared {
  gate: Gateway;
  browser: Browser;
}

const ends: (() => unknown)[] = [];
let shared: Promise<Shared> | undefined;

/** The gateway, without routes. The first call starts it. */
export async function joinGateway(): Promise<Gateway> {
  const { gate } = await share();
  for (const { host = "", prefix, methods = [] } of await readRoutes(gate)) {
    const query = new URLSearchParams({ prefix, host, methods: methods.join() });
    await ask(gate, "DELETE", `/routes?${query.toString()}`);
  }
  return gate;
}

/** Ends the gateway and the browser, in an `after` that follows those of all modules. */
export async function endGateway(): Promise<void> {
  await (await shared)?.browser.close();
  for (const end of ends.reverse()) await end();
}

/** Starts a gateway with a configuration of its own, until the test ends. */
export function startOwnGateway(
  t: Pick<TestContext, "after">,
  config: Record<string, unknown>,
): Promise<Gateway> {
  const env = { PLATFORM_GATE_AUTH_TOKEN: TOKEN, PLATFORM_GATE_CONSOLE_ADDR: "127.0.0.1:0" };
  return startGate(t, { runtime: runtimes[0]!, config, env });
}

/** Opens a path of a gateway's console. */
export async function openGateway(
  t: TestContext,
  gate: Gateway,
  look: Look,
  path: string,
): Promise<ConsolePage> {
  const { browser } = await share();
  const url = `http://localhost:${gate.ports["console"]}`;
  return openConsole(t, browser, { url, token: TOKEN, look, path });
}

/** Sends a request to the gateway's API. */
export async function ask(
  gate: Gateway,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const answer = await fetch(`${gate.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return text.startsWith("[") ? (JSON.parse(text) as unknown) : text;
}

/** The settings of a route. */
interface RouteSettings {
  prefix: string;
  host?: string;
  methods?: string[];
  [setting: string]: unknown;
}

/** The settings of the routes, without their status. */
export async function readRoutes(gate: Gateway): Promise<RouteSettings[]> {
  const routes = (await ask(gate, "GET", "/routes")) as RouteSettings[];
  return routes.map(({ status: _status, ...settings }) => settings);
}

function share(): Promise<Shared> {
  const start = async (): Promise<Shared> => {
    const stage = { after: (end?: () => unknown) => void (end && ends.push(end)) };
    const [gate, browser] = await Promise.all([
      startOwnGateway(stage as Pick<TestContext, "after">, {}),
      startChromium(),
    ]);
    return { gate, browser };
  };
  shared ??= start();
  return shared;
}
