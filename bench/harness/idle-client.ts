// Idle keep-alive connections, run as a child: `idle-client.ts URL COUNT`.
// Each connection sends one request, reads the response and stays open. Prints "open N" when all connections are
// open, and "closed N" with the total whenever the server closes one. Exits on SIGTERM.
import { connect } from "node:net";

const OPENING_AT_ONCE_MAX = 64;

if (import.meta.main) {
  const [url = "", count = "0"] = process.argv.slice(2);
  await openConnections(new URL(url), Number(count));
  console.log(`open ${count}`);
  setInterval(() => undefined, 60_000);
}

async function openConnections(url: URL, count: number): Promise<void> {
  let opened = 0;
  let closed = 0;
  const openInTurn = async (): Promise<void> => {
    while (opened < count) {
      opened += 1;
      await openOne(url, () => console.log(`closed ${(closed += 1)}`));
    }
  };
  await Promise.all(Array.from({ length: OPENING_AT_ONCE_MAX }, openInTurn));
}

function openOne(url: URL, onClosed: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname);
    socket.on("error", reject);
    socket.on("close", onClosed);
    socket.on("connect", () =>
      socket.write(`GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`),
    );
    socket.once("data", (chunk) => {
      if (chunk.toString("latin1").startsWith("HTTP/1.1 200")) resolve();
      else reject(new Error(`unexpected answer: ${chunk.toString("latin1")}`));
    });
  });
}
