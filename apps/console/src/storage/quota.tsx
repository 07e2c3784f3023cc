// The quota of a bucket.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { call } from "../api/api.ts";
import { onlyIf, readVersioned, type Versioned } from "../api/versioned.ts";
import { formatBytes, formatNumber } from "../format/format.ts";
import { api } from "../session/session.ts";
import { Action, FactRow, Facts, Section, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { t } from "../words/words.ts";
import { bucketPath, type Bucket } from "./objects.ts";
import { ADMINISTER } from "./permission.ts";

const GIGABYTE = 1e9;

type Quota = NonNullable<Bucket["quota"]>;

export function QuotaSection({
  bucket,
  onSaved,
}: {
  bucket: Bucket;
  onSaved: () => Promise<void>;
}) {
  const { quota } = bucket;
  const [isOpen, setOpen] = useState(false);
  return (
    <Section
      title={t("Quota")}
      action={
        <Action kind="quiet" onClick={() => setOpen(true)} needs={ADMINISTER}>
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
      {isOpen && (
        <QuotaDialog name={bucket.name} onClose={() => setOpen(false)} onSaved={onSaved} />
      )}
    </Section>
  );
}

interface DialogProps {
  name: string;
  onClose: () => void;
  onSaved: () => Promise<void>;
}

function QuotaDialog(props: DialogProps) {
  const loaded = useLoad(`quota ${props.name}`, (signal) =>
    readVersioned<Answer<"vault", "GET /buckets/{bucket}/quota">>(pathOf(props.name), signal),
  );
  return <Loading of={loaded}>{(stored) => <QuotaForm {...props} stored={stored} />}</Loading>;
}

function QuotaForm(props: DialogProps & { stored: Versioned<Quota> }) {
  const { name, stored } = props;
  const { document: quota, etag } = stored;
  const bytes = quota?.max_bytes ?? null;
  const [gigabytes, setGigabytes] = useState(bytes === null ? "" : String(bytes / GIGABYTE));
  const [objects, setObjects] = useState(String(quota?.max_objects ?? ""));
  return (
    <FormDialog
      title={t("Quota of {name}", { name })}
      submit={t("Save")}
      onClose={props.onClose}
      onSubmit={async () => {
        const path = pathOf(name);
        const headers = onlyIf(etag);
        if (gigabytes === "" && objects === "") {
          await call(path, { method: "DELETE", headers });
        } else {
          const json = {
            ...(gigabytes === "" ? {} : { max_bytes: Math.round(Number(gigabytes) * GIGABYTE) }),
            ...(objects === "" ? {} : { max_objects: Number(objects) }),
          };
          await call(path, { method: "PUT", json, headers });
        }
        await props.onSaved();
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

function pathOf(bucket: string): string {
  return api("vault", bucketPath(bucket, "/quota"));
}
