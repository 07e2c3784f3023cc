// A secret service for tests, with the answers of OpenBao's KV v2 engine and of its token endpoints.
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A service with the mount `secret`. */
export interface TestSecretService {
  url: string;
  /** Requests so far, as method, path and namespace. */
  requests: string[];
  /** Writes the next version of a secret of the mount `secret`. */
  write: (path: string, data: Record<string, unknown>) => void;
  /** Replaces all answers of the API from now on; undefined ends it. */
  fail: (answer: { status: number; body: string } | undefined) => void;
  close: () => Promise<void>;
}

/** Starts the service at 127.0.0.1; it accepts one token. `port` 0 chooses a free one. */
export async function startSecretService(token: string, port = 0): Promise<TestSecretService> {
  const secrets = new Map<string, { version: number; data: Record<string, unknown> }>();
  const requests: string[] = [];
  let failure: { status: number; body: string } | undefined;
  const server = createServer((incoming, outgoing) => {
    const { pathname, searchParams } = new URL(incoming.url ?? "/", "http://service");
    const namespace = String(incoming.headers["x-vault-namespace"] ?? "");
    requests.push(`${incoming.method} ${pathname} ${namespace}`.trim());
    if (failure !== undefined) {
      outgoing.writeHead(failure.status).end(failure.body);
      return;
    }
    if (incoming.headers["x-vault-token"] !== token) {
      answer(outgoing, 403, { errors: ["permission denied"] });
      return;
    }
    const [, kind = "", path = ""] = /^\/v1\/secret\/(data|metadata)\/(.+)$/.exec(pathname) ?? [];
    if (pathname === "/v1/auth/token/lookup-self") {
      answer(outgoing, 200, { data: { renewable: true, ttl: 2_764_790 } });
    } else if (pathname === "/v1/auth/token/renew-self") {
      answer(outgoing, 200, { auth: { renewable: true, lease_duration: 2_764_800 } });
    } else if (kind === "metadata" && searchParams.get("list") === "true") {
      const keys = [...secrets.keys()].flatMap((key) =>
        key.startsWith(`${path}/`) ? [key.slice(path.length + 1)] : [],
      );
      if (keys.length === 0) answer(outgoing, 404, { errors: [] });
      else answer(outgoing, 200, { data: { keys } });
    } else if (kind === "data" && secrets.has(path)) {
      const { version, data } = secrets.get(path)!;
      const metadata = { version, created_time: "2026-11-30T00:00:00Z", destroyed: false };
      answer(outgoing, 200, { data: { data, metadata } });
    } else answer(outgoing, 404, { errors: [] });
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    write: (path, data) => {
      secrets.set(path, { version: (secrets.get(path)?.version ?? 0) + 1, data });
    },
    fail: (given) => (failure = given),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answer(outgoing: ServerResponse, status: number, body: object): void {
  outgoing.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}
