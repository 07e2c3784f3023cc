// The pages of the gateway.
import { matchPath, path } from "../router/router.ts";
import { useTrace } from "../stage/stage.ts";
import { t } from "../words/words.ts";
import { AiPage } from "./ai-page.tsx";
import { ApiKeysPage } from "./api-keys.tsx";
import { CachePage } from "./cache.tsx";
import { CertificatesPage } from "./certificates.tsx";
import { LogPage } from "./log-page.tsx";
import { NewRoutePage, RoutePage } from "./route-page.tsx";
import { RoutesPage } from "./routes-page.tsx";
import { NEW_ROUTE } from "./routes.ts";
import { UpstreamsPage } from "./upstreams.tsx";

/** The page of the current path. */
export default function GatewayPages() {
  useTrace({ label: t("All requests"), service: "gate", figure: "requests", errors: "errors" });
  if (path.value === NEW_ROUTE) return <NewRoutePage />;
  const route =
    matchPath("/gateway/routes/:name", path.value) ??
    matchPath("/gateway/routes/:name/:tab", path.value);
  if (route !== undefined) return <RoutePage name={route["name"] ?? ""} tab={route["tab"] ?? ""} />;
  if (path.value === "/gateway/models") return <AiPage />;
  if (path.value === "/gateway/cache") return <CachePage />;
  if (path.value === "/gateway/keys") return <ApiKeysPage />;
  if (path.value === "/gateway/certificates") return <CertificatesPage />;
  if (path.value === "/gateway/log") return <LogPage />;
  if (path.value === "/gateway/upstreams") return <UpstreamsPage />;
  return <RoutesPage />;
}
