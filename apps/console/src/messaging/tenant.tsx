// The tenant whose topics are shown, if the address names one.
import { setQuery } from "../router/router.ts";
import { Action } from "../view/controls.tsx";
import { t } from "../words/words.ts";
import { chosenTenant } from "./broker.ts";

/** Name of a tenant; clients without credentials have none. */
export function describeTenant(tenant: string): string {
  return tenant === "" ? t("none") : tenant;
}

/** A topic or a group in a list of all tenants. */
interface Named {
  name: string;
  tenant?: string | undefined;
}

/** The name, with the tenant if another one has something of this name. */
export function identify({ name, tenant = "" }: Named, all: readonly Named[]): string {
  const isOnly = tenant === "" || all.filter((one) => one.name === name).length === 1;
  return isOnly ? name : `${tenant}:${name}`;
}

/** The chosen tenant, with the way back to all. */
export function TenantChip() {
  const tenant = chosenTenant();
  if (tenant === undefined) return null;
  return (
    <>
      <span class="tag">{t("Tenant {name}", { name: describeTenant(tenant) })}</span>
      <Action isSmall={false} onClick={() => setQuery({ tenant: undefined })}>
        {t("Show all tenants")}
      </Action>
    </>
  );
}
