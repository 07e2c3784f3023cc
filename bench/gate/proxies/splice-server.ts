// `splice-server.ts PORT UPSTREAM_PORT`: joins each connection with one to the upstream.
import { connect, createServer } from "node:net";

const [port = "0", upstreamPort = "0"] = process.argv.slice(2);
const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ port: Number(upstreamPort), host: "127.0.0.1", noDelay: true });
  client.on("data", (chunk) => upstream.write(chunk) || client.pause());
  upstream.on("drain", () => client.resume());
  upstream.on("data", (chunk) => client.write(chunk) || upstream.pause());
  client.on("drain", () => upstream.resume());
  client.on("close", () => upstream.destroy());
  upstream.on("close", () => client.destroy());
  client.on("error", () => upstream.destroy());
  upstream.on("error", () => client.destroy());
});
server.listen({ port: Number(port), host: "127.0.0.1", backlog: 4096 });
