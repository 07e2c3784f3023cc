// The tenant whose topics are shown, if the address names one.
import { setQuery } from "../router/router.ts";
import { Action } from "../view/controls.tsx";
import { t } from "../words/words.ts";
import { chosenTenant } from "./broker.ts";

/** Name of a tenant; clients without credentials have none. */
export function describeTenant(tenant: string): string {
  return tenant === "" ? t("none") : tenant;
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
