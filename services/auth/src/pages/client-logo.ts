// Logos of clients, served from the service's own origin.
import type { ClientSummary } from "../oauth/authorization/grants.ts";
import { html, type Html } from "./html.ts";
import type { PageServices } from "./page-services.ts";
import type { PageRoute } from "./route.ts";

const FOLDER = "/client-logo/";

export function createClientLogoRoutes(services: PageServices): PageRoute[] {
  return [
    {
      method: "GET",
      path: `${FOLDER}{id}`,
      access: "public",
      handle: async (request) => {
        const logo = await services.oauth.logos.read(request.path.slice(FOLDER.length));
        return logo === undefined
          ? services.errors.showMissing(request.language)
          : { kind: "picture", type: logo.type, content: Buffer.from(logo.content) };
      },
    },
  ];
}

/** Logos of clients by client id, as elements; clients without one are absent. */
export async function showClientLogos(
  { oauth }: PageServices,
  clients: readonly Pick<ClientSummary, "id">[],
): Promise<ReadonlyMap<string, Html>> {
  const hashes = await oauth.logos.findHashes(clients.map(({ id }) => id));
  // The client's name is always beside it.
  return new Map(
    hashes
      .entries()
      .map(([id, hash]) => [id, html`<img class="client" src="${FOLDER}${hash}" alt="" />`]),
  );
}
