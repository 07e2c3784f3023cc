// A mail service that stores the messages it receives.
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** A message. */
export interface Mail {
  to: string;
  subject?: string;
  text: string;
  channel?: string;
}

/** Messages in order of arrival. */
export interface Mailbox {
  url: string;
  mails: Mail[];
  /** Header fields of each message's request. */
  headers: IncomingHttpHeaders[];
  /** Resolves when this number of messages has arrived; background messages take a moment. */
  waitFor(count: number): Promise<void>;
  close(): void;
}

/** Starts it. */
export async function startMailbox(): Promise<Mailbox> {
  const mails: Mail[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      headers.push(request.headers);
      mails.push(JSON.parse(text) as Mail);
      response.writeHead(200, { "Content-Type": "application/json" }).end('{"status":"sent"}');
    });
  }).listen(0, "127.0.0.1");
  // A failed test does not close it, but its file must still end.
  server.unref().on("connection", (socket) => socket.unref());
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    mails,
    headers,
    waitFor: async (count) => {
      const deadline = Date.now() + 20_000;
      while (mails.length < count) {
        assert.ok(Date.now() < deadline, `only ${mails.length} of ${count} messages came`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    close: () => server.close(),
  };
}

/** The six digits of the last message. */
export function readCode({ mails }: Mailbox): string {
  return /\d{6}/.exec(mails.at(-1)!.text)![0];
}

/** The token of the last message's link. */
export function readLink({ mails }: Mailbox): string {
  return /token=([\w-]+)/.exec(mails.at(-1)!.text)![1]!;
}
