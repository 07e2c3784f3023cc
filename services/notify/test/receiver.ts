// An HTTP server that receives webhook requests, with answers that tests choose.
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** A received request. */
export interface HookRequest {
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests assert on members of JSON documents
  body: any;
}

/** A running server. */
export interface HookServer {
  url: string;
  requests: HookRequest[];
  /** Status of the next answers. */
  status: number;
  /** True if requests are received and not answered. */
  isSilent: boolean;
  /** Closes connections with requests that were not answered. */
  drop(): void;
  close(): Promise<void>;
}

/** Starts a server on a free port. */
export async function startHookServer(): Promise<HookServer> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      if (request.method === "POST") {
        const body: unknown = JSON.parse(text);
        hooks.requests.push({ path: request.url ?? "", headers: request.headers, text, body });
      }
      if (!hooks.isSilent) response.writeHead(hooks.status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const hooks: HookServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    status: 200,
    isSilent: false,
    drop: () => server.closeAllConnections(),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return hooks;
}
