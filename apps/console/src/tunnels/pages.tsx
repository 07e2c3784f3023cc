// The pages of tunnels.
import "./tunnels.css";
import { matchPath, path } from "../router/router.ts";
import { useTrace } from "../stage/stage.ts";
import { t } from "../words/words.ts";
import { RequestsPage } from "./requests.tsx";
import { SharesPage } from "./shares.tsx";
import { TunnelsPage } from "./tunnels.tsx";

/** The page of the current path. */
export default function TunnelPages() {
  useTrace({ label: t("Tunnels"), service: "tunnel", figure: "requests", errors: "errors" });
  const shared = matchPath("/tunnels/:id/shares", path.value)?.["id"];
  if (shared !== undefined) return <SharesPage key={shared} id={shared} />;
  const id = matchPath("/tunnels/:id/requests", path.value)?.["id"];
  return id === undefined ? <TunnelsPage /> : <RequestsPage key={id} id={id} />;
}
