// `upstream-server.ts PORT NAME`: an upstream with all kinds of responses, as a separate process.
//   /echo          JSON of the request: name, method, url, headers, bytes and digest of the body
//   /short         "NAME\n"
//   /bytes?count=  this number of bytes with a Content-Length (at most 64 MiB)
//   /stream?chunks=&ms=   this number of chunks at this interval
//   /events?ms=    Server-Sent Events, numbered from 1, until the client disconnects
//   a WebSocket on any path echoes each message
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { WebSocketServer } from "ws";

const BYTES_MAX = 64 * 2 ** 20;
const EVENT_MS_DEFAULT = 100;

const [port = "0", name = "upstream"] = process.argv.slice(2);
const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const url = new URL(request.url ?? "/", "http://upstream");
  const answer = ANSWERS[url.pathname.slice(url.pathname.lastIndexOf("/"))] ?? answerEcho;
  answer(request, response, url.searchParams);
});
new WebSocketServer({ server }).on("connection", (socket) => {
  socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
});
server.listen(Number(port), "127.0.0.1", () =>
  console.log(`listening ${JSON.stringify(server.address())}`),
);

type Answer = (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => void;

const ANSWERS: Record<string, Answer> = {
  "/short": (_request, response) => {
    const body = `${name}\n`;
    response.writeHead(200, { "content-type": "text/plain", "content-length": body.length });
    response.end(body);
  },
  "/bytes": (_request, response, query) => {
    const count = Math.min(Number(query.get("count") ?? 0), BYTES_MAX);
    response.writeHead(200, {
      "content-type": "application/octet-stream",
      "content-length": count,
    });
    response.end(Buffer.alloc(count, "x"));
  },
  "/stream": (request, response, query) => {
    const chunks = Number(query.get("chunks") ?? 10);
    let sent = 0;
    response.writeHead(200, { "content-type": "text/plain" });
    const timer = setInterval(
      () => {
        sent += 1;
        response.write(`chunk ${sent}\n`);
        if (sent >= chunks) response.end();
      },
      Number(query.get("ms") ?? 10),
    );
    response.on("close", () => clearInterval(timer));
    request.resume();
  },
  "/events": (_request, response, query) => {
    let id = 0;
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    const send = (): void => void response.write(`id: ${(id += 1)}\ndata: ${name} ${id}\n\n`);
    send();
    const timer = setInterval(send, Number(query.get("ms") ?? EVENT_MS_DEFAULT));
    response.on("close", () => clearInterval(timer));
  },
};

function answerEcho(request: IncomingMessage, response: ServerResponse): void {
  const digest = createHash("sha256");
  let bodyBytes = 0;
  request.on("data", (chunk: Buffer) => {
    bodyBytes += chunk.length;
    digest.update(chunk);
  });
  request.on("end", () => {
    const { method, url, headers } = request;
    const seen = { name, method, url, headers, bodyBytes, bodySha256: digest.digest("hex") };
    const body = JSON.stringify(seen);
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    });
    response.end(body);
  });
}
