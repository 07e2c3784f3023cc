// A secret service for tests, with the answers of OpenBao's KV v2 engine and of its token endpoints.
import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";

/** A service with the mount `secret`. */
export interface TestSecretService {
  url: string;
  /** Requests so far, as method, path and namespace. */
  requests: string[];
  /** Writes the next version of a secret of the mount `secret`. */
  write: (path: string, data: Record<string, unknown>) => void;
  /** Destroys a version of a secret. */
  destroy: (path: string, version: number) => void;
  /** Replaces all answers of the API from now on; undefined ends it. */
  fail: (answer: { status: number; body: string } | undefined) => void;
  /** The token that is accepted from now on. */
  accept: (token: string) => void;
  /** The remaining life of the token from now on, in seconds, and whether it can be renewed. */
  live: (ttl: number, isRenewable: boolean) => void;
  /** Delays all answers from now on, in ms. */
  delay: (ms: number) => void;
  close: () => Promise<void>;
}

/** Starts the service at 127.0.0.1; it accepts one token. `port` 0 chooses a free one; `tls` makes it speak TLS. */
export async function startSecretService(
  token: string,
  port = 0,
  tls?: { cert: string; key: string },
): Promise<TestSecretService> {
  // The versions of each secret; undefined if destroyed.
  const secrets = new Map<string, (Record<string, unknown> | undefined)[]>();
  const requests: string[] = [];
  let failure: { status: number; body: string } | undefined;
  let accepted = token;
  let delayMs = 0;
  let life = { ttl: 2_764_790, renewable: true };
  const listener: RequestListener = (incoming, outgoing) => {
    if (delayMs > 0) setTimeout(respond, delayMs, incoming, outgoing);
    else respond(incoming, outgoing);
  };
  const respond: RequestListener = (incoming, outgoing) => {
    const { pathname, searchParams } = new URL(incoming.url ?? "/", "http://service");
    const namespace = String(incoming.headers["x-vault-namespace"] ?? "");
    requests.push(`${incoming.method} ${pathname} ${namespace}`.trim());
    if (failure !== undefined) {
      outgoing.writeHead(failure.status).end(failure.body);
      return;
    }
    if (incoming.headers["x-vault-token"] !== accepted) {
      answer(outgoing, 403, { errors: ["permission denied"] });
      return;
    }
    if (pathname === "/v1/auth/token/lookup-self") answer(outgoing, 200, { data: life });
    else answerRequest(outgoing, pathname, searchParams, secrets);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await once(server.listen(port, "127.0.0.1"), "listening");
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    write: (path, data) => {
      secrets.set(path, [...(secrets.get(path) ?? []), data]);
    },
    destroy: (path, version) => {
      secrets.get(path)![version - 1] = undefined;
    },
    fail: (given) => (failure = given),
    accept: (given) => (accepted = given),
    live: (ttl, renewable) => (life = { ttl, renewable }),
    delay: (ms) => (delayMs = ms),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answer(outgoing: ServerResponse, status: number, body: object): void {
  outgoing.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

type Secrets = ReadonlyMap<string, readonly (Record<string, unknown> | undefined)[]>;

function answerRequest(
  outgoing: ServerResponse,
  pathname: string,
  searchParams: URLSearchParams,
  secrets: Secrets,
): void {
  const [, kind = "", path = ""] = /^\/v1\/secret\/(data|metadata)\/(.+)$/.exec(pathname) ?? [];
  if (pathname === "/v1/auth/token/renew-self") {
    answer(outgoing, 200, { auth: { renewable: true, lease_duration: 2_764_800 } });
  } else if (kind === "metadata" && searchParams.get("list") === "true") {
    const keys = [...secrets.keys()].flatMap((key) =>
      key.startsWith(`${path}/`) ? [key.slice(path.length + 1)] : [],
    );
    if (keys.length === 0) answer(outgoing, 404, { errors: [] });
    else answer(outgoing, 200, { data: { keys } });
  } else if (kind === "data" && secrets.has(path)) {
    const versions = secrets.get(path)!;
    const version = Number(searchParams.get("version") ?? versions.length);
    const data = versions[version - 1];
    const metadata = { version, created_time: "2026-11-30T00:00:00Z", destroyed: !data };
    if (data === undefined) answer(outgoing, 404, { data: { data: null, metadata } });
    else answer(outgoing, 200, { data: { data, metadata } });
  } else answer(outgoing, 404, { errors: [] });
}
