// Hands the socket of a connection over to a handler that switches protocols.
import type { Socket } from "node:net";

import type { TakenSocket } from "../contract/exchange.ts";
import type { ForwardClient } from "../forward/client.ts";
import type { AnswerHeaders } from "../write/index.ts";
import type { ConnectionHost } from "./connection-host.ts";
import type { EndReport } from "./end-report.ts";
import { Phase, type PhaseKind } from "./phase.ts";

/** The properties of a connection that change with it. */
interface SwitchingConnection<U> extends ForwardClient<U> {
  readonly host: ConnectionHost<U>;
  readonly endReport: EndReport;
  answered: boolean;
  status: number;
  phase: PhaseKind;
}

/** Adds listeners to a socket, and one that ignores errors; the returned function removes all but that. */
export function listenToSocket(
  socket: Socket,
  listeners: Readonly<Record<string, (chunk: Buffer) => void>>,
): () => void {
  // "close" always follows.
  socket.on("error", () => {});
  for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener);
  return () => {
    for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener);
  };
}

/** Sends 101 unless `headers` is null, ends the request and the connection's part in it; `rest` was received after the request. */
export function switchProtocols<U>(
  connection: SwitchingConnection<U>,
  headers: AnswerHeaders | null,
  rest: Buffer,
): TakenSocket {
  const { socket, host } = connection;
  connection.answered = true;
  connection.status = 101;
  if (headers !== null) writeHead(connection, headers);
  connection.endReport.sendOwn(connection, "complete");
  connection.phase = Phase.Closed;
  host.active--;
  connection.outflow.close();
  host.forget(connection);
  // Reads pass by the stream's queue: its new owner listens for `data`.
  if (!connection.connection.secure) {
    host.shortenReads(socket, (bytes, length, isShared) => {
      socket.emit("data", isShared ? Buffer.from(bytes.subarray(0, length)) : bytes);
    });
  }
  return { socket, rest };
}

function writeHead<U>(connection: SwitchingConnection<U>, headers: AnswerHeaders): void {
  const { writer } = connection.host.engine;
  writer.begin();
  writer.statusLine(101);
  for (const [name, value] of headers) writer.field(name, value);
  writer.endHead();
  connection.flush();
}
