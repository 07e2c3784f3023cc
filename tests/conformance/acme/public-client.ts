// A client of the public names of a platform, all of which are on this machine.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import type { BrowserFetch } from "@platform/testing/browser";

/** Creates a `fetch` for `https://` URLs, whose host is reached at a port of this machine; it verifies certificates with `ca`. */
export function createPublicFetch(
  port: number,
  ca: string,
  onResponse: (url: URL, response: Response) => void = () => undefined,
): BrowserFetch {
  return async (url, { method, headers, body }) => {
    const sent = request({
      host: "127.0.0.1",
      port,
      servername: url.hostname,
      ca,
      agent: false,
      method,
      path: `${url.pathname}${url.search}`,
      headers: {
        host: url.host,
        ...headers,
        ...(body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
      },
    }).end(body?.toString());
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    const pieces: Buffer[] = [];
    for await (const piece of answer) pieces.push(piece as Buffer);
    const text = Buffer.concat(pieces);
    const fields = new Headers();
    for (const [name, values] of Object.entries(answer.headersDistinct)) {
      for (const value of values ?? []) fields.append(name, value);
    }
    const { statusCode: status = 0 } = answer;
    const hasBody = status !== 204 && status !== 304;
    const response = new Response(hasBody ? text : null, { status, headers: fields });
    onResponse(url, response);
    return response;
  };
}
