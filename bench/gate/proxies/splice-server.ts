// `splice-server.ts PORT UPSTREAM_PORT [short]`: joins each connection with one to the upstream. `short` reads and writes
// as our HTTP/1.1 engine does, around the queues of Node's streams.
import { type Socket, connect, createServer } from "node:net";
import { createDirectWriter, createReadShortener } from "@platform/kernel/sockets";

const READ_BYTES = 65_536;
const [port = "0", upstreamPort = "0", ways = "streams"] = process.argv.slice(2);
const join = ways === "short" ? createShortJoin() : joinStreams;

const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ port: Number(upstreamPort), host: "127.0.0.1", noDelay: true });
  upstream.once("connect", () => {
    join(client, upstream);
    join(upstream, client);
  });
  client.on("close", () => upstream.destroy());
  upstream.on("close", () => client.destroy());
  client.on("error", () => upstream.destroy());
  upstream.on("error", () => client.destroy());
});
server.listen({ port: Number(port), host: "127.0.0.1", backlog: 4096 });

function joinStreams(source: Socket, sink: Socket): void {
  source.on("data", (chunk) => sink.write(chunk) || source.pause());
  sink.on("drain", () => source.resume());
}

/** Without back pressure: a write that the system does not accept at once ends the connection. */
function createShortJoin(): (source: Socket, sink: Socket) => void {
  const shared = Buffer.allocUnsafeSlow(READ_BYTES);
  const views: Buffer[] = [];
  const shortenReads = createReadShortener(shared);
  const writeDirect = createDirectWriter();
  return (source, sink) => {
    shortenReads(source, (bytes, length) => {
      const view = bytes === shared ? (views[length] ??= shared.subarray(0, length)) : bytes;
      if (!writeDirect(sink, view)) sink.destroy();
    });
    source.on("data", (chunk) => sink.write(chunk));
  };
}
