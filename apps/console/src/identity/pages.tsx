// The pages of identity.
import type { ComponentType } from "preact";
import { path } from "../router/router.ts";
import { useTrace } from "../stage/stage.ts";
import { t } from "../words/words.ts";
import { AuditPage } from "./audit.tsx";
import { ClientsPage } from "./clients.tsx";
import { GroupsPage } from "./groups.tsx";
import { KeysPage } from "./keys.tsx";
import { RolesPage } from "./roles.tsx";
import { SessionsPage } from "./sessions.tsx";
import { UsersPage } from "./users.tsx";

const PAGES: Readonly<Record<string, ComponentType>> = {
  "/identity/users": UsersPage,
  "/identity/groups": GroupsPage,
  "/identity/roles": RolesPage,
  "/identity/clients": ClientsPage,
  "/identity/sessions": SessionsPage,
  "/identity/keys": KeysPage,
  "/identity/audit": AuditPage,
};

/** The page of the current path. */
export default function IdentityPages() {
  useTrace({ label: t("Identity"), service: "auth", figure: "requests", errors: "errors" });
  const Page = PAGES[path.value] ?? UsersPage;
  return <Page />;
}
