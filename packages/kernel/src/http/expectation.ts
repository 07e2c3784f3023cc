// `Expect: 100-continue` (RFC 9110 section 10.1.1): 100 (Continue) is sent when the body is first read, hence not to clients
// that are refused by their head.
import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Sends 100 (Continue) with the first read of the body. A final response before it closes the connection: it is unknown
 * if the client still sends its body.
 */
export function inviteAtFirstRead(request: IncomingMessage, response: ServerResponse): void {
  if (!hasBody(request)) return;
  const { shouldKeepAlive } = response;
  response.shouldKeepAlive = false;
  const read = request._read.bind(request);
  request._read = (size) => {
    request._read = read;
    if (!response.headersSent && !response.destroyed) {
      response.writeContinue();
      response.shouldKeepAlive = shouldKeepAlive;
    }
    read(size);
  };
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}
