import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";
import { fetchAnswer, judgeAnswer } from "../harness/answer.ts";

const ANSWERS: Record<string, string> = {
  length: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
  chunked: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
  fault: "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
};

for (const [name, text] of Object.entries(ANSWERS)) {
  test(`an answer is read to its end, byte by byte: ${name}`, async (t) => {
    const server = createServer((socket) => {
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      socket.once("data", () => void writeByteByByte(socket, text));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const answer = await fetchAnswer(`http://127.0.0.1:${port}/`);
    assert.equal(answer.wireBytes, text.length);
    const fault = judgeAnswer(answer, { status: 200, bodyBytes: 5 });
    assert.equal(fault, name === "fault" ? "status 502, not 200" : undefined);
  });
}

test("an answer that breaks off is an error", async (t) => {
  const server = createServer((socket) => {
    socket.end("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  await assert.rejects(fetchAnswer(`http://127.0.0.1:${port}/`), /closed before|ECONNRESET/);
});

async function writeByteByByte(socket: Socket, text: string): Promise<void> {
  for (const byte of text) {
    socket.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
