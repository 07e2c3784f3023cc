// A bucket: its use, quota, versions and settings, and its deletion.
import { useState } from "preact/hooks";
import { ApiFailure } from "../api/api.ts";
import { formatBytes, formatMoment, formatNumber } from "../format/format.ts";
import { navigate } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { Action, AreaField, FactRow, Facts, Section, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { bucketPath, type Bucket } from "./objects.ts";

/** Settings that are JSON documents, with a document to begin with. */
const SETTINGS: readonly { name: string; sample: object }[] = [
  {
    name: "lifecycle",
    sample: {
      Rules: [
        { ID: "old", Status: "Enabled", Filter: { Prefix: "tmp/" }, Expiration: { Days: 30 } },
      ],
    },
  },
  { name: "policy", sample: { Version: "2012-10-17", Statement: [] } },
  {
    name: "cors",
    sample: {
      CORSRules: [{ AllowedOrigins: ["https://app.example.com"], AllowedMethods: ["GET", "PUT"] }],
    },
  },
  { name: "tags", sample: { TagSet: [{ Key: "owner", Value: "team" }] } },
  { name: "website", sample: { IndexDocument: { Suffix: "index.html" } } },
  { name: "events", sample: { subscriptions: [] } },
];
const GIGABYTE = 1e9;

/** The pane. */
export function BucketPane({ bucket, onChanged }: { bucket: Bucket; onChanged: () => void }) {
  const { name, quota } = bucket;
  const [open, setOpen] = useState<string | undefined>(undefined);
  const [document, setDocument] = useState<{ name: string; text: string } | undefined>(undefined);
  const close = (): void => {
    setOpen(undefined);
    setDocument(undefined);
  };
  const toggleVersions = (): void => {
    const status = bucket.versioning === "Enabled" ? "Suspended" : "Enabled";
    void attempt(async () => {
      const json = { Status: status };
      await callService("vault", bucketPath(name, "/config/versioning"), { method: "PUT", json });
      onChanged();
    });
  };
  const edit = (setting: (typeof SETTINGS)[number]): void => {
    void attempt(async () => {
      const text = await readSetting(name, setting.name);
      setDocument({
        name: setting.name,
        text: text ?? JSON.stringify(setting.sample, null, 2),
      });
    });
  };
  return (
    <>
      <Section title={name}>
        <Facts>
          <FactRow term={t("Objects")} isMono>
            {formatNumber(bucket.objects)}
          </FactRow>
          <FactRow term={t("Versions")} isMono>
            {formatNumber(bucket.versions)}
          </FactRow>
          <FactRow term={t("Size")} isMono>
            {formatBytes(bucket.bytes)}
          </FactRow>
          <FactRow term={t("Uploads")} isMono>
            {formatNumber(bucket.uploads)}, {formatBytes(bucket.upload_bytes)}
          </FactRow>
          <FactRow term={t("Created")}>{formatMoment(bucket.created_at)}</FactRow>
        </Facts>
      </Section>
      <Section
        title={t("Quota")}
        action={
          <Action kind="quiet" onClick={() => setOpen("quota")}>
            {t("Change")}
          </Action>
        }
      >
        <Facts>
          <FactRow term={t("Size")} isMono>
            {quota?.max_bytes === undefined || quota.max_bytes === null
              ? t("unlimited")
              : formatBytes(quota.max_bytes)}
          </FactRow>
          <FactRow term={t("Objects")} isMono>
            {quota?.max_objects === undefined || quota.max_objects === null
              ? t("unlimited")
              : formatNumber(quota.max_objects)}
          </FactRow>
        </Facts>
      </Section>
      <Section
        title={t("Versions")}
        note={
          bucket.versioning === "Enabled"
            ? t("each write is kept")
            : t("a write replaces the object")
        }
        action={
          <Action
            kind="quiet"
            onClick={toggleVersions}
            blocked={bucket.object_lock ? t("Object lock requires versions") : undefined}
          >
            {bucket.versioning === "Enabled" ? t("Suspend") : t("Switch on")}
          </Action>
        }
      >
        {null}
      </Section>
      <Section title={t("Settings")}>
        <div class="setting-list">
          {SETTINGS.map((setting) => (
            <div key={setting.name}>
              <span class="mono">{setting.name}</span>
              <span class="i3">
                {bucket.settings.includes(setting.name) ? t("set") : t("not set")}
              </span>
              <Action kind="quiet" onClick={() => edit(setting)}>
                {t("Edit…")}
              </Action>
            </div>
          ))}
        </div>
      </Section>
      <Section title={t("Delete")}>
        <Action
          kind="bad"
          onClick={() => setOpen("delete")}
          blocked={
            bucket.versions + bucket.delete_markers > 0
              ? t("The bucket is not empty: {n} versions", { n: formatNumber(bucket.versions) })
              : undefined
          }
        >
          {t("Delete the bucket…")}
        </Action>
      </Section>
      {open === "quota" && <QuotaDialog bucket={bucket} onClose={close} onSaved={onChanged} />}
      {document !== undefined && (
        <SettingDialog
          bucket={name}
          name={document.name}
          text={document.text}
          isSet={bucket.settings.includes(document.name)}
          onClose={close}
          onSaved={onChanged}
        />
      )}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete the bucket")}
          name={name}
          submit={t("Delete")}
          onClose={close}
          onSubmit={async () => {
            await callService("vault", bucketPath(name), { method: "DELETE" });
            navigate("/storage/buckets");
          }}
        >
          <p>
            {t("Its settings, {n} uploads in progress and the name will be gone.", {
              n: formatNumber(bucket.uploads),
            })}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

async function readSetting(bucket: string, name: string): Promise<string | undefined> {
  try {
    const found = await callService<object>("vault", bucketPath(bucket, `/config/${name}`));
    const isEmpty = Object.values(found).every(
      (value) => Array.isArray(value) && value.length === 0,
    );
    return isEmpty ? undefined : JSON.stringify(found, null, 2);
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return undefined;
    throw error;
  }
}

function SettingDialog(props: {
  bucket: string;
  name: string;
  text: string;
  isSet: boolean;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [text, setText] = useState(props.text);
  const path = bucketPath(props.bucket, `/config/${props.name}`);
  return (
    <FormDialog
      title={t("{setting} of {name}", { setting: props.name, name: props.bucket })}
      submit={text.trim() === "" ? t("Remove") : t("Save")}
      isDestructive={text.trim() === ""}
      isDisabled={text.trim() === "" && !props.isSet}
      isWide
      onClose={props.onClose}
      onSubmit={async () => {
        if (text.trim() === "") await callService("vault", path, { method: "DELETE" });
        else await callService("vault", path, { method: "PUT", json: parse(text) });
        props.onSaved();
      }}
    >
      <AreaField label="JSON" value={text} rows={18} onInput={setText} />
      <p class="hint">{t("Members are named as in the command line of AWS. Empty: removed.")}</p>
    </FormDialog>
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new ApiFailure(400, { detail: error instanceof Error ? error.message : String(error) });
  }
}

function QuotaDialog(props: { bucket: Bucket; onClose: () => void; onSaved: () => void }) {
  const { name, quota } = props.bucket;
  const bytes = quota?.max_bytes ?? null;
  const [gigabytes, setGigabytes] = useState(bytes === null ? "" : String(bytes / GIGABYTE));
  const [objects, setObjects] = useState(String(quota?.max_objects ?? ""));
  return (
    <FormDialog
      title={t("Quota of {name}", { name })}
      submit={t("Save")}
      onClose={props.onClose}
      onSubmit={async () => {
        const path = bucketPath(name, "/quota");
        if (gigabytes === "" && objects === "") {
          await callService("vault", path, { method: "DELETE" });
        } else {
          const json = {
            ...(gigabytes === "" ? {} : { max_bytes: Math.round(Number(gigabytes) * GIGABYTE) }),
            ...(objects === "" ? {} : { max_objects: Number(objects) }),
          };
          await callService("vault", path, { method: "PUT", json });
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
      <TextField
        label={t("Objects")}
        value={objects}
        onInput={setObjects}
        hint={t("Empty: unlimited")}
      />
    </FormDialog>
  );
}
