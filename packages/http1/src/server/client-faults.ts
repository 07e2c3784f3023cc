// Refuses requests whose head is invalid or late, which have no exchange, and reports faults of clients.
import type { ServerFault } from "../contract/server.ts";
import { type AnswerContext, writePrepared } from "../write/index.ts";
import type { Refused } from "../write/refused.ts";
import type { ServerExchange } from "./exchange.ts";

/** Sends the refusal on a connection that must then be closed, and reports it. */
export function refuseHead<U>(
  exchange: ServerExchange<U>,
  refused: Refused,
  kind: "malformed-request" | "head-timeout",
): void {
  const { head, host, nowMs } = exchange;
  const { writer, date } = host.engine;
  exchange.sequence++;
  exchange.keepAlive = false;
  const answer = host.prepareRefusal(refused, head);
  writer.begin();
  const context: AnswerContext = { methodId: head.methodId, minor: 1, keepAlive: false, nowMs };
  exchange.flush(writePrepared(writer, date, answer, context));
  reportFault(exchange, kind, answer.status, refused.code);
}

/** Reports a fault of the client to the server. */
export function reportFault<U>(
  { host, connection }: ServerExchange<U>,
  kind: ServerFault["kind"],
  status: number,
  code: string,
): void {
  host.onFault({ kind, status, code, remoteAddress: connection.remoteAddress });
}
