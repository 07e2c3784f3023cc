// One route: its targets, canary, last errors and rules.
import { useMemo, useState } from "preact/hooks";
import { formatNumber, splitFigure } from "../format/format.ts";
import { href, navigate } from "../router/router.ts";
import {
  useCommands,
  useCrumbs,
  usePartTrace,
  type Fact,
  type TraceScope,
} from "../stage/stage.ts";
import { Menu, Tabs } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { JsonBlock } from "../view/json.tsx";
import { useLoad, type Loaded } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading, Missing } from "../view/problem.tsx";
import { runUnlessUndone } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { CanarySection, CanaryState } from "./canary.tsx";
import { LastErrors } from "./last-errors.tsx";
import { LiveRequests } from "./live-requests.tsx";
import { logPath } from "./requests.ts";
import { RouteEditor } from "./route-editor.tsx";
import { RouteCharts } from "./route-charts.tsx";
import {
  addUp,
  findLast,
  readSpan,
  RECENT,
  useRouteFigures,
  type RouteFigures,
  type RouteSeries,
  type Span,
} from "./route-figures.ts";
import {
  accessOf,
  CHANGE,
  deleteRoute,
  formatSettings,
  leaving,
  loadRoutes,
  nameOf,
  placeOf,
  projectOf,
  routePath,
  settingsOf,
  type Route,
} from "./routes.ts";
import { RouteRules } from "./route-rules.tsx";
import { TargetsTable } from "./targets-table.tsx";

const EVERY_MS = 2_000;
const DRAFT = { prefix: "/shop", target: "http://127.0.0.1:3000", strip_prefix: true };

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
        // While it is edited, the route may be renamed or deleted elsewhere: the editor says so.
        if (tab === "edit" && (route === undefined || projectOf(route) === undefined)) {
          return <Editing key={name} name={name} route={route} />;
        }
        if (route === undefined) return <MissingRoute name={name} />;
        return <RouteView route={route} tab={tab} of={loaded} />;
      }}
    </Loading>
  );
}

export function NewRoutePage() {
  useCrumbs([
    { label: t("Gateway"), to: "/gateway/routes" },
    { label: t("Routes"), to: "/gateway/routes" },
    { label: t("New route") },
  ]);
  return <RouteEditor draft={DRAFT} />;
}

function Editing(props: { name: string; route: Route | undefined }) {
  // The first version that was read is the origin of the changes.
  const [first] = useState(props);
  const { route } = first;
  if (route === undefined) return <MissingRoute name={props.name} />;
  return <RouteEditor base={{ settings: settingsOf(route), etag: route.status.etag ?? "" }} />;
}

function MissingRoute({ name }: { name: string }) {
  return (
    <Split>
      <Title isName>{name}</Title>
      <Missing to="/gateway/routes" label={t("All routes")}>
        <p>{t("The gateway has no route {name}.", { name })}</p>
      </Missing>
    </Split>
  );
}

function RouteView({ route, tab, of }: { route: Route; tab: string; of: Loaded<Route[]> }) {
  const [isDeleting, setDeleting] = useState(false);
  const name = nameOf(route);
  const { source, targets, canary } = route.status;
  const editPath = routePath(route, "edit");
  const project = projectOf(route);
  useCommands(
    project === undefined
      ? [
          {
            label: t("Edit {name}", { name }),
            key: "e",
            icon: "edit",
            run: () => navigate(editPath),
          },
          {
            label: t("Delete {name}", { name }),
            icon: "trash",
            needs: CHANGE,
            run: () => setDeleting(true),
          },
        ]
      : [],
  );
  return (
    <Split
      pane={
        <>
          {canary !== undefined && <CanarySection route={route} onDone={() => void of.reload()} />}
          <RouteRules route={route} />
        </>
      }
    >
      <Title
        isName
        tags={
          <>
            <span class="tag">{accessOf(route)}</span>
            {source === "configuration" && (
              <span class="tag tag-line">{t("from the configuration file")}</span>
            )}
            {canary !== undefined && <CanaryState canary={canary} />}
            {leaving.value.has(name) && <span class="tag tag-line">{t("being deleted")}</span>}
          </>
        }
        actions={
          <RouteActions
            route={route}
            isReadOnly={project !== undefined}
            onDelete={() => setDeleting(true)}
          />
        }
      >
        <span class="i3">{route.host}</span>
        {placeOf(route)}
      </Title>
      {project !== undefined && <ProjectNote project={project} place={route.declared_at} />}
      <Tabs
        label={t("Route")}
        tabs={[
          { to: routePath(route), label: t("Targets"), count: targets.length },
          { to: routePath(route, "json"), label: "JSON" },
        ]}
      />
      {tab === "json" ? (
        <div class="sec">
          <JsonBlock text={formatSettings(settingsOf(route))} />
        </div>
      ) : (
        <>
          <TargetFigures key={name} route={route} />
          <LastErrors route={route} />
          {route["access_log"] === true && <LiveRequests route={route} />}
        </>
      )}
      {isDeleting && <DeleteRoute route={route} onClose={() => setDeleting(false)} />}
    </Split>
  );
}

function RouteActions(props: { route: Route; isReadOnly: boolean; onDelete: () => void }) {
  const { route, isReadOnly, onDelete } = props;
  return (
    <>
      <a class="btn sm" href={href(logPath(route))}>
        {t("Log")}
      </a>
      {!isReadOnly && (
        <>
          <a class="btn sm" href={href(routePath(route, "edit"))}>
            {t("Edit")}
            <kbd>e</kbd>
          </a>
          <Menu
            label={t("More actions")}
            items={[
              {
                label: t("Delete the route…"),
                isBad: true,
                needs: CHANGE,
                onClick: onDelete,
              },
            ]}
          />
        </>
      )}
    </>
  );
}

/** The next version of the project would replace a change made here. */
function ProjectNote({ project, place }: { project: string; place: string | undefined }) {
  return (
    <p class="banner" role="status">
      {place === undefined
        ? t("The project {project} sets this route; it cannot be changed here.", { project })
        : t("The project {project} sets this route in {place}; it cannot be changed here.", {
            project,
            place,
          })}
    </p>
  );
}

function TargetFigures({ route }: { route: Route }) {
  const span = readSpan();
  const recent = useRouteFigures(route, RECENT);
  const series = recent.loaded.data.value;
  usePartTrace(useMemo(() => describeTrace(series), [series]));
  if (span === RECENT) return <Figures route={route} figures={recent} />;
  return <LongFigures key={span} route={route} span={span} />;
}

function LongFigures({ route, span }: { route: Route; span: Span }) {
  return <Figures route={route} figures={useRouteFigures(route, span)} />;
}

function Figures({ route, figures }: { route: Route; figures: RouteFigures }) {
  return (
    <>
      <RouteCharts figures={figures} />
      <TargetsTable route={route} figures={figures} />
    </>
  );
}

/** The trace of the route: attempts at its targets. */
function describeTrace(series: RouteSeries | undefined): TraceScope | undefined {
  if (series === undefined || series.targets.length === 0) return undefined;
  const values = addUp(series.targets.map(({ requests }) => requests));
  const failures = addUp(series.targets.map((target) => target.failures));
  const describeFact = (label: string, value: number | null, unit: string): Fact => {
    const [number, shown] = splitFigure(value, unit);
    return { label, value: number, unit: shown };
  };
  const failed = findLast(failures);
  return {
    label: t("This route"),
    service: "gate",
    values,
    failures,
    facts: [
      describeFact(t("requests"), findLast(values), "1/s"),
      describeFact("p50", findLast(series.p50_ms), "ms"),
      describeFact("p99", findLast(series.p99_ms), "ms"),
      { ...describeFact(t("errors"), failed, "1/s"), isBad: (failed ?? 0) > 0 },
    ],
  };
}

/** Says what will be gone; the route is deleted when the time to undo it is over. */
function DeleteRoute({ route, onClose }: { route: Route; onClose: () => void }) {
  const name = nameOf(route);
  const { targets, source } = route.status;
  return (
    <FormDialog
      title={t("Delete {name}", { name })}
      submit={t("Delete")}
      isDestructive
      onClose={onClose}
      onSubmit={async () => {
        deleteUnlessUndone(route);
        navigate("/gateway/routes");
        return await Promise.resolve();
      }}
    >
      <div class="lead">
        <p>
          {t(
            "Targets that get no more requests: {n}. Active requests, which end normally: {active}.",
            {
              n: targets.length,
              active: formatNumber(targets.reduce((sum, { active }) => sum + active, 0)),
            },
          )}
        </p>
        <p>{t("Further requests go to the next matching route, or get 404.")}</p>
        {source === "configuration" && (
          <p>{t("The configuration file keeps the route; the deletion is stored beside it.")}</p>
        )}
      </div>
    </FormDialog>
  );
}

function deleteUnlessUndone(route: Route): void {
  const name = nameOf(route);
  const setLeaving = (isLeaving: boolean): void => {
    const next = new Set(leaving.value);
    if (isLeaving) next.add(name);
    else next.delete(name);
    leaving.value = next;
  };
  setLeaving(true);
  runUnlessUndone({
    key: `route ${name}`,
    text: t("Deleting {name}", { name }),
    run: () => deleteRoute(route).finally(() => setLeaving(false)),
    onUndone: () => setLeaving(false),
  });
}
