// An upstream that writes down what reaches it. It shares no code with the parser under test and takes any method.
import { type Server, type Socket, createServer } from "node:net";

/** A request that reached an upstream whole. */
export interface RecordedRequest {
  method: string;
  /** Path and query. */
  target: string;
  body: string;
}

/** A recording upstream on a free loopback port. */
export async function startRecorder(
  recorded: RecordedRequest[],
  open: Set<Socket>,
): Promise<Server> {
  const server = createServer((socket) => {
    open.add(socket);
    let pending = "";
    socket.on("data", (chunk: Buffer) => {
      pending += chunk.toString("latin1");
      for (let taken = takeRequest(pending); taken !== null; taken = takeRequest(pending)) {
        pending = taken.rest;
        recorded.push(taken.request);
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      }
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** Reads the tidy form that proxies write: one length, or chunks; null while it is not whole. */
export function takeRequest(text: string): { request: RecordedRequest; rest: string } | null {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd === -1) return null;
  const head = text.slice(0, headEnd);
  const rest = text.slice(headEnd + 4);
  const [method = "", target = ""] = head.split(" ", 2);
  if (/\r\ntransfer-encoding:/i.test(head)) return takeChunks(rest, { method, target, body: "" });
  const length = Number(/\r\ncontent-length:[ \t]*(\d+)/i.exec(head)?.[1] ?? 0);
  if (rest.length < length) return null;
  return { request: { method, target, body: rest.slice(0, length) }, rest: rest.slice(length) };
}

function takeChunks(
  text: string,
  request: RecordedRequest,
): { request: RecordedRequest; rest: string } | null {
  for (let at = 0; ;) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd === -1) return null;
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    if (size === 0) {
      const end = text.indexOf("\r\n\r\n", at);
      return end === -1 ? null : { request, rest: text.slice(end + 4) };
    }
    if (text.length < lineEnd + 2 + size + 2) return null;
    request.body += text.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
}
