// The front handler: requests of the OAuth core and of the pages go there on node's own objects, the rest to the API.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Api } from "@platform/kernel/http";
import type { OAuth } from "../oauth/port.ts";
import type { Pages } from "../pages/pages.ts";

/** What is behind the front once the service is composed. */
export interface Faces {
  api: Api;
  oauth: Pick<OAuth, "handle">;
  pages: Pick<Pages, "handle">;
}

/**
 * Answers 503 until `open` is called: the port, which the issuer may depend on, is known only when the service already
 * listens.
 */
export class Front {
  #faces: Faces | undefined;

  open(faces: Faces): void {
    this.#faces = faces;
  }

  /** For `listenHttp`. */
  readonly intercept = (request: IncomingMessage, response: ServerResponse): boolean => {
    if (this.#faces !== undefined) {
      const { oauth, pages } = this.#faces;
      return oauth.handle(request, response) || pages.handle(request, response);
    }
    response.writeHead(503, { "Retry-After": "1", "Content-Length": "0" }).end();
    return true;
  };

  /** For `listenHttp`. */
  readonly fetch: Api["fetch"] = (request, bindings) => this.#faces!.api.fetch(request, bindings);
}
