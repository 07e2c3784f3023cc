// Targets of all routes.
import { withQuery } from "../api/api.ts";
import { formatNumber } from "../format/format.ts";
import { href } from "../router/router.ts";
import { services } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { useLoad } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { loadRoutes, nameOf, type Target } from "./routes.ts";
import { TargetState } from "./route-state.tsx";

interface Upstream {
  target: Target;
  routes: string[];
}

/** Targets of all routes. */
export function UpstreamsPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("Upstreams") }]);
  const loaded = useLoad(
    "upstreams",
    async () => {
      const found = new Map<string, Upstream>();
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
  const hasLog = services.value.some(({ id }) => id === "runtime");
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
              ...(hasLog
                ? [
                    {
                      title: t("Log"),
                      kind: "w-s",
                      render: ({ target: { url } }: Upstream) => <LogLink text={url} />,
                    },
                  ]
                : []),
              {
                title: t("Active"),
                kind: "w-s wide-only",
                isNumber: true,
                render: ({ target }) => formatNumber(target.active),
              },
              {
                title: t("State"),
                kind: "w-l",
                render: ({ target }) => <TargetState target={target} />,
              },
            ]}
          />
        )}
      </Loading>
    </Split>
  );
}

/** Lines of the gateway that contain a text. */
function LogLink({ text }: { text: string }) {
  const to = withQuery("/runtime/logs", { service: "gate", q: text });
  return (
    <a class="btn sm" href={href(to)}>
      {t("Log")}
    </a>
  );
}
