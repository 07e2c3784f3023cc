// The open-loop load, run as a child: `pace-generator.ts URL CONNECTIONS RATE SECONDS [HOST [JSON]]`. With a JSON body,
// requests are POST.
// wrk has no fixed rate, and h2load's clients all send at the same tick. Requests are due at even
// intervals; latency is measured from the time a request was due, so waiting for a free connection
// counts. A late tick of this process does not count, because the server did not cause it.
import { connect, type Socket } from "node:net";
import { takePercentile } from "./statistics.ts";

const QUEUE_MAX = 100_000;

interface Connection {
  socket: Socket;
  sentAt: number;
  missingBytes: number;
  pending: Buffer;
}

/** The JSON line that the generator prints. */
export interface PaceSummary {
  requests: number;
  failed: number;
  /** Requests without a response at the end, and requests dropped because the queue was full. */
  unanswered: number;
  p50Us: number;
  p99Us: number;
}

if (import.meta.main) {
  const [url = "", connections = "32", rate = "1000", seconds = "5", host, json] =
    process.argv.slice(2);
  const summary = await runPace(
    new URL(url),
    encodeRequest(new URL(url), host, json),
    Number(connections),
    Number(rate),
    Number(seconds),
  );
  console.log(JSON.stringify(summary));
  process.exit(0);
}

async function runPace(
  url: URL,
  request: Buffer,
  connections: number,
  ratePerS: number,
  seconds: number,
): Promise<PaceSummary> {
  const latenciesUs: number[] = [];
  const due: number[] = [];
  const idle: Connection[] = [];
  let failed = 0;
  let dropped = 0;

  const send = (connection: Connection, dueAt: number): void => {
    connection.sentAt = dueAt;
    connection.socket.write(request);
  };
  const finish = (connection: Connection): void => {
    latenciesUs.push((performance.now() - connection.sentAt) * 1000);
    const next = due.shift();
    if (next === undefined) idle.push(connection);
    else send(connection, next);
  };
  for (let index = 0; index < connections; index += 1) {
    idle.push(await openConnection(url, finish, () => (failed += 1)));
  }

  const startedAt = performance.now();
  let sent = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const now = performance.now();
      if (now - startedAt >= seconds * 1000) {
        clearInterval(timer);
        setTimeout(resolve, 200);
        return;
      }
      const owed = Math.floor(((now - startedAt) * ratePerS) / 1000) - sent;
      sent += owed;
      for (let index = 0; index < owed; index += 1) {
        const connection = idle.shift();
        if (connection !== undefined) send(connection, now);
        else if (due.length < QUEUE_MAX) due.push(now);
        else dropped += 1;
      }
    }, 1);
  });
  return {
    requests: latenciesUs.length,
    failed,
    unanswered: due.length + dropped,
    p50Us: takePercentile(latenciesUs, 0.5),
    p99Us: takePercentile(latenciesUs, 0.99),
  };
}

function encodeRequest({ pathname, host }: URL, hostHeader = host, json?: string): Buffer {
  const content =
    json === undefined
      ? "\r\n"
      : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`;
  const method = json === undefined ? "GET" : "POST";
  return Buffer.from(`${method} ${pathname} HTTP/1.1\r\nHost: ${hostHeader}\r\n${content}`);
}

function openConnection(
  url: URL,
  finish: (connection: Connection) => void,
  fail: () => void,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname);
    const connection = { socket, sentAt: 0, missingBytes: -1, pending: Buffer.alloc(0) };
    socket.setNoDelay(true);
    socket.on("connect", () => resolve(connection));
    socket.on("error", reject);
    socket.on("close", fail);
    socket.on("data", (chunk: Buffer) => {
      if (!readAnswerPart(connection, chunk)) return;
      connection.missingBytes = -1;
      finish(connection);
    });
  });
}

// True if the response is complete. Supports only responses with a Content-Length; the cases use no others.
function readAnswerPart(connection: Connection, chunk: Buffer): boolean {
  if (connection.missingBytes >= 0) {
    connection.missingBytes -= chunk.length;
    return connection.missingBytes <= 0;
  }
  const bytes =
    connection.pending.length === 0 ? chunk : Buffer.concat([connection.pending, chunk]);
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) {
    connection.pending = bytes;
    return false;
  }
  connection.pending = Buffer.alloc(0);
  const head = bytes.toString("latin1", 0, headEnd);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (!head.startsWith("HTTP/1.1 200") || length === undefined) {
    throw new Error(`unexpected answer: ${head}`);
  }
  connection.missingBytes = headEnd + 4 + Number(length) - bytes.length;
  return connection.missingBytes <= 0;
}
