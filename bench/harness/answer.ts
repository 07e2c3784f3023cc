// Sends a single request to check that a server's responses are correct before it is measured.
import { connect } from "node:net";

const ANSWER_BYTES_MAX = 8 * 2 ** 20;
const ANSWER_TIMEOUT_MS = 5_000;

/** A response as received. */
export interface Answer {
  status: number;
  head: string;
  bodyBytes: number;
  /** Total of head, body and framing. */
  wireBytes: number;
}

/** The expected response; otherwise the measurement is invalid. */
export interface AnswerExpectation {
  status: number;
  /** Undefined if proxies add to the body. */
  bodyBytes: number | undefined;
}

/** Sends one GET, or POST of JSON, on a new connection, as wrk would, and reads the complete response. */
export function fetchAnswer(
  url: string,
  headers: Record<string, string> = {},
  json?: string,
): Promise<Answer> {
  const { hostname, port, host, pathname, search } = new URL(url);
  const ofBody =
    json === undefined
      ? {}
      : { "Content-Type": "application/json", "Content-Length": String(Buffer.byteLength(json)) };
  const fields = Object.entries({ Host: host, ...headers, ...ofBody });
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const method = json === undefined ? "GET" : "POST";
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const socket = connect(Number(port), hostname);
    const settle = (result: Answer | Error): void => {
      socket.destroy();
      if (result instanceof Error) reject(result);
      else resolve(result);
    };
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => settle(new Error(`${url}: no complete answer`)));
    socket.on("error", settle);
    socket.on("close", () => settle(new Error(`${url}: closed before the answer was complete`)));
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > ANSWER_BYTES_MAX) return settle(new Error(`${url}: answer too large`));
      const answer = readAnswer(Buffer.concat(chunks));
      if (answer !== undefined) settle(answer);
    });
    socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${head}\r\n${json ?? ""}`);
  });
}

/** Describes how a response differs from the expected one; undefined if it matches. */
export function judgeAnswer(answer: Answer, expected: AnswerExpectation): string | undefined {
  if (answer.status !== expected.status) return `status ${answer.status}, not ${expected.status}`;
  if (expected.bodyBytes !== undefined && answer.bodyBytes !== expected.bodyBytes) {
    return `${answer.bodyBytes} body bytes, not ${expected.bodyBytes}`;
  }
  return undefined;
}

function readAnswer(bytes: Buffer): Answer | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const head = bytes.toString("latin1", 0, headEnd);
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? 0);
  const body = bytes.subarray(headEnd + 4);
  const declared = /^content-length:\s*(\d+)/im.exec(head)?.[1];
  if (declared !== undefined) {
    if (body.length < Number(declared)) return undefined;
    return { status, head, bodyBytes: body.length, wireBytes: bytes.length };
  }
  if (!body.subarray(-5).equals(Buffer.from("0\r\n\r\n"))) return undefined;
  return { status, head, bodyBytes: countChunkedBytes(body), wireBytes: bytes.length };
}

function countChunkedBytes(body: Buffer): number {
  let total = 0;
  let offset = 0;
  for (;;) {
    const lineEnd = body.indexOf("\r\n", offset);
    const size = Number.parseInt(body.toString("latin1", offset, lineEnd), 16);
    if (!(size > 0)) return total;
    total += size;
    offset = lineEnd + 2 + size + 2;
  }
}
