// A new application: a client with a bucket, topics and mail, and its environment file.
import { useState } from "preact/hooks";
import type { Answer } from "../contract/answer.ts";
import { callService, services } from "../session/session.ts";
import { AreaField, TextField } from "../view/controls.tsx";
import { FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { t } from "../words/words.ts";
import { EnvironmentDialog } from "./environment-dialog.tsx";

type Created = Answer<"runtime", "POST /applications">;

/** Adds an application, and shows its environment file once. */
export function NewApplication(props: { onClose: () => void; onCreated?: () => void }) {
  const [name, setName] = useState("");
  const [redirects, setRedirects] = useState("");
  const [bucket, setBucket] = useState("");
  const [topics, setTopics] = useState("");
  const [hasMail, setMail] = useState(false);
  const [created, setCreated] = useState<Created | undefined>(undefined);
  const has = (id: string): boolean => services.value.some((service) => service.id === id);
  if (created !== undefined) {
    return (
      <EnvironmentDialog
        title={t("Application {name}", { name: created.name })}
        name={created.name}
        files={created.files}
        note={t("Its secrets are shown once. The comments at the end of the file try them.")}
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
        const json = {
          name,
          redirects: readWords(redirects),
          ...(bucket === "" ? {} : { bucket }),
          topics: readWords(topics),
          mail: hasMail,
        };
        setCreated(await callService("runtime", "/applications", { method: "POST", json }));
        props.onCreated?.();
        return STAY_OPEN;
      }}
    >
      <TextField
        label={t("Name")}
        name="name"
        value={name}
        onInput={setName}
        isMono
        required
        hint={t("Lower-case letters, digits and -; its role is app-NAME.")}
      />
      {has("vault") && (
        <TextField
          label={t("Bucket (optional)")}
          name="bucket"
          value={bucket}
          onInput={setBucket}
          isMono
          hint={t("It may read and write all of it; created if it is missing.")}
        />
      )}
      {has("pulse") && (
        <TextField
          label={t("Topics (optional)")}
          name="topics"
          value={topics}
          onInput={setTopics}
          isMono
          hint={t("Separated by spaces; * is one level and # any number: orders.#")}
        />
      )}
      <AreaField
        label={t("Redirect URIs, one a line")}
        value={redirects}
        rows={2}
        onInput={setRedirects}
      />
      {has("notify") && (
        <label class="check-line">
          <input
            type="checkbox"
            checked={hasMail}
            onChange={(event) => setMail(event.currentTarget.checked)}
          />
          {t("It may send mail")}
        </label>
      )}
    </FormDialog>
  );
}

function readWords(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
