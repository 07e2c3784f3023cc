// The clients: requests with the outcomes that they may have, clients that leave, and streams that no reload may end.
import { once } from "node:events";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { waitFor } from "@platform/testing/wait";
import type { OidcIssuer } from "../fixture/oidc-issuer.ts";
import { type Scene, waits } from "./scene.ts";
import type { Expectation, Outages } from "./tally.ts";

const PAUSE_MS = 20;
/** Longer than any response takes on a busy machine: a request without one is reported, instead of a test that never ends. */
const SILENT_MS = 60_000;
const TOKEN_KEPT_MS = 5_000;
/** Paths of the cached route. */
export const CACHED_PATHS = 40;

/** One kind of request. */
export interface Ask {
  route: string;
  path?: () => string;
  method?: string;
  body?: string;
  headers?: () => Record<string, string>;
  expected: Expectation;
}

/** The requests, and what may come of them. */
export function listAsks(
  issuer: OidcIssuer,
  outages: Record<"pair" | "single", Outages>,
): readonly Ask[] {
  let sent = 0;
  const user = () => ({ sub: "ada", exp: Math.floor(Date.now() / 1_000) + 60 });
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
  const onlyWhileDead = {
    always: ["200"],
    duringOutage: ["502", "503", "cut"],
    outages: outages.single,
  };
  const cutOnly = { always: ["200"], duringOutage: ["cut"], outages: outages.pair };
  const refused = { always: ["401"] };
  // A new token for each request would fill the memory of verified tokens, which is bounded, for minutes.
  let token = { text: "", atMs: -Infinity };
  const signKept = (): string => {
    const atMs = performance.now();
    if (atMs - token.atMs > TOKEN_KEPT_MS) token = { text: issuer.sign(user()), atMs };
    return token.text;
  };
  const wrong = [
    () => issuer.sign({ ...user(), exp: 1_000 }),
    () => issuer.sign(user(), { kid: "unknown" }),
    () => issuer.sign(user(), { alg: "none" }),
    () => `${issuer.sign(user()).slice(0, -8)}AAAAAAAA`,
  ];
  return [
    { route: "pair", expected: { always: ["200"] } },
    { route: "pair", path: () => "/slow", expected: { always: ["200"] } },
    { route: "pair", path: () => "/stream", expected: cutOnly },
    { route: "single", expected: onlyWhileDead },
    {
      route: "cache",
      path: () => `/cached/${sent++ % CACHED_PATHS}`,
      expected: { always: ["200"] },
    },
    {
      route: "token",
      headers: () => bearer(signKept()),
      expected: { always: ["200"] },
    },
    { route: "token", headers: () => bearer(wrong[sent++ % wrong.length]!()), expected: refused },
    { route: "limited", expected: { always: ["200", "429"] } },
    { route: "toggled", expected: { always: ["200", "502"] } },
    { route: "stable", method: "POST", body: "content", expected: { always: ["200"] } },
  ];
}

/** One request; its status, `cut` if its response is not whole, or `silent` if it did not end. */
export async function send(port: number, agent: Agent, ask: Ask): Promise<string> {
  const { route, path, method = "GET", body, headers } = ask;
  const signal = AbortSignal.timeout(SILENT_MS);
  const sent = request({
    host: "127.0.0.1",
    port,
    path: `/${route}${path?.() ?? "/plain"}`,
    method,
    agent,
    signal,
    headers: { ...headers?.(), ...(body === undefined ? {} : { "Content-Length": body.length }) },
  }).end(body);
  try {
    const [response] = await once(sent, "response");
    let bytes = 0;
    for await (const piece of response) bytes += (piece as Buffer).length;
    const isWhole = response.statusCode !== 200 || body === undefined || bytes === body.length;
    return isWhole ? String(response.statusCode) : "cut";
  } catch {
    return signal.aborted ? "silent" : "cut";
  }
}

export async function keepAsking({ port, tally, over }: Scene, ask: Ask): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  while (!over.aborted) {
    const beganMs = performance.now();
    const cause = await send(port, agent, ask);
    tally.add(ask.route, cause, ask.expected, beganMs);
    await sleep(PAUSE_MS);
  }
  agent.destroy();
}

/** Clients that disconnect in the middle of a response. */
export async function keepLeaving({ port, tally, over }: Scene): Promise<void> {
  while (!over.aborted) {
    const sent = request({ host: "127.0.0.1", port, path: "/stable/stream", agent: false }).end();
    sent.on("error", () => undefined);
    await Promise.race([once(sent, "response"), once(sent, "close")]).catch(() => undefined);
    sent.destroy();
    tally.add("stable", "left", { always: ["left"] }, performance.now());
    await sleep(PAUSE_MS * 2);
  }
}

/** A WebSocket and an event stream, which no reload may end. */
export async function holdStream({ port, url, tally, over }: Scene): Promise<void> {
  const fail = (what: string) => () => {
    if (!over.aborted) tally.add("stable", what, { always: [] }, performance.now());
  };
  const socket = new WebSocket(`${url.replace("http", "ws")}/stable/socket`);
  socket.on("close", fail("socket closed")).on("error", fail("socket failed"));
  await once(socket, "open");
  const events = request({ host: "127.0.0.1", port, path: "/stable/events", agent: false }).end();
  events.on("error", fail("events failed"));
  const [response] = await once(events, "response");
  response.on("data", () => tally.add("stable", "event", { always: ["event"] }, 0));
  response.on("close", fail("events closed"));
  let waiting = 0;
  socket.on("message", () => {
    waiting--;
    tally.add("stable", "message", { always: ["message"] }, 0);
  });
  while (await waits(PAUSE_MS * 10, over)) {
    socket.send("hello");
    waiting++;
    tally.add("stable", "sent", { always: ["sent"] }, 0);
  }
  await waitFor(() => waiting === 0, "the last messages of a WebSocket");
  events.destroy();
  socket.terminate();
}
