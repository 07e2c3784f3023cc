// A small upstream for trying the gateway: plain node:http, independent of the platform.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const ADDRESS = /^(?:\[([^\]]+)\]|([^:]*)):([0-9]{1,5})$/;
const [, ipv6, name, port] = ADDRESS.exec(process.argv[2] ?? "127.0.0.1:8070") ?? [];

const server = createServer((request, response) => {
  const path = new URL(request.url ?? "/", "http://sample").pathname;
  if (path === "/hello") greet(request, response);
  else if (path === "/hello/events") countToFive(request, response);
  else respond(response, 404, `${path} not found; try /hello or /hello/events\n`);
});

server.listen(Number(port), ipv6 ?? name, () => {
  const { address, port } = server.address() as AddressInfo;
  // Reports the listener to a supervisor by the IPC channel.
  const listeners = [{ name: "http", host: address, port }];
  if (process.send === undefined) console.log(`http://localhost:${port}/hello`);
  else
    process.send({
      type: "ready",
      service: "hello",
      version: "1.0.0",
      pid: process.pid,
      listeners,
    });
});

for (const event of ["SIGTERM", "SIGINT", "disconnect"] as const) process.once(event, stop);

function greet(request: IncomingMessage, response: ServerResponse): void {
  const { "x-forwarded-for": client = "you, directly", traceparent = "none" } = request.headers;
  respond(
    response,
    200,
    `Hello from examples/hello.\nfrom ${String(client)}, trace ${String(traceparent)}\n`,
  );
}

// Server-sent events, one per second, to show that the gateway forwards each one immediately.
function countToFive(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  let count = 0;
  const send = (): void => {
    count += 1;
    response.write(`data: ${count}\n\n`);
    if (count === 5) response.end();
  };
  send();
  const timer = setInterval(send, 1000);
  response.on("close", () => clearInterval(timer));
  request.resume();
}

function respond(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8" });
  response.end(text);
}

function stop(): void {
  server.close(() => process.exit(0));
  setTimeout(() => process.exit(0), 3000).unref();
}
