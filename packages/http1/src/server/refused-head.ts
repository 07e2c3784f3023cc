// Sends the response to a request whose head was refused, which has no exchange.
import type { RequestParser } from "../parse/index.ts";
import {
  type Answer,
  type AnswerContext,
  type PreparedAnswer,
  writePrepared,
} from "../write/index.ts";
import type { Refused } from "../write/refused.ts";
import type { ConnectionHost } from "./connection-host.ts";

/** The properties of a connection that are needed to refuse a head. */
interface RefusingConnection {
  readonly head: RequestParser;
  readonly host: Pick<ConnectionHost<unknown>, "engine" | "prepareRefusal">;
  readonly nowMs: number;
  flush(content: Buffer | null): void;
}

/** Sends the refusal; returns its status. */
export function sendRefusedHead(connection: RefusingConnection, refused: Refused): number {
  const { head, host, nowMs } = connection;
  const { writer, date } = host.engine;
  const answer = host.prepareRefusal(refused, head);
  writer.begin();
  const context: AnswerContext = { methodId: head.methodId, minor: 1, keepAlive: false, nowMs };
  connection.flush(writePrepared(writer, date, answer, context));
  return answer.status;
}

/** Bytes of an answer's content. */
export function countContent({ body }: Answer | PreparedAnswer): number {
  if (body === undefined) return 0;
  return typeof body === "string" ? Buffer.byteLength(body) : body.length;
}
