// `engine-server.ts PORT UPSTREAM_PORT`: our HTTP/1.1 engine with one target and the usual
// forwarding fields, without anything that the gateway adds.
import { compilePlan, createEngine, createServer, createUpstreamPool } from "@platform/http1";

const [port = "0", upstreamPort = "0"] = process.argv.slice(2);
const engine = createEngine();
const target = {
  pool: createUpstreamPool({
    engine,
    addresses: [{ host: "127.0.0.1", port: Number(upstreamPort) }],
  }),
  plan: compilePlan({
    addRequestFields: [
      ["X-Forwarded-For", "127.0.0.1"],
      ["X-Forwarded-Proto", "http"],
    ],
  }),
};
const observer = {};
const server = createServer({
  engine,
  handler: (exchange) => exchange.forward(target, observer),
});
await server.listen({ host: "127.0.0.1", port: Number(port) });
process.once("SIGTERM", () => process.exit(0));
