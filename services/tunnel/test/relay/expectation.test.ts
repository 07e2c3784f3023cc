// The API on the relay's listener: 100 (Continue) is sent when a body is read, not before the caller is known.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { Cleanup, startTestRelay } from "../fixture/stage.ts";

const TOKEN = "secret-of-alice-0123";
const cleanup = new Cleanup();
let port: number;

before(async () => {
  ({ port } = await startTestRelay(cleanup, { auth_token: `alice:${TOKEN}` }));
});
after(() => cleanup.run());

/** Sends a head, the content after a 100, and returns what was received until the connection ended. */
function exchange(fields: string, content: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1" }).setEncoding("latin1");
    let received = "";
    socket.on("data", (text: string) => {
      if (received === "" && text.startsWith("HTTP/1.1 100 ")) socket.write(content);
      received += text;
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(received));
    const head = `POST /api/v1/tunnels HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n`;
    socket.write(`${head}Content-Type: application/json\r\n${fields}\r\n`);
  });
}

test("a caller that is refused gets no 100, one that is admitted gets it once", async () => {
  const content = JSON.stringify({ name: "demo" });
  const length = `Content-Length: ${content.length}\r\n`;
  assert.match(await exchange(length, content), /^HTTP\/1\.1 401 /);
  const good = `Authorization: Bearer ${TOKEN}\r\n`;
  assert.match(await exchange(`${good}Content-Length: 99999999\r\n`, ""), /^HTTP\/1\.1 413 /);
  assert.match(
    await exchange(`${good}${length}Content-Encoding: gzip\r\n`, content),
    /^HTTP\/1\.1 415 [^]*\r\naccept-encoding: identity\r\n/i,
  );
  const admitted = await exchange(`${good}${length}Connection: close\r\n`, content);
  assert.match(admitted, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 [24]\d\d /);
  assert.doesNotMatch(admitted, /HTTP\/1\.1 (?:401|403|413|415) /);
  const chunked = `${good}Connection: close\r\nTransfer-Encoding: chunked\r\n`;
  const size = content.length.toString(16);
  const pieces = await exchange(chunked, `${size}\r\n${content}\r\n0\r\n\r\n`);
  assert.match(pieces, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 [24]\d\d /);
});
