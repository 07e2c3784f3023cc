// A new application: a client with a bucket, topics and mail, and its environment file.
import { useState } from "preact/hooks";
import type { Answer } from "../contract/answer.ts";
import { callService, services } from "../session/session.ts";
import { AreaField, TextField } from "../view/controls.tsx";
import { FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { t } from "../words/words.ts";
import { EnvironmentDialog } from "./environment-dialog.tsx";

type Created = Answer<"runtime", "POST /applications">;

interface Wanted {
  name: string;
  redirects: string;
  bucket: string;
  topics: string;
  mail: boolean;
}

const NOTHING: Wanted = { name: "", redirects: "", bucket: "", topics: "", mail: false };

/** Adds an application, and shows its environment file once. */
export function NewApplication(props: { onClose: () => void; onCreated?: () => void }) {
  const [wanted, setWanted] = useState(NOTHING);
  const [created, setCreated] = useState<Created | undefined>(undefined);
  if (created !== undefined) {
    return (
      <EnvironmentDialog
        title={t("Application {name}", { name: created.name })}
        name={created.name}
        files={created.files}
        note={t("Its secrets are shown once.")}
        onClose={props.onClose}
      />
    );
  }
  return (
    <FormDialog
      title={t("Add application")}
      submit={t("Add")}
      createsSecret
      onClose={props.onClose}
      onSubmit={async () => {
        const json = toBody(wanted);
        setCreated(await callService("runtime", "/applications", { method: "POST", json }));
        props.onCreated?.();
        return STAY_OPEN;
      }}
    >
      <Fields of={wanted} onChange={(change) => setWanted({ ...wanted, ...change })} />
    </FormDialog>
  );
}

function toBody({ name, redirects, bucket, topics, mail }: Wanted) {
  return {
    name,
    redirects: readWords(redirects),
    ...(bucket === "" ? {} : { bucket }),
    topics: readWords(topics),
    mail,
  };
}

function Fields({ of, onChange }: { of: Wanted; onChange: (change: Partial<Wanted>) => void }) {
  const has = (id: string): boolean => services.value.some((service) => service.id === id);
  return (
    <>
      <TextField
        label={t("Name")}
        name="name"
        value={of.name}
        onInput={(name) => onChange({ name })}
        isMono
        required
        hint={t("Lower-case letters, digits and -; its role is app-NAME.")}
      />
      {has("vault") && (
        <TextField
          label={t("Bucket (optional)")}
          name="bucket"
          value={of.bucket}
          onInput={(bucket) => onChange({ bucket })}
          isMono
          hint={t("It may read and write all of it; created if it is missing.")}
        />
      )}
      {has("pulse") && (
        <TextField
          label={t("Topics (optional)")}
          name="topics"
          value={of.topics}
          onInput={(topics) => onChange({ topics })}
          isMono
          hint={t("Separated by spaces; * is one level and # any number: orders.#")}
        />
      )}
      <AreaField
        label={t("Redirect URIs, one per line (optional)")}
        value={of.redirects}
        rows={2}
        onInput={(redirects) => onChange({ redirects })}
      />
      {has("notify") && (
        <label class="check-line">
          <input
            type="checkbox"
            checked={of.mail}
            onChange={(event) => onChange({ mail: event.currentTarget.checked })}
          />
          {t("It may send mail")}
        </label>
      )}
    </>
  );
}

function readWords(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
