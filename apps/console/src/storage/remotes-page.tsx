// Remotes: other S3 stores that objects are moved and replicated to, with a check of each; and the buckets that are theirs.
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatAgo, formatBytes, formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callBeside } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section, SelectField, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { ADMINISTER } from "./permission.ts";
import { describeRemoteState, REMOTE_STATES } from "./remote-state.ts";

type Remote = Answer<"vault", "GET //admin/remotes">["items"][number];
type Report = Answer<"vault", "POST //admin/remotes/{name}/check">;
type Step = Report["steps"][number];
type Rule = Answer<"vault", "GET //admin/federation">["items"][number];

const REMOTES = "/admin/remotes";
const FEDERATION = "/admin/federation";
const REFRESH_MS = 5_000;

const OUTCOMES: Readonly<Record<Step["outcome"], StateKind>> = {
  ok: "ok",
  warning: "warn",
  failed: "bad",
  skipped: "off",
};

function describeStep(step: Step["step"]): string {
  const words: Record<Step["step"], string> = {
    bucket: t("Bucket"),
    put: t("Write"),
    ranged_get: t("Read a range"),
    checksum: t("Checksum"),
    delete: t("Delete"),
    versioning: t("Versions"),
    object_lock: t("Object lock"),
    lifecycle: t("Lifecycle"),
  };
  return words[step];
}

export function RemotesPage() {
  useCrumbs([{ label: t("Storage") }, { label: t("Remotes") }]);
  const [isCreating, setCreating] = useState(false);
  const loaded = useLoad(
    "remotes",
    async () => (await callBeside<Answer<"vault", "GET //admin/remotes">>("vault", REMOTES)).items,
    REFRESH_MS,
  );
  const create = (): void => setCreating(true);
  useCommands([{ label: t("New remote"), key: "n", icon: "plus", needs: ADMINISTER, run: create }]);
  const selected = queryValue("sel");
  const remote = loaded.data.value?.find(({ name }) => name === selected);
  const reload = async (): Promise<void> => loaded.reload();
  return (
    <Split
      pane={
        remote === undefined ? undefined : (
          <RemotePane key={remote.name} remote={remote} onChanged={reload} />
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title
        actions={
          <Action onClick={create} needs={ADMINISTER} kind="primary" icon="plus">
            {t("New remote")}
          </Action>
        }
      >
        {t("Remotes")}
      </Title>
      <Loading of={loaded}>
        {(remotes) => <RemoteTable remotes={remotes} selected={selected} />}
      </Loading>
      <Federation remotes={(loaded.data.value ?? []).map(({ name }) => name)} />
      {isCreating && <NewRemote onClose={() => setCreating(false)} onCreated={reload} />}
    </Split>
  );
}

function RemoteTable({ remotes, selected }: { remotes: readonly Remote[]; selected: string }) {
  if (remotes.length === 0) {
    return (
      <Empty title={t("No remotes yet")}>
        <p>{t("Another S3 store, for cold objects, second copies and buckets that are there.")}</p>
      </Empty>
    );
  }
  return (
    <Table
      label={t("Remotes")}
      rows={remotes}
      idOf={({ name }) => name}
      selected={selected}
      onSelect={({ name }) => setQuery({ sel: name })}
      isTall
      columns={[
        {
          title: t("Name"),
          sort: ({ name }) => name,
          render: ({ name, endpoint }) => (
            <span class="two">
              <b class="mono">{name}</b>
              <small class="mono">{endpoint}</small>
            </span>
          ),
        },
        {
          title: t("State"),
          kind: "w-l",
          render: ({ state }) => (
            <State kind={REMOTE_STATES[state]}>{describeRemoteState(state)}</State>
          ),
        },
        {
          title: t("Objects"),
          kind: "w-s wide-only",
          isNumber: true,
          render: ({ blobs }) => formatNumber(blobs),
        },
        {
          title: t("Size"),
          kind: "w-s wide-only",
          isNumber: true,
          render: ({ bytes }) => formatBytes(bytes),
        },
      ]}
    />
  );
}

function RemotePane({ remote, onChanged }: { remote: Remote; onChanged: () => Promise<void> }) {
  const [isChecking, setChecking] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const { name } = remote;
  return (
    <>
      <Section title={name}>
        <Facts>
          <FactRow term={t("State")}>
            {describeRemoteState(remote.state)}
            {remote.state_at !== null && ` · ${formatAgo(remote.state_at)}`}
          </FactRow>
          <FactRow term={t("Address")} isMono>
            <span class="wrap">{remote.endpoint}</span>
          </FactRow>
          <FactRow term={t("Region")} isMono>
            {remote.region}
          </FactRow>
          <FactRow term={t("Access key")} isMono>
            {remote.access_key}
          </FactRow>
          <FactRow term={t("Buckets that may use it")} isMono>
            {remote.allow.length === 0 ? "–" : remote.allow.join(", ")}
          </FactRow>
          <FactRow term={t("Limit")}>
            {remote.rate_bytes === 0
              ? t("no limit")
              : t("{size} a second", { size: formatBytes(remote.rate_bytes) })}
          </FactRow>
        </Facts>
        {remote.reason !== null && <p class="bad wrap">{remote.reason}</p>}
        <p class="acts">
          <Action onClick={() => setChecking(true)} needs={ADMINISTER} icon="again">
            {t("Check…")}
          </Action>
          <Action onClick={() => setDeleting(true)} needs={ADMINISTER} kind="bad">
            {t("Remove…")}
          </Action>
        </p>
      </Section>
      {isChecking && <CheckDialog remote={remote} onClose={() => setChecking(false)} />}
      {isDeleting && (
        <ConfirmDialog
          title={t("Remove {name}", { name })}
          name={name}
          submit={t("Remove")}
          onClose={() => setDeleting(false)}
          onSubmit={async () => {
            await callBeside("vault", `${REMOTES}/${segment(name)}`, { method: "DELETE" });
            await onChanged();
          }}
        >
          <p>{t("It is refused while objects, a cold tier or deletions use it.")}</p>
        </ConfirmDialog>
      )}
    </>
  );
}

/** Writes, reads and deletes an object there, and shows each step. */
function CheckDialog({ remote, onClose }: { remote: Remote; onClose: () => void }) {
  const [bucket, setBucket] = useState(remote.bucket ?? "");
  const [report, setReport] = useState<Report | undefined>(undefined);
  return (
    <FormDialog
      title={t("Check {name}", { name: remote.name })}
      submit={t("Check")}
      onClose={onClose}
      onSubmit={async () => {
        setReport(undefined);
        const path = `${REMOTES}/${segment(remote.name)}/check`;
        const json = { bucket };
        setReport(await callBeside<Report>("vault", path, { method: "POST", json }));
        return STAY_OPEN;
      }}
    >
      <p>{t("An object is written into the bucket there, read and deleted again.")}</p>
      <TextField
        label={t("Bucket")}
        name="bucket"
        value={bucket}
        onInput={setBucket}
        isMono
        required
      />
      {report !== undefined && (
        <ul class="plain-list" role="status">
          {report.steps.map(({ step, outcome, detail }) => (
            <li key={step}>
              <State kind={OUTCOMES[outcome]}>{describeStep(step)}</State>{" "}
              <span class="i2 wrap">{detail}</span>
            </li>
          ))}
        </ul>
      )}
    </FormDialog>
  );
}

function NewRemote(props: { onClose: () => void; onCreated: () => Promise<void> }) {
  const [draft, setDraft] = useState({
    name: "",
    endpoint: "",
    region: "us-east-1",
    access_key: "",
    secret_key: "",
  });
  const labels: Readonly<Record<keyof typeof draft, string>> = {
    name: t("Name"),
    endpoint: t("Address"),
    region: t("Region"),
    access_key: t("Access key"),
    secret_key: t("Secret key"),
  };
  return (
    <FormDialog
      title={t("New remote")}
      submit={t("Add")}
      onClose={props.onClose}
      onSubmit={async () => {
        await callBeside("vault", REMOTES, { method: "POST", json: draft });
        await props.onCreated();
      }}
    >
      {(Object.keys(labels) as (keyof typeof draft)[]).map((name) => (
        <TextField
          key={name}
          label={labels[name]}
          name={name}
          type={name === "secret_key" ? "password" : "text"}
          value={draft[name]}
          onInput={(value) => setDraft({ ...draft, [name]: value })}
          isMono
          required
          {...(name === "endpoint" ? { placeholder: "https://s3.example.org" } : {})}
        />
      ))}
    </FormDialog>
  );
}

/** Rules by which buckets are those of a remote. */
function Federation({ remotes }: { remotes: readonly string[] }) {
  const [isCreating, setCreating] = useState(false);
  const loaded = useLoad(
    "federation",
    async () =>
      (await callBeside<Answer<"vault", "GET //admin/federation">>("vault", FEDERATION)).items,
  );
  const remove = (rule: Rule) => (): void =>
    void attempt(async () => {
      await callBeside("vault", `${FEDERATION}/${segment(rule.id)}`, { method: "DELETE" });
      await loaded.reload();
    });
  return (
    <Section
      title={t("Federation")}
      note={t("buckets of remotes under their own names")}
      action={
        <Action
          kind="quiet"
          onClick={() => setCreating(true)}
          needs={ADMINISTER}
          blocked={remotes.length === 0 ? t("There is no remote yet") : undefined}
        >
          {t("New rule")}
        </Action>
      }
    >
      <Loading of={loaded}>
        {(rules) =>
          rules.length === 0 ? (
            <p class="lead">{t("All buckets are in this storage.")}</p>
          ) : (
            <ul class="plain-list">
              {rules.map((rule) => (
                <li key={rule.id}>
                  <span class="mono">{rule.prefix}*</span> → <span class="mono">{rule.remote}</span>{" "}
                  <Action kind="quiet" onClick={remove(rule)} needs={ADMINISTER}>
                    {t("Remove the rule {name}", { name: `${rule.prefix}*` })}
                  </Action>
                </li>
              ))}
            </ul>
          )
        }
      </Loading>
      {isCreating && (
        <NewRule
          remotes={remotes}
          onClose={() => setCreating(false)}
          onCreated={() => loaded.reload()}
        />
      )}
    </Section>
  );
}

function NewRule(props: {
  remotes: readonly string[];
  onClose: () => void;
  onCreated: () => Promise<void>;
}) {
  const [prefix, setPrefix] = useState("");
  const [remote, setRemote] = useState(props.remotes[0] ?? "");
  return (
    <FormDialog
      title={t("New rule")}
      submit={t("Add")}
      onClose={props.onClose}
      onSubmit={async () => {
        await callBeside("vault", FEDERATION, { method: "POST", json: { prefix, remote } });
        await props.onCreated();
      }}
    >
      <p>
        {t(
          "Requests about buckets whose names begin so are authorized here and passed on to the remote.",
        )}
      </p>
      <TextField
        label={t("Beginning of the names")}
        name="prefix"
        value={prefix}
        onInput={setPrefix}
        isMono
        required
      />
      <SelectField
        label={t("Remote")}
        value={remote}
        options={props.remotes.map((name) => [name, name] as const)}
        onChange={setRemote}
      />
    </FormDialog>
  );
}
