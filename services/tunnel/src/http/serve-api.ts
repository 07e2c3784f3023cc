// Serves the API on the relay's own listener: an exchange becomes a Request, and the Response is sent back.
import type { Socket } from "node:net";
import type { Exchange } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import type { Api } from "@platform/kernel/http";

const BODY_BYTES_MAX = 1_048_576;
/** Fields that the engine writes itself. */
const OWN_FIELDS = new Set(["connection", "content-length", "date", "transfer-encoding"]);

/** Options of {@link createApiHandler}. */
export interface ApiHandlerOptions<U> {
  api: Pick<Api, "fetch">;
  /** Answers requests that do not reach the API. */
  answerProblem: (exchange: Exchange<U>, error: unknown) => void;
}

/** Creates a handler that answers with the API's responses. Bodies are limited to 1 MiB. */
export function createApiHandler<U>(
  options: ApiHandlerOptions<U>,
): (exchange: Exchange<U>) => void {
  const { api, answerProblem } = options;
  return (exchange) => {
    const { sequence } = exchange;
    exchange.readBody(BODY_BYTES_MAX, (_exchange, outcome, body) => {
      if (outcome === "aborted") return;
      if (outcome === "too-large") {
        answerProblem(exchange, new PlatformError("payload_too_large"));
        return;
      }
      const isOver = (): boolean => exchange.sequence !== sequence || exchange.aborted;
      answer(api, exchange, body, isOver).catch((error: unknown) => {
        if (!isOver()) answerProblem(exchange, error);
      });
    });
  };
}

async function answer<U>(
  api: Pick<Api, "fetch">,
  exchange: Exchange<U>,
  body: Buffer,
  isOver: () => boolean,
): Promise<void> {
  const { remoteAddress } = exchange.connection;
  // The API reads only the address of the peer.
  const socket = { remoteAddress } as unknown as Socket;
  const bindings = { incoming: { socket } } as Parameters<Api["fetch"]>[1];
  const response = await api.fetch(createRequest(exchange, body), bindings);
  const reader = response.body?.getReader();
  const first = await reader?.read();
  if (isOver()) {
    await reader?.cancel();
    return;
  }
  const { status } = response;
  const headers = [...response.headers].filter(([name]) => !OWN_FIELDS.has(name));
  const second = first?.value === undefined ? first : await reader?.read();
  if (reader === undefined || second?.value === undefined) {
    exchange.respond({ status, headers, body: Buffer.from(first?.value ?? "") });
    return;
  }
  exchange.startResponse({ status, headers });
  await passOn(exchange, reader, [first!.value!, second.value], isOver);
}

// Long responses, such as a backup, are passed on in pieces, and end early if the client leaves.
async function passOn<U>(
  exchange: Exchange<U>,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  pieces: readonly Uint8Array[],
  isOver: () => boolean,
): Promise<void> {
  let wake = (): void => undefined;
  exchange.onDrain = () => wake();
  exchange.onAborted = () => wake();
  const write = async (piece: Uint8Array): Promise<void> => {
    if (isOver() || exchange.write(piece)) return;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  };
  try {
    for (const piece of pieces) await write(piece);
    for (let next = await reader.read(); !next.done && !isOver(); next = await reader.read())
      await write(next.value);
    if (!isOver()) exchange.end();
  } catch {
    // The head has been sent, so that the broken connection is the only way to report it.
    if (!isOver()) exchange.destroy();
  } finally {
    await reader.cancel();
  }
}

function createRequest<U>({ head }: Exchange<U>, body: Buffer): Request {
  const headers = new Headers();
  for (const [name, value] of head.fields.lowerEntries()) headers.append(name, value);
  const method = head.bytes.toString("latin1", head.headStart, head.methodEnd);
  const path = head.bytes.toString("latin1", head.pathStart, head.targetEnd);
  const hasBody = body.length > 0 && method !== "GET" && method !== "HEAD";
  return new Request(`http://relay${path.startsWith("/") ? path : "/"}`, {
    method,
    headers,
    ...(hasBody ? { body: new Uint8Array(body) } : {}),
  });
}
