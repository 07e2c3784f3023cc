// Downloads `/large` over and over, run as a child: `download-client.ts PORT HOST SECONDS`. Prints a JSON line.
// wrk drops the bytes of responses that are incomplete at the end, which at this size are many.
import { connect } from "node:net";

/** The JSON line that the client prints. */
export interface DownloadSummary {
  bytes: number;
  seconds: number;
}

const READ_BYTES = 1_048_576;

if (import.meta.main) {
  const [port = "", host = "", seconds = "3"] = process.argv.slice(2);
  console.log(JSON.stringify(await download(Number(port), host, Number(seconds))));
  process.exit(0);
}

/** Each response is requested when the one before has arrived; heads count as bytes of the download. */
function download(port: number, host: string, seconds: number): Promise<DownloadSummary> {
  const request = `GET /large HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  const startedAt = performance.now();
  let bytes = 0;
  let missing = 0;
  return new Promise((resolve, reject) => {
    const onRead = (length: number, piece: Buffer): void => {
      bytes += length;
      if (missing === 0) missing = readLength(piece.subarray(0, length), reject) - length;
      else missing -= length;
      if (missing === 0) socket.write(request);
    };
    const socket = connect({
      port,
      host: "127.0.0.1",
      onread: {
        buffer: Buffer.allocUnsafeSlow(READ_BYTES),
        callback: (length, piece) => {
          onRead(length, piece as Buffer);
          return true;
        },
      },
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the connection was closed")));
    socket.write(request);
    setTimeout(() => {
      resolve({ bytes, seconds: (performance.now() - startedAt) / 1_000 });
    }, seconds * 1_000);
  });
}

/** Length of the response whose head is at the start of the bytes. */
function readLength(bytes: Buffer, reject: (error: Error) => void): number {
  const headEnd = bytes.indexOf("\r\n\r\n");
  const head = bytes.toString("latin1", 0, Math.max(0, headEnd));
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (!head.startsWith("HTTP/1.1 200") || length === undefined) {
    reject(new Error(`unexpected answer: ${bytes.toString("latin1", 0, 200)}`));
    return Infinity;
  }
  return headEnd + 4 + Number(length);
}
