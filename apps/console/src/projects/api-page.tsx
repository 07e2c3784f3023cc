// The API of a project: its operations, and requests to it through the platform.
import { segment } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { FilterField } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { projectPath } from "./paths.ts";
import { TryPane, type Operation } from "./try-pane.tsx";

type Operations = Answer<"runtime", "GET /projects/{name}/operations">;

/** Operations of a project, and the pane that tries the chosen one. */
export function ApiPage({ project }: { project: string }) {
  useCrumbs([
    { label: t("Projects"), to: "/projects" },
    { label: project, to: projectPath(project) },
    { label: t("API") },
  ]);
  const loaded = useLoad(`operations ${project}`, (signal) =>
    callService<Operations>("runtime", `/projects/${segment(project)}/operations`, { signal }),
  );
  const chosen = loaded.data.value?.items.find((one) => idOf(one) === queryValue("op"));
  const filter = queryValue("filter");
  const docs = loaded.data.value?.docs;
  return (
    <Split
      isWide
      pane={
        chosen === undefined ? undefined : (
          <TryPane key={idOf(chosen)} project={project} operation={chosen} />
        )
      }
      onClosePane={() => setQuery({ op: undefined })}
    >
      <Title
        actions={
          docs === undefined ? undefined : (
            <a class="btn sm" href={docs}>
              {t("Open at its own host")}
            </a>
          )
        }
      >
        {t("API of {name}", { name: project })}
      </Title>
      <p class="lead api-lead">
        {t("Routes that need the project's own sign-in are tried at its own host.")}
      </p>
      <div class="bar">
        <FilterField
          label={t("Path or summary")}
          value={filter}
          onInput={(value) => setQuery({ filter: value }, { replace: true })}
        />
      </div>
      <Loading of={loaded}>
        {({ items }) => <OperationTable items={items} filter={filter} chosen={chosen} />}
      </Loading>
    </Split>
  );
}

function OperationTable(props: {
  items: readonly Operation[];
  filter: string;
  chosen: Operation | undefined;
}) {
  const { items, filter, chosen } = props;
  const wanted = filter.toLowerCase();
  const shown = items.filter(({ path, summary }) =>
    `${path} ${summary}`.toLowerCase().includes(wanted),
  );
  if (shown.length === 0) return <Empty title={t("No operation matches")} />;
  return (
    <Table
      label={t("Operations")}
      rows={shown}
      idOf={idOf}
      selected={chosen === undefined ? undefined : idOf(chosen)}
      onSelect={(one) => setQuery({ op: idOf(one) })}
      columns={[
        { title: t("Method"), kind: "w-s mono", render: ({ method }) => method },
        { title: t("Path"), kind: "mono", render: ({ path }) => <span title={path}>{path}</span> },
        { title: t("Summary"), kind: "wide-only", render: ({ summary }) => summary },
      ]}
    />
  );
}

function idOf({ method, path }: Operation): string {
  return `${method} ${path}`;
}
