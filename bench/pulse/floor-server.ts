// The least that a durable HTTP publish costs on this machine, run as a child: `floor-server.ts PORT FILE`. node:http alone;
// the bodies of requests that wait together are written and synced together, and nothing is parsed, checked or logged.
import { fdatasync, openSync, writev } from "node:fs";
import { createServer, type ServerResponse } from "node:http";

const ANSWER = '{"status":"success"}';

interface Waiting {
  body: Buffer;
  response: ServerResponse;
}

if (import.meta.main) {
  const [port, file] = process.argv.slice(2);
  serve(Number(port), openSync(file!, "w"));
}

function serve(port: number, fd: number): void {
  let waiting: Waiting[] = [];
  let end = 0;
  let isWriting = false;
  const writeGroup = (): void => {
    const group = waiting;
    waiting = [];
    isWriting = group.length > 0;
    if (!isWriting) return;
    const bodies = group.map(({ body }) => body);
    writev(fd, bodies, end, (error, written) => {
      if (error !== null) throw error;
      end += written;
      fdatasync(fd, (failure) => {
        if (failure !== null) throw failure;
        for (const { response } of group) response.end(ANSWER);
        writeGroup();
      });
    });
  };
  createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      response.setHeader("Content-Length", ANSWER.length);
      waiting.push({ body: Buffer.concat(chunks), response });
      if (isWriting) return;
      isWriting = true;
      setImmediate(writeGroup);
    });
  }).listen(port, "127.0.0.1");
}
