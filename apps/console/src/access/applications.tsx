// Applications: programs with rights of their own at several services.
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatMoment } from "../format/format.ts";
import { href, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section, SelectField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { EnvironmentDialog } from "./environment-dialog.tsx";
import { NewApplication } from "./new-application.tsx";
import { ADD_APPLICATION } from "./permission.ts";

type Page = Answer<"runtime", "GET /applications">;
type Application = Page["items"][number];
type Renewed = Answer<"runtime", "POST /applications/{name}/secret">;
type Open = "add" | "secret" | "remove" | undefined;

const DAY_S = 86_400;

/** The list of applications. */
export function ApplicationsPage() {
  useCrumbs([{ label: t("Access"), to: "/access" }, { label: t("Applications") }]);
  const [open, setOpen] = useState<Open>(undefined);
  const cursor = queryValue("cursor");
  const loaded = useLoad(`applications ${cursor}`, (signal) =>
    callService<Page>("runtime", withQuery("/applications", { cursor }), { signal }),
  );
  const chosen = loaded.data.value?.items.find(({ name }) => name === queryValue("sel"));
  const close = (): void => setOpen(undefined);
  const add = { needs: ADD_APPLICATION, icon: "plus" as const };
  useCommands([{ ...add, label: t("Add application"), key: "n", run: () => setOpen("add") }]);
  return (
    <Split
      pane={chosen === undefined ? undefined : <ApplicationPane of={chosen} onOpen={setOpen} />}
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title
        actions={
          <Action {...add} kind="primary" onClick={() => setOpen("add")}>
            {t("Add application")}
          </Action>
        }
      >
        {t("Applications")}
      </Title>
      <Loading of={loaded}>
        {({ items, next_cursor: next }) => (
          <>
            {items.length === 0 && next === null ? (
              <Empty title={t("No application yet")}>
                <p>
                  {t(
                    "An application has a client, and a bucket, topics and mail if it needs them.",
                  )}
                </p>
              </Empty>
            ) : (
              <ApplicationTable items={items} chosen={chosen?.name} />
            )}
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
      <Dialogs open={open} chosen={chosen} onClose={close} onChanged={() => void loaded.reload()} />
    </Split>
  );
}

function Dialogs(props: {
  open: Open;
  chosen: Application | undefined;
  onClose: () => void;
  onChanged: () => void;
}) {
  const { open, chosen, onClose, onChanged } = props;
  if (open === "add") return <NewApplication onClose={onClose} onCreated={onChanged} />;
  if (chosen === undefined) return null;
  if (open === "secret") return <NewSecret name={chosen.name} onClose={onClose} />;
  if (open !== "remove") return null;
  return (
    <ConfirmDialog
      title={t("Remove {name}", { name: chosen.name })}
      name={chosen.name}
      submit={t("Remove")}
      onClose={onClose}
      onSubmit={async () => {
        await callService("runtime", applicationPath(chosen), { method: "DELETE" });
        setQuery({ sel: undefined });
        onChanged();
      }}
    >
      <p>
        {t("Its client, role, topic rules and keys end immediately. Its bucket and topics stay.")}
      </p>
    </ConfirmDialog>
  );
}

function applicationPath({ name }: Pick<Application, "name">): string {
  return `/applications/${segment(name)}`;
}

function ApplicationTable(props: { items: readonly Application[]; chosen: string | undefined }) {
  return (
    <Table
      label={t("Applications")}
      rows={props.items}
      idOf={({ name }) => name}
      selected={props.chosen}
      onSelect={({ name }) => setQuery({ sel: name })}
      isTall
      columns={[
        {
          title: t("Name"),
          render: ({ name, client_id: id }) => (
            <span class="two">
              <b>{name}</b>
              <small class="mono">{id}</small>
            </span>
          ),
        },
        {
          title: t("Kind"),
          kind: "w-l wide-only",
          render: ({ is_project: isProject }) =>
            isProject ? t("of a project") : t("added by hand"),
        },
        {
          title: t("Sign-in of users"),
          kind: "w-xl mono wide-only",
          render: ({ redirect_uris: [first] }) => <span title={first}>{first ?? "–"}</span>,
        },
      ]}
    />
  );
}

function ApplicationPane({ of, onOpen }: { of: Application; onOpen: (dialog: Open) => void }) {
  const blocked = of.is_project ? t("The project renews and removes it itself") : undefined;
  return (
    <Section title={of.name}>
      <Facts>
        <FactRow term="client_id" isMono>
          <a class="link" href={href(`/identity/clients?sel=${encodeURIComponent(of.client_id)}`)}>
            {of.client_id}
          </a>
        </FactRow>
        <FactRow term={t("Role")} isMono>
          {of.role}
        </FactRow>
        <FactRow term={t("Redirects")} isMono>
          {of.redirect_uris.length === 0
            ? "–"
            : of.redirect_uris.map((uri) => (
                <div key={uri} class="wrap">
                  {uri}
                </div>
              ))}
        </FactRow>
        <FactRow term={t("Scopes")} isMono>
          <span class="wrap">{of.scope || "–"}</span>
        </FactRow>
      </Facts>
      <div class="space" />
      <div class="acts">
        <Action needs={ADD_APPLICATION} blocked={blocked} onClick={() => onOpen("secret")}>
          {t("New secrets…")}
        </Action>
        <Action
          needs={ADD_APPLICATION}
          blocked={blocked}
          kind="bad"
          onClick={() => onOpen("remove")}
        >
          {t("Remove…")}
        </Action>
      </div>
    </Section>
  );
}

function NewSecret({ name, onClose }: { name: string; onClose: () => void }) {
  const [overlap, setOverlap] = useState(String(DAY_S));
  const [renewed, setRenewed] = useState<Renewed | undefined>(undefined);
  if (renewed !== undefined) {
    const end = formatMoment(renewed.former_ends_at);
    return (
      <EnvironmentDialog
        title={t("New secrets of {name}", { name })}
        name={name}
        files={renewed.files}
        note={
          overlap === "0"
            ? t("Replace these variables in its environment file. The former secrets have ended.")
            : t("Replace these variables in its environment file before {time}.", { time: end })
        }
        onClose={onClose}
      />
    );
  }
  return (
    <FormDialog
      title={t("New secrets of {name}", { name })}
      submit={t("Replace")}
      createsSecret
      onClose={onClose}
      onSubmit={async () => {
        const json = { overlap_seconds: Number(overlap) };
        const path = `${applicationPath({ name })}/secret`;
        setRenewed(await callService("runtime", path, { method: "POST", json }));
        return STAY_OPEN;
      }}
    >
      <p>{t("The secret of its client and its key in storage are replaced.")}</p>
      <SelectField
        label={t("The former ones are accepted")}
        value={overlap}
        options={[
          ["3600", t("for an hour")],
          [String(DAY_S), t("for a day")],
          [String(7 * DAY_S), t("for seven days")],
          ["0", t("no longer")],
        ]}
        onChange={setOverlap}
      />
    </FormDialog>
  );
}
