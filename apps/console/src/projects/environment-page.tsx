// Variables of a project: which are set and by whom, and those that people set here.
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatDate } from "../format/format.ts";
import { callService, may } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, IconAction, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { projectPath } from "./paths.ts";

type Environment = Answer<"runtime", "GET /projects/{name}/environment">;
type Variable = Environment["items"][number];

const REFRESH_MS = 5_000;
/** Sets and removes variables. */
const NEEDED = "*:*";

/** In the order of the list. */
const SOURCES: readonly Variable["source"][] = ["own", "file", "platform", "shell"];

/** Explains the source of a variable. */
function describeSource(source: Variable["source"]): string {
  const words: Record<Variable["source"], string> = {
    platform: t("the platform"),
    own: t("set here"),
    file: t("the environment file"),
    shell: t("the shell that started it"),
  };
  return words[source];
}

export function EnvironmentPage({ project }: { project: string }) {
  useCrumbs([
    { label: t("Projects"), to: "/projects" },
    { label: project, to: projectPath(project) },
    { label: t("Environment") },
  ]);
  const path = `/projects/${segment(project)}/environment`;
  const loaded = useLoad(
    `environment ${project}`,
    async () => callService<Environment>("runtime", path),
    REFRESH_MS,
  );
  const [edited, setEdited] = useState<Variable | "new" | undefined>(undefined);
  const remove = async (name: string): Promise<void> => {
    await callService("runtime", `${path}/${segment(name)}`, { method: "DELETE" });
    say(t("{name} was removed.", { name }));
    await loaded.reload();
  };
  return (
    <Split>
      <Title
        actions={
          <Action onClick={() => setEdited("new")} icon="plus" needs={NEEDED}>
            {t("Set a variable…")}
          </Action>
        }
      >
        {t("Environment")}
      </Title>
      <p class="lead api-lead">
        {t(
          "Variables that a project's process gets. Those of the platform cannot be replaced; those set here replace the ones of the file and the shell. Values of secrets are never shown.",
        )}
      </p>
      <Loading of={loaded}>
        {({ items, restart_needed: isOld }) => (
          <>
            {isOld && <RestartNotice project={project} onRestarted={() => void loaded.reload()} />}
            <VariableTable
              items={items}
              onEdit={setEdited}
              onRemove={(name) => void attempt(async () => remove(name))}
            />
          </>
        )}
      </Loading>
      {edited !== undefined && (
        <VariableDialog
          path={path}
          variable={edited === "new" ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onSaved={() => loaded.reload()}
        />
      )}
    </Split>
  );
}

function RestartNotice({ project, onRestarted }: { project: string; onRestarted: () => void }) {
  const restart = async (): Promise<void> => {
    await callService("runtime", `/services/${segment(project)}/restart`, { method: "POST" });
    say(t("{name} restarts.", { name: project }));
    onRestarted();
  };
  return (
    <p class="banner" role="status">
      {t("The project runs with earlier variables.")}{" "}
      <Action onClick={() => void attempt(restart)} icon="again" needs="runtime:manage">
        {t("Restart it")}
      </Action>
    </p>
  );
}

function VariableTable(props: {
  items: readonly Variable[];
  onEdit: (variable: Variable) => void;
  onRemove: (name: string) => void;
}) {
  const { items, onEdit, onRemove } = props;
  const rows = SOURCES.flatMap((source) => items.filter((one) => one.source === source));
  const blocked = may(NEEDED) ? undefined : t("Requires the permission {name}", { name: NEEDED });
  return (
    <Table
      label={t("Variables")}
      rows={rows}
      idOf={({ name }) => name}
      columns={[
        { title: t("Name"), kind: "mono", render: ({ name }) => <span class="wrap">{name}</span> },
        {
          title: t("Value"),
          kind: "mono wide-only",
          render: ({ value, secret }) =>
            value !== null ? (
              <span title={value}>{value}</span>
            ) : (
              <span class="i3">{secret === true ? t("secret") : "–"}</span>
            ),
        },
        {
          title: t("Set by"),
          kind: "w-xl",
          render: ({ source, set_by: by, set_at: at }) =>
            by === null || at === null
              ? describeSource(source)
              : t("{name}, {date}", { name: by, date: formatDate(at) }),
        },
        {
          title: t("Actions"),
          kind: "w-m",
          render: (variable) =>
            variable.source === "own" && (
              <span class="acts">
                <IconAction
                  icon="edit"
                  label={t("Change {name}", { name: variable.name })}
                  title={t("Change")}
                  blocked={blocked}
                  onClick={() => onEdit(variable)}
                />
                <IconAction
                  icon="trash"
                  label={t("Remove {name}", { name: variable.name })}
                  title={t("Remove")}
                  blocked={blocked}
                  onClick={() => onRemove(variable.name)}
                />
              </span>
            ),
        },
      ]}
    />
  );
}

function VariableDialog(props: {
  path: string;
  /** Undefined for a new one. */
  variable: Variable | undefined;
  onClose: () => void;
  onSaved: () => Promise<void>;
}) {
  const { path, variable } = props;
  const [name, setName] = useState(variable?.name ?? "");
  const [value, setValue] = useState(variable?.value ?? "");
  const [isSecret, setSecret] = useState(variable?.secret ?? true);
  return (
    <FormDialog
      title={variable === undefined ? t("Set a variable") : t("Change {name}", { name })}
      submit={t("Set")}
      isDisabled={name === ""}
      onClose={props.onClose}
      onSubmit={async () => {
        const json = { value, secret: isSecret };
        await callService("runtime", `${path}/${segment(name)}`, { method: "PUT", json });
        await props.onSaved();
      }}
    >
      {variable === undefined && (
        <TextField
          label={t("Name")}
          name="variable"
          value={name}
          onInput={setName}
          isMono
          required
        />
      )}
      <AreaField label={t("Value")} value={value} onInput={setValue} rows={3} />
      <label class="check">
        <input type="checkbox" checked={isSecret} onChange={() => setSecret(!isSecret)} />
        <span>{t("A secret: stored encrypted, and never shown again")}</span>
      </label>
      <p class="hint">{t("The project has it from its next start.")}</p>
    </FormDialog>
  );
}
