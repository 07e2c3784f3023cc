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

/** Creates a handler that answers with the API's responses. Bodies are limited to 1 MiB, and read when the API does. */
export function createApiHandler<U>(
  options: ApiHandlerOptions<U>,
): (exchange: Exchange<U>) => void {
  const { api, answerProblem } = options;
  return (exchange) => {
    const { sequence } = exchange;
    const isOver = (): boolean => exchange.sequence !== sequence || exchange.aborted;
    answer(api, exchange, isOver).catch((error: unknown) => {
      if (!isOver()) answerProblem(exchange, error);
    });
  };
}

async function answer<U>(
  api: Pick<Api, "fetch">,
  exchange: Exchange<U>,
  isOver: () => boolean,
): Promise<void> {
  const { remoteAddress } = exchange.connection;
  // The API reads only the address of the peer.
  const socket = { remoteAddress } as unknown as Socket;
  const bindings = { incoming: { socket } } as Parameters<Api["fetch"]>[1];
  const response = await api.fetch(createRequest(exchange, isOver), bindings);
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

function createRequest<U>(exchange: Exchange<U>, isOver: () => boolean): Request {
  const { head } = exchange;
  const headers = new Headers();
  for (const [name, value] of head.fields.lowerEntries()) headers.append(name, value);
  const method = head.bytes.toString("latin1", head.headStart, head.methodEnd);
  const path = head.bytes.toString("latin1", head.pathStart, head.targetEnd);
  const isBodiless =
    method === "GET" ||
    method === "HEAD" ||
    (!headers.has("transfer-encoding") && Number(headers.get("content-length") ?? 0) === 0);
  return new Request(`http://relay${path.startsWith("/") ? path : "/"}`, {
    method,
    headers,
    ...(isBodiless ? {} : { body: createBody(exchange, isOver), duplex: "half" }),
  });
}

// Without a queue nothing is read before the API has admitted the caller: the first read sends 100 (Continue).
function createBody<U>(exchange: Exchange<U>, isOver: () => boolean): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) =>
        new Promise((resolve, reject) => {
          if (isOver()) {
            reject(new Error("The client has disconnected"));
            return;
          }
          exchange.readBody(BODY_BYTES_MAX, (_exchange, outcome, body) => {
            if (outcome === "complete") {
              if (body.length > 0) controller.enqueue(new Uint8Array(body));
              controller.close();
              resolve();
            } else {
              const isTooLarge = outcome === "too-large";
              reject(new PlatformError(isTooLarge ? "payload_too_large" : "bad_request"));
            }
          });
        }),
    },
    { highWaterMark: 0 },
  );
}
