// Sends the content of the head writer to a socket in one write.
import type { Socket } from "node:net";
import type { Engine } from "../engine/engine.ts";
import type { AnswerHeaders } from "../write/index.ts";

/**
 * Sends the content of the writer, followed by content that was too long to be copied. Returns true if the socket may
 * still buffer some of it.
 */
export function sendWritten(
  socket: Socket,
  { writer, writeDirect }: Engine,
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
  // TLS and sockets with buffered bytes retain their input: a copy is cheaper than a new scratch each time, which the
  // socket would retain as a whole.
  if (isSecure || socket.writableLength > 0) {
    socket.write(Buffer.from(writer.view()));
    return true;
  }
  if (writeDirect(socket, writer.view())) return false;
  writer.takeOver();
  return true;
}

/** Sends a 101 with `headers`. Throws before anything is sent if one is invalid. */
export function sendSwitchHead(
  exchange: { readonly host: { readonly engine: Engine }; flush(): void },
  headers: AnswerHeaders,
): void {
  const { writer } = exchange.host.engine;
  writer.begin();
  writer.statusLine(101);
  for (const [name, value] of headers) writer.field(name, value);
  writer.endHead();
  exchange.flush();
}
