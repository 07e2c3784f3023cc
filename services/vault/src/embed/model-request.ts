// Requests to endpoints with OpenAI's API.

/** An endpoint, as the configuration names it. */
export interface ModelEndpoint {
  /** As `https://api.openai.com/v1`; paths such as `/embeddings` are added to it. */
  readonly url: string;
  readonly model: string;
  readonly key: string | undefined;
}

/** Bounds of a request. */
export interface ModelRequestLimits {
  readonly timeoutMs: number;
  readonly answerBytesMax: number;
}

/**
 * Posts a JSON body, to which the model is added, and resolves with the status and the text of the answer. Rejects if the
 * endpoint cannot be reached, redirects, takes longer than the limit or answers with more bytes.
 */
export async function requestModel(
  { url, model, key }: ModelEndpoint,
  path: string,
  body: object,
  { timeoutMs, answerBytesMax }: ModelRequestLimits,
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`${url.replace(/\/$/, "")}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify({ model, ...body }),
    redirect: "error",
    signal: AbortSignal.timeout(timeoutMs),
  });
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    if (bytes > answerBytesMax) throw new Error("the answer of the endpoint is too long");
    pieces.push(piece);
  }
  return { status: response.status, text: Buffer.concat(pieces).toString() };
}
