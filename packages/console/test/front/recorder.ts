// A service that records what reaches it, and answers as a hostile or broken one would.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { WebSocketServer } from "ws";

/** A service that records what reaches it. */
export async function startRecorder(t: TestContext) {
  const seen: IncomingMessage[] = [];
  /** Target of `/moved`. */
  const places = { elsewhere: "http://127.0.0.1:1" };
  const server: Server = createServer((request, response) => {
    if (request.url === "/console/config") {
      const services = [{ version: "1", features: [], credentials: "token" }];
      response.writeHead(200).end(JSON.stringify({ services }));
      return;
    }
    seen.push(request);
    if (request.url?.includes("/refused") === true) {
      response.writeHead(401, { "www-authenticate": "Bearer" }).end();
      return;
    }
    if (request.url?.includes("/moved") === true) {
      response.writeHead(302, { location: `${places.elsewhere}/api/v1/secret` }).end();
      return;
    }
    if (request.url?.includes("/object") === true) {
      response.writeHead(200, {
        "content-type": "text/html",
        "set-cookie": "platform_console=stolen",
        "clear-site-data": '"*"',
        "service-worker-allowed": "/",
        "access-control-allow-origin": "*",
        location: "https://evil.example/",
        link: "<https://evil.example/>; rel=preload",
        refresh: "0; url=https://evil.example/",
      });
      response.end("<script>alert(1)</script>");
      return;
    }
    if (request.url?.includes("/preview") === true) {
      const policy = new URL(request.url, "http://recorder").searchParams.get("policy");
      response.writeHead(200, {
        "content-type": "text/html",
        "content-disposition": "inline",
        "content-security-policy": policy ?? "sandbox; default-src 'none'; frame-ancestors 'self'",
      });
      response.end("<p>mail</p>");
      return;
    }
    response.writeHead(200, { "content-type": "application/json" }).end("[]");
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket, head) => {
    seen.push(request);
    sockets.handleUpgrade(request, socket, head, (client) => {
      client.on("message", (data: Buffer) => client.send(`echo ${data.toString()}`));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    sockets.clients.forEach((client) => client.terminate());
    server.closeAllConnections();
    server.close();
  });
  return { seen, places, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
