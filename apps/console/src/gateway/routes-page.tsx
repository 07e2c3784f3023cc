// Routes of the gateway.
import { formatNumber } from "../format/format.ts";
import { href, navigate, queryValue, setQuery } from "../router/router.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FilterField } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { RollBack } from "./canary.tsx";
import { RouteState } from "./route-state.tsx";
import {
  accessOf,
  CHANGE,
  loadRoutes,
  nameOf,
  NEW_ROUTE,
  placeOf,
  routePath,
  type Route,
} from "./routes.ts";

const EVERY_MS = 2_000;

export function RoutesPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("Routes") }]);
  const filter = queryValue("filter");
  const loaded = useLoad("routes", loadRoutes, EVERY_MS);
  const create = (): void => navigate(NEW_ROUTE);
  useCommands([{ label: t("New route"), key: "n", icon: "plus", needs: CHANGE, run: create }]);
  return (
    <Split>
      <h1 class="hidden">{t("Routes")}</h1>
      <div class="bar">
        <FilterField
          label={t("Host, prefix or target")}
          value={filter}
          isMono
          onInput={(value) => setQuery({ filter: value }, { replace: true })}
        />
        <Action onClick={create} needs={CHANGE} kind="primary" icon="plus" isSmall={false}>
          {t("New route")}
        </Action>
      </div>
      <Loading of={loaded}>
        {(routes) =>
          routes.length === 0 ? (
            <Empty title={t("No routes yet")}>
              <p>{t("A route forwards requests with a prefix or host to a target.")}</p>
            </Empty>
          ) : (
            <Table
              label={t("Routes")}
              rows={routes.filter((route) => JSON.stringify(route).includes(filter))}
              idOf={nameOf}
              onSelect={(route) => navigate(routePath(route))}
              columns={[
                {
                  title: t("Route"),
                  sort: nameOf,
                  render: (route) => (
                    <a class="mono" href={href(routePath(route))}>
                      <span class="i3">{route.host}</span>
                      {placeOf(route)}
                    </a>
                  ),
                },
                {
                  title: t("Targets"),
                  kind: "mono wide-only",
                  render: ({ status }) => (
                    <span class="i2">{status.targets.map(({ url }) => url).join(", ")}</span>
                  ),
                },
                {
                  title: t("Access"),
                  kind: "w-m wide-only",
                  render: (route) => <span class="tag">{accessOf(route)}</span>,
                },
                {
                  title: t("Active"),
                  kind: "w-xs wide-only",
                  isNumber: true,
                  render: ({ status }) =>
                    formatNumber(status.targets.reduce((sum, { active }) => sum + active, 0)),
                },
                { title: t("State"), kind: "w-l", render: (route) => <RouteState route={route} /> },
                ...(routes.some(({ status }) => status.canary !== undefined)
                  ? [
                      {
                        title: t("Canary"),
                        kind: "w-m",
                        render: (route: Route) => (
                          <RollBack route={route} onDone={() => void loaded.reload()} />
                        ),
                      },
                    ]
                  : []),
              ]}
            />
          )
        }
      </Loading>
    </Split>
  );
}
