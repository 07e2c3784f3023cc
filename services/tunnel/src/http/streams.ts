// WebSockets of the API, on the relay's own listener.
import { IncomingMessage } from "node:http";
import { Method } from "@platform/http1";
import {
  type AdminFeeds,
  CONSOLE_LIVE_PATH,
  LIVE_PATH,
  type LineStreams,
} from "@platform/kernel/feeds";
import { mapLegacyPath } from "@platform/kernel/http";
import type { CapturedRequest } from "../capture/captured-request.ts";
import { answerProblem } from "../relay/connect.ts";
import type { RelayExchange } from "../relay/request-state.ts";

/** The streams of the relay's own API. */
interface RelayStreams {
  feeds: AdminFeeds;
  requests: LineStreams<CapturedRequest>;
}

/** Handles an upgrade request to one of the streams; false for other requests. */
export function acceptStream({ feeds, requests }: RelayStreams, exchange: RelayExchange): boolean {
  const { head } = exchange;
  if (!head.upgrade || head.methodId !== Method.GET) return false;
  const path = mapLegacyPath(head.pathString());
  if (path === LIVE_PATH || path === CONSOLE_LIVE_PATH) accept(feeds, exchange, LIVE_PATH);
  else if (requests.hasPath(path)) accept(requests, exchange, path);
  else return false;
  return true;
}

// The caller is admitted before the socket leaves the server.
function accept(
  stream: Pick<AdminFeeds, "admit" | "acceptAdmitted">,
  exchange: RelayExchange,
  path: string,
): void {
  const { sequence, head, connection } = exchange;
  const isOver = (): boolean => exchange.sequence !== sequence || exchange.aborted;
  const headers = new Headers([...head.fields.lowerEntries()]);
  const peer = { kind: "tcp", address: connection.remoteAddress } as const;
  const guarded = { headers, method: "GET", path, peer };
  const query = head.bytes.toString("latin1", head.pathEnd, head.targetEnd);
  stream
    .admit(guarded)
    .then(() => {
      if (isOver()) return;
      const { socket, rest } = exchange.takeSocket(null);
      const request = new IncomingMessage(socket);
      Object.assign(request, {
        method: "GET",
        url: `${path}${query}`,
        headers: Object.fromEntries(headers),
      });
      stream.acceptAdmitted(request, socket, rest, guarded);
    })
    .catch((error: unknown) => {
      if (!isOver()) answerProblem(exchange, error);
    });
}
