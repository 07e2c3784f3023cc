// A mail service that accepts messages and stores them for tests.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const ROUND_MS = 50;
const ROUNDS_MAX = 400;

/** A message that was sent. */
export interface Letter {
  to: string;
  text: string;
}

/** The running mail service. */
export interface PostBox {
  url: string;
  letters: Letter[];
  /** Waits for a message to this address that satisfies `isWanted`; returns its text. */
  wait(to: string, isWanted?: (text: string) => boolean): Promise<string>;
  close(): void;
}

/** Opens one. */
export async function openPostBox(): Promise<PostBox> {
  const letters: Letter[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      letters.push(JSON.parse(text) as Letter);
      response.writeHead(200, { "Content-Type": "application/json" }).end('{"status":"sent"}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    letters,
    wait: async (to, isWanted = () => true) => {
      for (let round = 0; round < ROUNDS_MAX; round += 1) {
        const letter = letters.find((item) => item.to === to && isWanted(item.text));
        if (letter !== undefined) return letter.text;
        await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
      }
      throw new Error(`no message to ${to}`);
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The link in a message. */
export function findLink(text: string): string {
  return /http:\S+/.exec(text)![0];
}
