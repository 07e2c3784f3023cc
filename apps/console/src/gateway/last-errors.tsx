// The last requests of a route that failed.
import { withQuery } from "../api/api.ts";
import { navigate } from "../router/router.ts";
import { Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { createRequestColumns } from "./request-columns.tsx";
import { idOf, labelOf, loadRequests } from "./requests.ts";
import type { Route } from "./routes.ts";

const EVERY_MS = 5_000;
const SHOWN = 5;

/** Its last responses with 5xx; a row leads to the request in the log. */
export function LastErrors({ route }: { route: Route }) {
  const label = labelOf(route);
  const isLogged = route["access_log"] === true;
  return (
    <Section title={t("Last errors")}>
      {isLogged ? (
        <Errors label={label} />
      ) : (
        <p class="i2">{t("Set access_log on this route to list its requests.")}</p>
      )}
    </Section>
  );
}

function Errors({ label }: { label: string }) {
  const { time, status, path } = createRequestColumns();
  const loaded = useLoad(
    label,
    () => loadRequests({ route: label, status: "5xx", limit: SHOWN }),
    EVERY_MS,
  );
  return (
    <Loading of={loaded}>
      {({ items }) =>
        items.length === 0 ? (
          <p class="i2">{t("No errors")}</p>
        ) : (
          <Table
            label={t("Last errors")}
            rows={items}
            idOf={idOf}
            onSelect={(one) =>
              navigate(withQuery("/gateway/log", { route: label, status: "5xx", sel: idOf(one) }))
            }
            columns={[
              time,
              status,
              path,
              { title: t("Error code"), kind: "mono w-l wide-only", render: ({ code }) => code },
            ]}
          />
        )
      }
    </Loading>
  );
}
