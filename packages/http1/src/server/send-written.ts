// From the writer to the socket in one write.
import type { Socket } from "node:net";

import type { HeadWriter } from "../write/index.ts";

/**
 * Sends what the writer holds, and behind it a content that was too long to be copied. True where the socket may hold
 * some of it still.
 */
export function sendWritten(
  socket: Socket,
  writer: HeadWriter,
  isSecure: boolean,
  content: Buffer | null,
): boolean {
  if (content !== null) {
    socket.cork();
    socket.write(Buffer.from(writer.view()));
    socket.write(content);
    socket.uncork();
    return isSecure || socket.writableLength > 0;
  }
  // TLS keeps its input until the record is out, and a socket that holds bytes already keeps these as well: a copy is
  // cheaper than a new scratch each time, which the socket would keep whole.
  if (isSecure || socket.writableLength > 0) {
    socket.write(Buffer.from(writer.view()));
    return true;
  }
  socket.write(writer.view());
  if (socket.writableLength === 0) return false;
  writer.takeOver();
  return true;
}
