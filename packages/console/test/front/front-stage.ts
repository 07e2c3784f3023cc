// A front in this process, called as its page calls it.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { WebSocket } from "ws";
import type { ServiceId } from "@platform/console/contract";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { createTracer } from "@platform/kernel/trace";
import { startFront, type FrontOptions } from "../../src/front/front.ts";
import {
  createCaller,
  createMovedClock,
  readSetCookie,
  TOKEN,
  writePage,
  type Stage,
} from "../stage.ts";

/** Starts a front of these services; `identity` is the client at an issuer, `more` are further options. */
export async function start(
  t: TestContext,
  targets: readonly { id: ServiceId; url: string }[],
  identity?: FrontOptions["identity"],
  more: Partial<FrontOptions> = {},
) {
  const { clock, advance } = createMovedClock();
  const log: string[] = [];
  const front = await startFront({
    address: { host: "127.0.0.1", port: 0 },
    targets: targets.map(({ id, url }) => ({ id, url: new URL(url) })),
    known: new Map(),
    identity,
    version: "1",
    logger: createLogger({
      service: "console",
      level: "debug",
      format: "json",
      write: (line) => void log.push(line),
    }),
    tracer: createTracer({ ids: createIdSource(), clock }),
    clock,
    pageFolder: writePage(t),
    ...more,
  });
  t.after(() => front.close(0));
  const send = createCaller(front.url, new URL(`http://127.0.0.1:${front.port}`));
  const { host } = new URL(front.url);
  const call: Stage["call"] = (method, path, body, headers) =>
    send(method, path, body, { host, ...headers });
  const signIn = async (service: ServiceId, cookie?: string): Promise<string> => {
    const headers = cookie === undefined ? {} : { cookie };
    const answer = await call("POST", "/console/login", { service, token: TOKEN }, headers);
    assert.equal(answer.status, 200, answer.text);
    return readSetCookie(answer);
  };
  const open = (path: string, headers: Record<string, string>): WebSocket =>
    new WebSocket(`ws://127.0.0.1:${front.port}${path}`, { headers: { host, ...headers } });
  return { ...front, advance, call, host, log, open, signIn };
}
