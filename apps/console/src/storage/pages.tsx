// The pages of storage: buckets with their use, users and keys, drives.
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatBytes, formatNumber } from "../format/format.ts";
import { path, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs, useTrace } from "../stage/stage.ts";
import { Action, FactRow, Facts, FilterField, Section, TextField } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { ConfirmDialog, Dialog, FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { DrivesPage } from "./drives.tsx";

interface Usage {
  bucket: string;
  objects: number;
  versions: number;
  bytes: number;
  uploads: number;
  upload_bytes: number;
  quota: { max_bytes: number | null; max_objects: number | null } | null;
}

/** The page of the current path. */
export default function StoragePages() {
  useTrace({ label: t("Storage"), service: "vault", figure: "requests", errors: "errors" });
  if (path.value === "/storage/users") return <KeysPage />;
  if (path.value === "/storage/drives") return <DrivesPage />;
  return <BucketsPage />;
}

function BucketsPage() {
  useCrumbs([{ label: t("Storage") }, { label: t("Buckets") }]);
  const [open, setOpen] = useState<"create" | "quota" | undefined>(undefined);
  const filter = queryValue("filter");
  const loaded = useLoad(
    "usage",
    () => callService<{ items: Usage[] }>("vault", withQuery("/usage", { limit: 200 })),
    5_000,
  );
  const fromPath = path.value.startsWith("/storage/buckets/")
    ? decodeURIComponent(path.value.slice("/storage/buckets/".length))
    : "";
  const selected = queryValue("sel") || fromPath;
  const bucket = loaded.data.value?.items.find((one) => one.bucket === selected);
  return (
    <Split
      pane={
        bucket === undefined ? undefined : (
          <BucketPane bucket={bucket} onQuota={() => setOpen("quota")} />
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <h1 class="hidden">{t("Buckets")}</h1>
      <div class="bar">
        <FilterField
          label={t("Name")}
          value={filter}
          isMono
          onInput={(value) => setQuery({ filter: value }, { replace: true })}
        />
        <Action onClick={() => setOpen("create")} kind="primary" icon="plus" isSmall={false}>
          {t("New bucket")}
        </Action>
      </div>
      <Loading of={loaded}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={t("No buckets yet")}>
              <p>{t("Any S3 client works, with the keys in data/credentials.env.")}</p>
            </Empty>
          ) : (
            <Table
              label={t("Buckets")}
              rows={items.filter((one) => one.bucket.includes(filter))}
              idOf={(one) => one.bucket}
              selected={selected}
              onSelect={(one) => setQuery({ sel: one.bucket })}
              columns={[
                {
                  title: t("Name"),
                  kind: "mono",
                  sort: (one) => one.bucket,
                  render: (one) => one.bucket,
                },
                {
                  title: t("Objects"),
                  kind: "w-s",
                  isNumber: true,
                  sort: (one) => one.objects,
                  render: (one) => formatNumber(one.objects),
                },
                {
                  title: t("Size"),
                  kind: "w-s",
                  isNumber: true,
                  sort: (one) => one.bytes,
                  render: (one) => formatBytes(one.bytes),
                },
                {
                  title: t("Quota"),
                  kind: "w-m wide-only",
                  isNumber: true,
                  render: (one) => formatBytes(one.quota?.max_bytes),
                },
              ]}
            />
          )
        }
      </Loading>
      {open === "create" && (
        <NameDialog
          title={t("New bucket")}
          onClose={() => setOpen(undefined)}
          onSubmit={async (name) => {
            await callService("vault", "/buckets", { method: "POST", json: { name } });
            await loaded.reload();
          }}
        />
      )}
      {open === "quota" && bucket !== undefined && (
        <QuotaDialog
          bucket={bucket}
          onClose={() => setOpen(undefined)}
          onSaved={() => void loaded.reload()}
        />
      )}
    </Split>
  );
}

function BucketPane({ bucket, onQuota }: { bucket: Usage; onQuota: () => void }) {
  const { quota } = bucket;
  return (
    <>
      <Section title={bucket.bucket}>
        <Facts>
          <FactRow term={t("Objects")}>{formatNumber(bucket.objects)}</FactRow>
          <FactRow term={t("Versions")}>{formatNumber(bucket.versions)}</FactRow>
          <FactRow term={t("Size")}>{formatBytes(bucket.bytes)}</FactRow>
          <FactRow term={t("Uploads")}>
            {formatNumber(bucket.uploads)}, {formatBytes(bucket.upload_bytes)}
          </FactRow>
        </Facts>
      </Section>
      <Section title={t("Quota")} action={<Action onClick={onQuota}>{t("Change")}</Action>}>
        <Facts>
          <FactRow term={t("Size")}>{formatBytes(quota?.max_bytes)}</FactRow>
          <FactRow term={t("Objects")}>{formatNumber(quota?.max_objects)}</FactRow>
        </Facts>
      </Section>
    </>
  );
}

function QuotaDialog(props: { bucket: Usage; onClose: () => void; onSaved: () => void }) {
  const { bucket, quota } = props.bucket;
  const [gigabytes, setGigabytes] = useState(
    quota?.max_bytes === null || quota === null ? "" : String((quota?.max_bytes ?? 0) / 1e9),
  );
  return (
    <FormDialog
      title={t("Quota of {name}", { name: bucket })}
      submit={t("Save")}
      onClose={props.onClose}
      onSubmit={async () => {
        const target = `/buckets/${segment(bucket)}/quota`;
        if (gigabytes === "") await callService("vault", target, { method: "DELETE" });
        else {
          const json = { max_bytes: Math.round(Number(gigabytes) * 1e9) };
          await callService("vault", target, { method: "PUT", json });
        }
        props.onSaved();
      }}
    >
      <TextField
        label={t("Gigabytes")}
        value={gigabytes}
        onInput={setGigabytes}
        hint={t("Empty: unlimited")}
      />
    </FormDialog>
  );
}

function NameDialog(props: {
  title: string;
  onClose: () => void;
  onSubmit: (name: string) => Promise<void>;
}) {
  const [name, setName] = useState("");
  return (
    <FormDialog
      title={props.title}
      submit={t("Create")}
      onClose={props.onClose}
      onSubmit={() => props.onSubmit(name)}
    >
      <TextField label={t("Name")} value={name} onInput={setName} isMono required />
    </FormDialog>
  );
}

interface AccessKey {
  access_key: string;
  user: string;
  enabled: boolean;
  description?: string;
  created_at?: string;
}

function KeysPage() {
  useCrumbs([{ label: t("Storage") }, { label: t("Users and keys") }]);
  const [open, setOpen] = useState<"user" | "key" | undefined>(undefined);
  const [created, setCreated] = useState<{ access_key: string; secret_key: string } | undefined>(
    undefined,
  );
  const [deleted, setDeleted] = useState<string | undefined>(undefined);
  const keys = useLoad(
    "keys",
    async () => (await callService<{ keys: AccessKey[] }>("vault", "/keys")).keys,
  );
  const toggle = ({ access_key: id, enabled }: AccessKey): void => {
    void attempt(async () => {
      const json = { enabled: !enabled };
      await callService("vault", `/keys/${segment(id)}`, { method: "PATCH", json });
      await keys.reload();
    });
  };
  return (
    <Split>
      <Title
        actions={
          <>
            <Action onClick={() => setOpen("user")}>{t("New user")}</Action>
            <Action onClick={() => setOpen("key")} kind="primary" icon="plus">
              {t("New key")}
            </Action>
          </>
        }
      >
        {t("Users and keys")}
      </Title>
      <Loading of={keys}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t("No keys yet")}>
              <p>
                {t("The root key is in the configuration; programs get keys of their own here.")}
              </p>
            </Empty>
          ) : (
            <Table
              label={t("Users and keys")}
              rows={list}
              idOf={(key) => key.access_key}
              columns={[
                { title: t("Access key"), kind: "mono", render: (key) => key.access_key },
                { title: t("User"), kind: "w-m mono", render: (key) => key.user },
                {
                  title: t("State"),
                  kind: "w-s wide-only",
                  render: (key) => (
                    <State kind={key.enabled ? "ok" : "off"}>
                      {key.enabled ? t("Active") : t("Disabled")}
                    </State>
                  ),
                },
                {
                  title: t("Actions"),
                  kind: "w-l num",
                  render: (key) => (
                    <span class="acts">
                      <Action onClick={() => toggle(key)}>
                        {key.enabled ? t("Disable") : t("Enable")}
                      </Action>
                      <Action onClick={() => setDeleted(key.access_key)} kind="bad">
                        {t("Delete…")}
                      </Action>
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </Loading>
      {open === "user" && (
        <NameDialog
          title={t("New user")}
          onClose={() => setOpen(undefined)}
          onSubmit={async (name) => {
            await callService("vault", `/users/${segment(name)}`, { method: "PUT", json: {} });
          }}
        />
      )}
      {open === "key" && (
        <NameDialog
          title={t("New key of the user")}
          onClose={() => setOpen(undefined)}
          onSubmit={async (user) => {
            setCreated(await callService("vault", "/keys", { method: "POST", json: { user } }));
            await keys.reload();
          }}
        />
      )}
      {created !== undefined && (
        <Dialog title={t("New key")} onClose={() => setCreated(undefined)}>
          <div class="dialog-body">
            <p>{t("The secret is shown once.")}</p>
            {[created.access_key, created.secret_key].map((value) => (
              <div key={value} class="cmd">
                <code>{value}</code>
                <CopyButton text={value} />
              </div>
            ))}
          </div>
        </Dialog>
      )}
      {deleted !== undefined && (
        <ConfirmDialog
          title={t("Delete {name}", { name: deleted })}
          name={deleted}
          submit={t("Delete")}
          onClose={() => setDeleted(undefined)}
          onSubmit={async () => {
            await callService("vault", `/keys/${segment(deleted)}`, { method: "DELETE" });
            await keys.reload();
          }}
        >
          <p>{t("Programs that use it are refused immediately.")}</p>
        </ConfirmDialog>
      )}
    </Split>
  );
}
