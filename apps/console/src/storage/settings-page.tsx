// The settings of a bucket: versions, lock, tags and quota as forms, the others as JSON.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section, SelectField, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { TabbedPage } from "../view/tabbed-page.tsx";
import { t } from "../words/words.ts";
import { type FindDenial, useBucketDenials } from "./denials.ts";
import { bucketPath, folderHref, type Bucket } from "./objects.ts";
import { ColdTierState } from "./cold-tier-state.tsx";
import { QuotaSection } from "./quota.tsx";
import { ReplicationState } from "./replication-state.tsx";
import { readSetting, settingsHref, writeSetting, type StoredSetting } from "./setting.ts";
import { SettingEditor } from "./setting-editor.tsx";
import { listSettingKinds } from "./setting-kinds.ts";
import { TagDialog } from "./tag-dialog.tsx";

/** Limit of S3. */
const TAGS_MAX = 50;

export function SettingsPage({ bucket: name, tab }: { bucket: string; tab: string }) {
  useCrumbs([
    { label: t("Storage") },
    { label: t("Buckets"), to: "/storage/buckets" },
    { label: name, to: folderHref(name), isName: true },
    { label: t("Settings") },
  ]);
  const loaded = useLoad(`bucket ${name}`, (signal) =>
    callService<Bucket>("vault", bucketPath(name), { signal }),
  );
  const deny = useBucketDenials(name);
  const kinds = listSettingKinds();
  const kind = kinds.find((one) => one.name === tab);
  return (
    <TabbedPage
      name={name}
      tags={
        loaded.data.value?.has_public_policy === true ? (
          <span class="tag tag-warn">{t("public")}</span>
        ) : null
      }
      tab={tab}
      label={t("Settings")}
      tabs={[
        { to: settingsHref(name), label: t("General") },
        ...kinds.map((one) => ({ to: settingsHref(name, one.name), label: one.label })),
      ]}
    >
      <Split>
        <Loading of={loaded} whole={{ to: "/storage/buckets", label: t("All buckets") }}>
          {(bucket) =>
            kind === undefined ? (
              <General bucket={bucket} deny={deny} onSaved={() => loaded.reload()} />
            ) : (
              <>
                <SettingState bucket={bucket} kind={kind.name} denial={deny(kind.name)} />
                <SettingEditor
                  bucket={bucket}
                  kind={kind}
                  denial={deny(kind.name)}
                  onSaved={() => loaded.reload()}
                />
              </>
            )
          }
        </Loading>
      </Split>
    </TabbedPage>
  );
}

/** The work of a setting that acts by itself. */
function SettingState(props: { bucket: Bucket; kind: string; denial: string | undefined }) {
  const { bucket, kind, denial } = props;
  if (kind === "replication") return <ReplicationState bucket={bucket} />;
  return kind === "cold-tier" ? <ColdTierState bucket={bucket} denial={denial} /> : null;
}

interface PartProps {
  bucket: Bucket;
  deny: FindDenial<string>;
  onSaved: () => Promise<void>;
}

function General(props: PartProps) {
  return (
    <div class="narrow">
      <Versioning {...props} />
      <Lock {...props} />
      <Tags {...props} />
      <QuotaSection {...props} />
    </div>
  );
}

function Versioning({ bucket, deny, onSaved }: PartProps) {
  const [isOpen, setOpen] = useState(false);
  const isOn = bucket.versioning === "Enabled";
  return (
    <Section
      title={t("Versions")}
      note={isOn ? t("each write is kept") : t("a write replaces the object")}
      action={
        <Action
          kind="quiet"
          onClick={() => setOpen(true)}
          blocked={bucket.object_lock ? t("Object lock requires versions") : deny("versioning")}
        >
          {isOn ? t("Suspend") : t("Switch on")}
        </Action>
      }
    >
      {isOpen && (
        <FormDialog
          title={isOn ? t("Suspend versions") : t("Switch versions on")}
          submit={isOn ? t("Suspend") : t("Switch on")}
          isDestructive={isOn}
          onClose={() => setOpen(false)}
          onSubmit={async () => {
            const json = { Status: isOn ? "Suspended" : "Enabled" };
            await callService("vault", bucketPath(bucket.name, "/config/versioning"), {
              method: "PUT",
              json,
            });
            await onSaved();
          }}
        >
          <p class="lead">
            {isOn
              ? t("From now on a write or a deletion is final. Versions that exist stay.")
              : t(
                  "Each write and each deletion keeps what was there, and its bytes count. It cannot be switched off again, only suspended.",
                )}
          </p>
        </FormDialog>
      )}
    </Section>
  );
}

type LockDocument = Answer<"vault", "GET /buckets/{bucket}/config/lock">;

function Lock({ bucket, deny, onSaved }: PartProps) {
  const loaded = useLoad(`lock ${bucket.name}`, (signal) =>
    readSetting(bucket.name, "lock", signal),
  );
  const [isOpen, setOpen] = useState(false);
  return (
    <Section
      title={t("Object lock")}
      note={bucket.object_lock ? t("on") : t("off")}
      action={
        <Action
          kind="quiet"
          onClick={() => setOpen(true)}
          blocked={
            bucket.versioning === "Enabled" ? deny("lock") : t("Object lock requires versions")
          }
        >
          {bucket.object_lock ? t("Change") : t("Switch on")}
        </Action>
      }
    >
      <Loading of={loaded}>
        {(stored) => {
          const rule = readRule(stored);
          return (
            <>
              <Facts>
                <FactRow term={t("New objects")}>{describeRetention(rule)}</FactRow>
              </Facts>
              {isOpen && (
                <LockDialog
                  bucket={bucket}
                  stored={stored}
                  onClose={() => {
                    setOpen(false);
                    void loaded.reload();
                  }}
                  onSaved={onSaved}
                />
              )}
            </>
          );
        }}
      </Loading>
    </Section>
  );
}

function readRule({ document }: StoredSetting) {
  const { Rule: rule }: LockDocument = document ?? {};
  return rule?.DefaultRetention;
}

function describeRetention(rule: ReturnType<typeof readRule>) {
  if (rule === undefined) return t("not locked");
  const { Mode: mode = "", Days: days, Years: years } = rule;
  return days === undefined
    ? t("locked for {n} years ({mode})", { n: years ?? 0, mode })
    : t("locked for {n} days ({mode})", { n: days, mode });
}

function LockDialog(
  props: Omit<PartProps, "deny"> & { stored: StoredSetting; onClose: () => void },
) {
  const { bucket, stored } = props;
  const rule = readRule(stored);
  const [mode, setMode] = useState(rule?.Mode ?? "");
  const [unit, setUnit] = useState(rule?.Years === undefined ? "Days" : "Years");
  const [count, setCount] = useState(String(rule?.Years ?? rule?.Days ?? 30));
  return (
    <FormDialog
      title={t("Object lock of {name}", { name: bucket.name })}
      submit={t("Save")}
      isDestructive={!bucket.object_lock || mode === "COMPLIANCE"}
      onClose={props.onClose}
      onSubmit={async () => {
        const retention = { Mode: mode, [unit]: Number(count) };
        const document = {
          ObjectLockEnabled: "Enabled",
          ...(mode === "" ? {} : { Rule: { DefaultRetention: retention } }),
        };
        await writeSetting(bucket.name, "lock", document, stored.etag);
        await props.onSaved();
      }}
    >
      {!bucket.object_lock && (
        <p class="lead">{t("Object lock cannot be switched off again, and keeps versions on.")}</p>
      )}
      <SelectField
        label={t("New objects")}
        value={mode}
        options={[
          ["", t("not locked")],
          ["GOVERNANCE", t("Governance: some users may end it")],
          ["COMPLIANCE", t("Compliance: no one may end it")],
        ]}
        onChange={setMode}
      />
      {mode !== "" && (
        <>
          <TextField label={t("Period")} value={count} onInput={setCount} type="number" />
          <SelectField
            label={t("Unit")}
            value={unit}
            options={[
              ["Days", t("Days")],
              ["Years", t("Years")],
            ]}
            onChange={setUnit}
          />
          <p class="lead">
            {mode === "COMPLIANCE"
              ? t("Each new object cannot be deleted for this period, not even by root.")
              : t("Each new object is kept for this period.")}
          </p>
        </>
      )}
    </FormDialog>
  );
}

type TagDocument = Answer<"vault", "GET /buckets/{bucket}/config/tags">;

function Tags({ bucket, deny, onSaved }: PartProps) {
  const loaded = useLoad(`tags ${bucket.name}`, (signal) =>
    readSetting(bucket.name, "tags", signal),
  );
  const [isOpen, setOpen] = useState(false);
  return (
    <Section
      title={t("Tags")}
      action={
        <Action kind="quiet" onClick={() => setOpen(true)} blocked={deny("tags")}>
          {t("Edit tags…")}
        </Action>
      }
    >
      <Loading of={loaded}>
        {({ document, etag }) => {
          const { TagSet: set = [] }: TagDocument = document ?? {};
          return (
            <>
              <p class="tags">
                {set.map(({ Key: key, Value: value }) => (
                  <span key={key} class="tag mono wrap">{`${key}=${value}`}</span>
                ))}
                {set.length === 0 && <span class="i3">{t("none")}</span>}
              </p>
              {isOpen && (
                <TagDialog
                  title={t("Tags of {name}", { name: bucket.name })}
                  tags={set.map(({ Key: key = "", Value: value = "" }) => ({ key, value }))}
                  tagsMax={TAGS_MAX}
                  onClose={() => {
                    setOpen(false);
                    void loaded.reload();
                  }}
                  onSubmit={async (tags) => {
                    const next = tags.map(({ key, value }) => ({ Key: key, Value: value }));
                    const body = next.length === 0 ? undefined : { TagSet: next };
                    if (body !== undefined || document !== undefined) {
                      await writeSetting(bucket.name, "tags", body, etag);
                    }
                    await onSaved();
                  }}
                />
              )}
            </>
          );
        }}
      </Loading>
    </Section>
  );
}
