// A server that answers like a broken store.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { S3Client, type S3ClientOptions } from "../../src/index.ts";

/** Answers a request whose body was read. */
export type Answer = (
  response: ServerResponse,
  request: IncomingMessage,
  body: Buffer,
  count: number,
) => void;

/** Starts a server and a client of it, which end with the test. `requests` are the methods and targets received. */
export async function startLyingServer(
  t: TestContext,
  answer: Answer,
  options: Partial<S3ClientOptions> = {},
): Promise<{ client: S3Client; requests: string[]; sockets: () => number }> {
  const requests: string[] = [];
  const sockets = new Set<unknown>();
  const server = createServer((request, response) => {
    sockets.add(request.socket);
    requests.push(`${request.method} ${request.url}`);
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => answer(response, request, Buffer.concat(pieces), requests.length));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const client = new S3Client({
    endpoint: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    region: "us-east-1",
    bucket: "cold",
    credentials: () => ({ accessKey: "key", secretKey: "secret-of-the-key" }),
    attemptsMax: 1,
    ...options,
  });
  t.after(() => {
    client.close();
    server.closeAllConnections();
    server.close();
  });
  return { client, requests, sockets: () => sockets.size };
}

/** An error document. */
export function errorDocument(code: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>m &amp; n</Message></Error>`;
}
