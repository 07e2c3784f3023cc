// Routes of the gateway, and one route: targets, rules, configuration with a diff.
import { useState } from "preact/hooks";
import { formatNumber } from "../format/format.ts";
import { href, navigate, queryValue, setQuery } from "../router/router.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import {
  Action,
  AreaField,
  FactRow,
  Facts,
  FilterField,
  Menu,
  Section,
  Tabs,
} from "../view/controls.tsx";
import { ConfirmDialog, FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { Diff } from "../view/diff.tsx";
import { JsonBlock } from "../view/json.tsx";
import { useLoad, type Loaded } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { LastErrors } from "./last-errors.tsx";
import { logPath } from "./requests.ts";
import {
  deleteRoute,
  loadRoutes,
  nameOf,
  routePath,
  saveRoute,
  settingsOf,
  type Route,
  type Target,
} from "./routes.ts";

const EVERY_MS = 2_000;
const EXAMPLE = { prefix: "/shop", target: "http://127.0.0.1:3000", strip_prefix: true };

/** All routes. */
export function RoutesPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("Routes") }]);
  const [isCreating, setCreating] = useState(false);
  const filter = queryValue("filter");
  const loaded = useLoad("routes", loadRoutes, EVERY_MS);
  const create = (): void => setCreating(true);
  useCommands([{ label: t("New route"), key: "n", icon: "plus", run: create }]);
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
        <Action onClick={create} kind="primary" icon="plus" isSmall={false}>
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
                      {route.prefix}
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
                  render: ({ auth }) => <span class="tag">{auth?.type ?? "none"}</span>,
                },
                {
                  title: t("Active"),
                  kind: "w-xs wide-only",
                  isNumber: true,
                  render: ({ status }) =>
                    formatNumber(status.targets.reduce((sum, { active }) => sum + active, 0)),
                },
                { title: t("State"), kind: "w-m", render: (route) => <RouteState route={route} /> },
              ]}
            />
          )
        }
      </Loading>
      {isCreating && (
        <RouteEditor
          before=""
          text={JSON.stringify(EXAMPLE, null, 2)}
          onClose={() => setCreating(false)}
          onSaved={() => void loaded.reload()}
        />
      )}
    </Split>
  );
}

function RouteState({ route }: { route: Route }) {
  const bad = route.status.targets.filter(({ ejected, circuit }) => ejected || circuit === "open");
  if (bad.length === 0) return <State kind="ok">{t("Serving")}</State>;
  const isAll = bad.length === route.status.targets.length;
  return (
    <State kind={isAll ? "bad" : "warn"}>
      {t("{n} of {all} targets out", { n: bad.length, all: route.status.targets.length })}
    </State>
  );
}

/** One route. */
export function RoutePage({ name, tab }: { name: string; tab: string }) {
  useCrumbs([
    { label: t("Gateway"), to: "/gateway/routes" },
    { label: t("Routes"), to: "/gateway/routes" },
    { label: name, isName: true },
  ]);
  const loaded = useLoad("routes", loadRoutes, EVERY_MS);
  return (
    <Loading of={loaded}>
      {(routes) => {
        const route = routes.find((one) => nameOf(one) === name);
        if (route === undefined) {
          return (
            <Empty title={t("Not found")}>
              <p>{t("The gateway has no route {name}.", { name })}</p>
            </Empty>
          );
        }
        return <RouteView route={route} tab={tab} of={loaded} />;
      }}
    </Loading>
  );
}

function RouteView({ route, tab, of }: { route: Route; tab: string; of: Loaded<Route[]> }) {
  const [open, setOpen] = useState<"edit" | "delete" | undefined>(undefined);
  const name = nameOf(route);
  const settings = JSON.stringify(settingsOf(route), null, 2);
  const edit = (): void => setOpen("edit");
  useCommands([{ label: t("Edit {name}", { name }), key: "e", icon: "edit", run: edit }]);
  const isFile = route.status.source === "configuration";
  return (
    <Split pane={<Rules route={route} />}>
      <Title
        isName
        tags={
          <>
            <span class="tag">{route.auth?.type ?? "none"}</span>
            {isFile && <span class="tag tag-line">{t("from the configuration file")}</span>}
          </>
        }
        actions={
          <>
            <a class="btn sm" href={href(logPath(route))}>
              {t("Log")}
            </a>
            <Action onClick={edit} shortcut="e">
              {t("Edit")}
            </Action>
            <Menu
              label={t("More actions")}
              items={[
                { label: t("Delete the route…"), isBad: true, onClick: () => setOpen("delete") },
              ]}
            />
          </>
        }
      >
        <span class="i3">{route.host}</span>
        {route.prefix}
      </Title>
      <Tabs
        label={t("Route")}
        tabs={[
          { to: routePath(route), label: t("Targets"), count: route.status.targets.length },
          { to: routePath(route, "json"), label: "JSON" },
        ]}
      />
      {tab === "json" ? (
        <div class="sec">
          <JsonBlock text={settings} />
        </div>
      ) : (
        <>
          <Targets targets={route.status.targets} weights={route["targets_weighted"]} />
          <LastErrors route={route} />
        </>
      )}
      {open === "edit" && (
        <RouteEditor
          before={settings}
          text={settings}
          onClose={() => setOpen(undefined)}
          onSaved={() => void of.reload()}
        />
      )}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete {name}", { name })}
          name={name}
          submit={t("Delete")}
          onClose={() => setOpen(undefined)}
          onSubmit={async () => {
            await deleteRoute(route);
            navigate("/gateway/routes");
            say(t("The route {name} was deleted.", { name }));
          }}
        >
          <p>
            {t("Requests to it are answered with 404; {n} are active.", {
              n: route.status.targets.reduce((sum, { active }) => sum + active, 0),
            })}
          </p>
        </ConfirmDialog>
      )}
    </Split>
  );
}

function Targets({ targets, weights }: { targets: readonly Target[]; weights: unknown }) {
  const list = Array.isArray(weights) ? (weights as { url: string; weight: number }[]) : [];
  return (
    <Table
      label={t("Targets")}
      rows={targets}
      idOf={({ url }) => url}
      columns={[
        { title: t("Target"), kind: "mono", render: ({ url }) => url },
        {
          title: t("Weight"),
          kind: "w-s",
          isNumber: true,
          render: ({ url }) => list.find((one) => one.url === url)?.weight ?? "–",
        },
        {
          title: t("Active"),
          kind: "w-s",
          isNumber: true,
          render: ({ active }) => formatNumber(active),
        },
        { title: t("State"), kind: "w-l", render: (target) => <TargetState target={target} /> },
      ]}
    />
  );
}

/** State of a target: its circuit, and whether it was ejected. */
export function TargetState({ target }: { target: Target }) {
  if (target.ejected) return <State kind="bad">{t("ejected")}</State>;
  if (target.circuit === undefined || target.circuit === "closed")
    return <State kind="ok">{t("in use")}</State>;
  return (
    <State kind={target.circuit === "open" ? "bad" : "warn"}>
      {target.circuit === "open" ? t("circuit open") : t("circuit half open")}
    </State>
  );
}

const HIDDEN = new Set([
  "prefix",
  "host",
  "methods",
  "target",
  "targets",
  "targets_weighted",
  "status",
]);

function Rules({ route }: { route: Route }) {
  const rules = Object.entries(route).filter(([name]) => !HIDDEN.has(name));
  return (
    <Section title={t("Active rules")} note={route.status.source}>
      <Facts>
        {rules.map(([name, value]) => (
          <FactRow key={name} term={name.replaceAll("_", " ")} isMono>
            <span class="wrap">{typeof value === "string" ? value : JSON.stringify(value)}</span>
          </FactRow>
        ))}
      </Facts>
    </Section>
  );
}

function RouteEditor(props: {
  before: string;
  text: string;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [text, setText] = useState(props.text);
  const [isReviewed, setReviewed] = useState(false);
  return (
    <FormDialog
      title={props.before === "" ? t("New route") : t("Edit")}
      submit={isReviewed ? t("Save") : t("Review the change")}
      isWide
      onClose={props.onClose}
      onSubmit={async () => {
        const settings: unknown = JSON.parse(text);
        if (!isReviewed) {
          setReviewed(true);
          return STAY_OPEN;
        }
        await saveRoute(settings);
        return props.onSaved();
      }}
    >
      {isReviewed ? (
        <>
          <Diff before={props.before} after={text} />
          <button type="button" class="link" onClick={() => setReviewed(false)}>
            {t("Back to the editor")}
          </button>
        </>
      ) : (
        <AreaField label={t("Route as JSON")} value={text} rows={18} onInput={setText} />
      )}
    </FormDialog>
  );
}
