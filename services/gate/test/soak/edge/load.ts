// The clients of the soak: requests over TLS with the outcomes that they may have, and the log of those that failed.
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { Agent, request } from "node:https";
import type { TLSSocket } from "node:tls";
import type { Expectation, Outages, Tally } from "../tally.ts";
import { waits } from "../scene.ts";

const PAUSE_MS = 100;

/** Kinds of connections: a handshake for each request, a resumed session for each, or one for all of them. */
const AGENTS = {
  fresh: { keepAlive: false, maxCachedSessions: 0 },
  resumed: { keepAlive: false },
  kept: { keepAlive: true },
};

/** One client: its requests go to a name and a path. */
export interface Ask {
  name: string;
  path: string;
  connection: keyof typeof AGENTS;
  expected: Expectation;
}

/** Options that all clients share. */
export interface LoadOptions {
  port: number;
  /** The authority of automatic certificates, in PEM. */
  ca: string;
  tally: Tally;
  over: AbortSignal;
  /** File of failed requests, one JSON object a line. */
  logPath: string;
  /** Serial numbers of the certificates that a name had. */
  serials: ReadonlyMap<string, Set<string>>;
}

/** Names with automatic certificates. */
export const ACME_NAMES = ["one.test", "two.test"];
/** The name whose certificate is a secret. */
export const SECRET_NAME = "three.test";

/** The requests, and what may come of them. */
export function listAsks(empty: Outages): readonly Ask[] {
  const always = { always: ["200"] };
  const unlessEmpty = { always: ["200"], duringOutage: ["503"], outages: empty };
  return [...ACME_NAMES, SECRET_NAME].flatMap((name): Ask[] => [
    { name, path: "/stable", connection: "fresh", expected: always },
    { name, path: "/stable", connection: "resumed", expected: always },
    { name, path: "/service", connection: "kept", expected: unlessEmpty },
    { name, path: "/toggled", connection: "kept", expected: { always: ["200", "404", "502"] } },
  ]);
}

/** Repeats a request until the end. */
export async function keepAsking(options: LoadOptions, ask: Ask): Promise<void> {
  const { tally, over, logPath } = options;
  const agent = new Agent({ ...AGENTS[ask.connection], maxSockets: 1 });
  while (await waits(PAUSE_MS, over)) {
    const beganMs = performance.now();
    const { cause, reason } = await send(options, ask, agent);
    const isExplained = tally.add(`${ask.name}${ask.path}`, cause, ask.expected, beganMs);
    if (cause === "200") continue;
    const line = { at: new Date().toISOString(), ...ask, cause, reason, isExplained };
    appendFileSync(logPath, `${JSON.stringify(line)}\n`);
  }
  agent.destroy();
}

/** One request; its status, or `cut` with the reason if it has no whole response. */
async function send(
  { port, ca, serials }: LoadOptions,
  { name, path }: Ask,
  agent: Agent,
): Promise<{ cause: string; reason: string }> {
  const place = { host: "127.0.0.1", port, servername: name, path, headers: { Host: name } };
  // Node verifies authority, name and time; the certificate of the secret signs itself.
  const trust = name === SECRET_NAME ? { rejectUnauthorized: false } : { ca };
  const sent = request({ ...place, ...trust, agent }).end();
  try {
    const [response] = await once(sent, "response");
    const { serialNumber } = (sent.socket as TLSSocket).getPeerCertificate();
    serials.get(name)?.add(serialNumber);
    let text = "";
    for await (const piece of response) text += String(piece);
    const status = String(response.statusCode);
    if (status === "200") return { cause: text === "served" ? "200" : "cut", reason: text };
    return { cause: status, reason: text };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { cause: "cut", reason: `${code ?? ""} ${message}` };
  }
}
