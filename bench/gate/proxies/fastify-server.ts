// `fastify-server.ts PORT UPSTREAM_PORT [hook]`: a server that contains only @fastify/http-proxy.
import proxy, { type FastifyHttpProxyOptions } from "@fastify/http-proxy";
import fastify from "fastify";

const [port = "0", upstreamPort = "0", hook = ""] = process.argv.slice(2);
const app = fastify({ logger: false, keepAliveTimeout: 300_000 });
const setField: NonNullable<FastifyHttpProxyOptions["preHandler"]> = (request, _reply, done) => {
  request.headers["x-guest"] = "set";
  done();
};
await app.register(proxy, {
  ...(hook === "hook" ? { preHandler: setField } : {}),
  upstream: `http://127.0.0.1:${upstreamPort}`,
  undici: { connections: 128, pipelining: 1, keepAliveTimeout: 300_000 },
});
await app.listen({ host: "127.0.0.1", port: Number(port), backlog: 4096 });
