// Keys that encrypt objects: named keys with their versions, the key of SSE-S3 and the master key; new, rotated, disabled, deleted.
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatDate, formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callBeside } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section, SelectField, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { ADMINISTER } from "./permission.ts";

type Keys = Answer<"vault", "GET //admin/encryption-keys">;
type Key = Keys["items"][number];
type Version = Key["versions"][number];

const PATH = "/admin/encryption-keys";
const REFRESH_MS = 5_000;
/** Objects are counted up to this number. */
const COUNTED_MAX = 10_000;
const DAYS = { min: 7, max: 30 };

const KINDS: Readonly<Record<Key["state"], StateKind>> = {
  enabled: "ok",
  disabled: "off",
  pending_deletion: "bad",
};

function describeState({ state, delete_at: at }: Key): string {
  const words: Record<Key["state"], string> = {
    enabled: t("Active"),
    disabled: t("Disabled"),
    pending_deletion: t("Deletion on {date}", { date: formatDate(at) }),
  };
  return words[state];
}

/** Objects under all versions of a key. */
function countObjects(versions: readonly Version[]): string {
  const most = versions.some(({ objects }) => objects >= COUNTED_MAX);
  const all = versions.reduce((sum, { objects }) => sum + objects, 0);
  return `${most ? "≥ " : ""}${formatNumber(all)}`;
}

async function operate(name: string, action: "rotate" | "disable" | "enable"): Promise<void> {
  await callBeside("vault", `${PATH}/${segment(name)}/${action}`, { method: "POST", json: {} });
}

export function EncryptionPage() {
  useCrumbs([{ label: t("Storage") }, { label: t("Encryption keys") }]);
  const [isCreating, setCreating] = useState(false);
  const loaded = useLoad(
    "encryption keys",
    async () => callBeside<Keys>("vault", PATH),
    REFRESH_MS,
  );
  const create = (): void => setCreating(true);
  useCommands([
    { label: t("New encryption key"), key: "n", icon: "plus", needs: ADMINISTER, run: create },
  ]);
  const selected = queryValue("sel");
  const key = loaded.data.value?.items.find(({ id }) => id === selected);
  const reload = async (): Promise<void> => loaded.reload();
  return (
    <Split
      pane={key === undefined ? undefined : <KeyPane key={key.id} of={key} onChanged={reload} />}
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title
        actions={
          <Action onClick={create} needs={ADMINISTER} kind="primary" icon="plus">
            {t("New key")}
          </Action>
        }
      >
        {t("Encryption keys")}
      </Title>
      <Loading of={loaded}>
        {(keys) => (
          <>
            <KeyTable keys={keys.items} selected={selected} />
            <OwnKeys keys={keys} onChanged={reload} />
          </>
        )}
      </Loading>
      {isCreating && <NewKey onClose={() => setCreating(false)} onCreated={reload} />}
    </Split>
  );
}

function KeyTable({ keys, selected }: { keys: readonly Key[]; selected: string }) {
  if (keys.length === 0) {
    return (
      <Empty title={t("No named keys yet")}>
        <p>
          {t(
            "Objects are encrypted with one on request (aws:kms), or by the default of their bucket.",
          )}
        </p>
      </Empty>
    );
  }
  return (
    <Table
      label={t("Encryption keys")}
      rows={keys}
      idOf={({ id }) => id}
      selected={selected}
      onSelect={({ id }) => setQuery({ sel: id })}
      isTall
      columns={[
        {
          title: t("Name"),
          sort: ({ name }) => name,
          render: ({ name, description }) => (
            <span class="two">
              <b class="mono">{name}</b>
              <small title={description}>{description}</small>
            </span>
          ),
        },
        {
          title: t("State"),
          kind: "w-l",
          render: (key) => <State kind={KINDS[key.state]}>{describeState(key)}</State>,
        },
        {
          title: t("Objects"),
          kind: "w-s wide-only",
          isNumber: true,
          render: ({ versions }) => countObjects(versions),
        },
        {
          title: t("Rotated"),
          kind: "w-m wide-only",
          isNumber: true,
          render: ({ versions }) => formatDate(versions[0]?.created_at),
        },
      ]}
    />
  );
}

/** The keys that storage has without being asked: that of SSE-S3 and the master key. */
function OwnKeys({ keys, onChanged }: { keys: Keys; onChanged: () => Promise<void> }) {
  const { master, sse_s3: storage, secret_service: service } = keys;
  const sources: Readonly<Record<Keys["master"]["source"], string>> = {
    file: t("a file of the data folder"),
    setting: t("the configuration"),
    secret_service: t("the secret service"),
  };
  const rotate = (name: "sse-s3" | "master") => (): void =>
    void attempt(async () => {
      await operate(name, "rotate");
      say(t("There is a new version; keys of objects are wrapped again by the job rewrap."));
      await onChanged();
    });
  return (
    <Section title={t("Keys of storage itself")}>
      {service.fault !== null && <p class="bad">{service.fault}</p>}
      <Facts>
        <FactRow term={t("SSE-S3")}>
          {t("{n} objects, version of {date}", {
            n: countObjects(storage.versions),
            date: formatDate(storage.versions[0]?.created_at),
          })}{" "}
          <Action kind="quiet" onClick={rotate("sse-s3")} needs={ADMINISTER}>
            {t("Rotate the key of SSE-S3")}
          </Action>
        </FactRow>
        <FactRow term={t("Master key")}>
          {sources[master.source]}, <span class="mono">{master.id}</span>{" "}
          <Action
            kind="quiet"
            onClick={rotate("master")}
            needs={ADMINISTER}
            blocked={
              master.source !== "setting"
                ? undefined
                : t("platform-vaultd rotate-master-key rotates it while storage is stopped")
            }
          >
            {t("Rotate the master key")}
          </Action>
        </FactRow>
      </Facts>
    </Section>
  );
}

function KeyPane({ of: key, onChanged }: { of: Key; onChanged: () => Promise<void> }) {
  const [isDeleting, setDeleting] = useState(false);
  const { name } = key;
  const run = (action: "rotate" | "disable" | "enable") => (): void =>
    void attempt(async () => {
      await operate(key.id, action);
      await onChanged();
    });
  return (
    <>
      <Section title={name}>
        <Facts>
          <FactRow term={t("State")}>{describeState(key)}</FactRow>
          <FactRow term="ARN" isMono>
            <span class="wrap">{key.arn}</span>
          </FactRow>
          <FactRow term={t("Alias")} isMono>
            {key.alias}
          </FactRow>
          <FactRow term={t("Source")}>
            {key.source === "local" ? t("storage") : t("the secret service")}
          </FactRow>
        </Facts>
        <p class="acts">
          <Action
            onClick={run("rotate")}
            needs={ADMINISTER}
            icon="again"
            blocked={key.state === "enabled" ? undefined : t("The key is disabled")}
          >
            {t("Rotate")}
          </Action>
          {key.state === "enabled" ? (
            <Action onClick={run("disable")} needs={ADMINISTER}>
              {t("Disable")}
            </Action>
          ) : (
            <Action onClick={run("enable")} needs={ADMINISTER}>
              {t("Enable")}
            </Action>
          )}
          {key.state !== "pending_deletion" && (
            <Action onClick={() => setDeleting(true)} needs={ADMINISTER} kind="bad">
              {t("Delete…")}
            </Action>
          )}
        </p>
        <p class="hint">
          {t("Objects under a disabled key can be neither read nor written until it is enabled.")}
        </p>
      </Section>
      <Section title={t("Versions")} note={t("the newest first")}>
        <Versions of={key.versions} />
      </Section>
      {isDeleting && (
        <DeleteKey of={key} onClose={() => setDeleting(false)} onDeleted={onChanged} />
      )}
    </>
  );
}

function Versions({ of: versions }: { of: readonly Version[] }) {
  return (
    <ul class="plain-list">
      {versions.map((version) => (
        <li key={version.id}>
          <span class="mono">{version.id}</span>{" "}
          <span class="i2">
            {t("{date}, {n} objects", {
              date: formatDate(version.created_at),
              n: formatNumber(version.objects),
            })}
          </span>
          {!version.available && <span class="bad"> {t("cannot be read now")}</span>}
        </li>
      ))}
    </ul>
  );
}

function DeleteKey(props: { of: Key; onClose: () => void; onDeleted: () => Promise<void> }) {
  const { id, name, versions } = props.of;
  const [days, setDays] = useState(String(DAYS.max));
  return (
    <ConfirmDialog
      title={t("Delete {name}", { name })}
      name={name}
      submit={t("Delete")}
      onClose={props.onClose}
      onSubmit={async () => {
        const path = `${PATH}/${segment(id)}?days=${encodeURIComponent(days)}`;
        await callBeside("vault", path, { method: "DELETE" });
        await props.onDeleted();
      }}
    >
      <p>
        {t(
          "{n} objects need it and cannot be read from now on. It is deleted after the days below, at the earliest when no object needs it; until then it can be enabled again.",
          { n: countObjects(versions) },
        )}
      </p>
      <TextField
        label={t("Days ({min} to {max})", DAYS)}
        name="days"
        type="number"
        value={days}
        onInput={setDays}
        required
      />
    </ConfirmDialog>
  );
}

function NewKey(props: { onClose: () => void; onCreated: () => Promise<void> }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [source, setSource] = useState("local");
  return (
    <FormDialog
      title={t("New encryption key")}
      submit={t("Create")}
      onClose={props.onClose}
      onSubmit={async () => {
        const json = { name, description, source };
        await callBeside("vault", PATH, { method: "POST", json });
        await props.onCreated();
      }}
    >
      <TextField label={t("Name")} name="name" value={name} onInput={setName} isMono required />
      <TextField
        label={t("Description")}
        name="description"
        value={description}
        onInput={setDescription}
      />
      <SelectField
        label={t("Source")}
        value={source}
        options={[
          ["local", t("storage")],
          ["secret_service", t("the secret service")],
        ]}
        onChange={setSource}
      />
    </FormDialog>
  );
}
