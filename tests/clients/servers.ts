// Servers behind the gateway.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../stage/process.ts";
import { writeNginxConfig } from "../stage/nginx.ts";
import { findProgram, readProgramVersion } from "../stage/program.ts";
import type { RealClient } from "./client.ts";

const FILE_BYTES = 300_000;

const python: RealClient = {
  name: "Python http.server",
  side: "behind",
  debianPackage: "python3",
  readVersion: () => readProgramVersion("python3", ["--version"]),
  shows: "HTTP/1.0 responses that end when the connection closes: a listing, a file, a 404",
  exercise: async ({ stage, gateway, addRoute }) => {
    const folder = join(stage.folder, "python");
    mkdirSync(folder);
    writeFileSync(join(folder, "file.bin"), Buffer.alloc(FILE_BYTES, "p"));
    const port = await findFreePort();
    const server = stage.start({
      name: "http.server",
      command: findProgram("python3") ?? "python3",
      args: ["-m", "http.server", "--bind", "127.0.0.1", "--directory", folder, String(port)],
    });
    await awaitPort(server, port);
    await addRoute({ prefix: "/python", target: `http://127.0.0.1:${port}`, strip_prefix: true });
    const listing = await fetch(`${gateway.url}/python/`);
    assert.match(await listing.text(), /file\.bin/);
    const file = await fetch(`${gateway.url}/python/file.bin`);
    assert.equal((await file.arrayBuffer()).byteLength, FILE_BYTES);
    const missing = await fetch(`${gateway.url}/python/none`);
    assert.equal(missing.status, 404);
    assert.match(missing.headers.get("server") ?? "", /SimpleHTTP/);
    await missing.arrayBuffer();
  },
};

const nginxBehind: RealClient = {
  name: "nginx as a server",
  side: "behind",
  debianPackage: "nginx-light",
  readVersion: () => readProgramVersion("nginx", ["-v"]),
  shows: "`206` ranges, `304` by ETag, HEAD, keep-alive connections",
  exercise: async ({ stage, gateway, addRoute }) => {
    const folder = join(stage.folder, "nginx-behind");
    const port = await findFreePort();
    const http = `server { listen 127.0.0.1:${port}; root ${folder}; }`;
    const config = writeNginxConfig(folder, { http });
    writeFileSync(join(folder, "file.bin"), Buffer.alloc(FILE_BYTES, "n"));
    await awaitPort(stage.start({ name: "nginx", ...config }), port);
    await addRoute({ prefix: "/nginx", target: `http://127.0.0.1:${port}`, strip_prefix: true });
    const url = `${gateway.url}/nginx/file.bin`;
    const whole = await fetch(url);
    assert.equal((await whole.arrayBuffer()).byteLength, FILE_BYTES);
    const part = await fetch(url, { headers: { range: "bytes=10-19" } });
    assert.deepEqual([part.status, await part.text()], [206, "n".repeat(10)]);
    const etag = whole.headers.get("etag") ?? "";
    const unchanged = await fetch(url, { headers: { "if-none-match": etag } });
    assert.deepEqual([unchanged.status, await unchanged.text()], [304, ""]);
    const head = await fetch(url, { method: "HEAD" });
    assert.equal(head.headers.get("content-length"), String(FILE_BYTES));
  },
};

const nodeBehind: RealClient = {
  name: "node:http as a server",
  side: "behind",
  readVersion: () => process.versions.node,
  shows: "early hints, chunked responses with a trailer, two `Set-Cookie` fields",
  exercise: async ({ gateway, addRoute }) => {
    const server = http.createServer((_request, response) => {
      response.writeEarlyHints({ link: "</style.css>; rel=preload; as=style" });
      response.writeHead(200, [
        ["set-cookie", "a=1"],
        ["set-cookie", "b=2"],
        ["trailer", "x-digest"],
      ]);
      response.write("streamed");
      response.addTrailers({ "x-digest": "abc" });
      response.end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    try {
      await addRoute({ prefix: "/node", target: `http://127.0.0.1:${port}` });
      const request = http.get(`${gateway.url}/node/x`, {
        agent: false,
        headers: { te: "trailers" },
      });
      const hints = once(request, "information") as Promise<[http.InformationEvent]>;
      const [response] = (await once(request, "response")) as [http.IncomingMessage];
      let text = "";
      for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
      assert.equal(text, "streamed");
      assert.equal((await hints)[0].statusCode, 103);
      assert.deepEqual(response.headers["set-cookie"], ["a=1", "b=2"]);
      assert.equal(response.trailers["x-digest"], "abc");
    } finally {
      server.closeAllConnections();
      server.close();
    }
  },
};

const caddyBehind: RealClient = {
  name: "Caddy as a server",
  side: "behind",
  debianPackage: "caddy",
  readVersion: () => readProgramVersion("caddy", ["version"]),
  shows: "compressed responses forwarded unchanged",
  exercise: async ({ stage, gateway, addRoute }) => {
    const folder = join(stage.folder, "caddy");
    mkdirSync(folder);
    writeFileSync(join(folder, "page.txt"), "compress me ".repeat(1_000));
    const port = await findFreePort();
    const path = join(folder, "Caddyfile");
    writeFileSync(
      path,
      `{\n\tadmin off\n\tauto_https off\n}\nhttp://:${port} {\n\troot * ${folder}\n\tencode gzip\n\tfile_server\n}\n`,
    );
    const server = stage.start({
      name: "caddy",
      command: findProgram("caddy") ?? "caddy",
      args: ["run", "--config", path, "--adapter", "caddyfile"],
      env: { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    });
    await awaitPort(server, port);
    await addRoute({ prefix: "/caddy", target: `http://127.0.0.1:${port}`, strip_prefix: true });
    const response = await fetch(`${gateway.url}/caddy/page.txt`, {
      headers: { "accept-encoding": "gzip" },
    });
    assert.equal(response.headers.get("content-encoding"), "gzip");
    assert.equal(await response.text(), "compress me ".repeat(1_000));
  },
};

/** Servers, in the order of the table. */
export const SERVERS: readonly RealClient[] = [python, nginxBehind, nodeBehind, caddyBehind];
