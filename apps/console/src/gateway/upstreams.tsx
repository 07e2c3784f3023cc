// Targets of all routes.
import { formatNumber } from "../format/format.ts";
import { useCrumbs } from "../stage/stage.ts";
import { useLoad } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { loadRoutes, nameOf, type Target } from "./routes.ts";
import { TargetState } from "./routes-page.tsx";

/** Targets of all routes. */
export function UpstreamsPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("Upstreams") }]);
  const loaded = useLoad(
    "upstreams",
    async () => {
      const found = new Map<string, { target: Target; routes: string[] }>();
      for (const route of await loadRoutes()) {
        for (const target of route.status.targets) {
          const known = found.get(target.url) ?? { target, routes: [] };
          known.routes.push(nameOf(route));
          found.set(target.url, known);
        }
      }
      return [...found.values()];
    },
    2_000,
  );
  return (
    <Split>
      <Title>{t("Upstreams")}</Title>
      <Loading of={loaded}>
        {(list) => (
          <Table
            label={t("Upstreams")}
            rows={list}
            idOf={({ target }) => target.url}
            columns={[
              { title: t("Target"), kind: "mono", render: ({ target }) => target.url },
              {
                title: t("Routes"),
                kind: "mono wide-only",
                render: ({ routes }) => <span class="i2">{routes.join(", ")}</span>,
              },
              {
                title: t("Active"),
                kind: "w-s",
                isNumber: true,
                render: ({ target }) => formatNumber(target.active),
              },
              {
                title: t("State"),
                kind: "w-m",
                render: ({ target }) => <TargetState target={target} />,
              },
            ]}
          />
        )}
      </Loading>
    </Split>
  );
}
