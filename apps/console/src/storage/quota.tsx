// The quota of a bucket.
import { useState } from "preact/hooks";
import { formatBytes, formatNumber } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { Action, FactRow, Facts, Section, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { t } from "../words/words.ts";
import { bucketPath, type Bucket } from "./objects.ts";

const GIGABYTE = 1e9;

/** The section. */
export function QuotaSection({ bucket, onSaved }: { bucket: Bucket; onSaved: () => void }) {
  const { quota } = bucket;
  const [isOpen, setOpen] = useState(false);
  return (
    <Section
      title={t("Quota")}
      action={
        <Action kind="quiet" onClick={() => setOpen(true)}>
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
      {isOpen && <QuotaDialog bucket={bucket} onClose={() => setOpen(false)} onSaved={onSaved} />}
    </Section>
  );
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
