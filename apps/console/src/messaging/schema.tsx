// The schema of a topic's payloads.
import { useState } from "preact/hooks";
import { ApiFailure, segment, withQuery } from "../api/api.ts";
import { Action, AreaField, Section, SelectField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import { JsonBlock } from "../view/json.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { t } from "../words/words.ts";
import { callBroker } from "./broker.ts";

/** The tab. */
export function SchemaTab({ topic }: { topic: string }) {
  const [open, setOpen] = useState<"edit" | "delete" | undefined>(undefined);
  const path = `/topics/${segment(topic)}/schema`;
  const loaded = useLoad(`schema ${topic}`, async () => {
    try {
      return { schema: await callBroker<unknown>(path) };
    } catch (error) {
      if (error instanceof ApiFailure && error.status === 404) return { schema: undefined };
      throw error;
    }
  });
  const close = (): void => setOpen(undefined);
  return (
    <Split>
      <Loading of={loaded}>
        {({ schema }) => (
          <>
            {schema === undefined ? (
              <Empty title={t("No schema")}>
                <p>{t("Any payload is accepted.")}</p>
                <Action onClick={() => setOpen("edit")} kind="primary">
                  {t("Set a schema…")}
                </Action>
              </Empty>
            ) : (
              <Section
                title={t("Schema")}
                note={t("payloads that do not fit are refused")}
                action={
                  <span class="row">
                    <button type="button" onClick={() => setOpen("edit")}>
                      {t("Change")}
                    </button>
                    <button type="button" onClick={() => setOpen("delete")}>
                      {t("Delete")}
                    </button>
                  </span>
                }
              >
                <JsonBlock text={JSON.stringify(schema)} />
              </Section>
            )}
            {open === "edit" && (
              <EditSchema
                path={path}
                schema={schema}
                onClose={close}
                onSaved={() => void loaded.reload()}
              />
            )}
          </>
        )}
      </Loading>
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete the schema")}
          name={topic}
          submit={t("Delete")}
          onClose={close}
          onSubmit={async () => {
            await callBroker(path, { method: "DELETE" });
            void loaded.reload();
          }}
        >
          <p>{t("Any payload is accepted afterwards.")}</p>
        </ConfirmDialog>
      )}
    </Split>
  );
}

function EditSchema(props: {
  path: string;
  schema: unknown;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [text, setText] = useState(
    JSON.stringify(props.schema ?? { id: "string", amount: "number" }, null, 2),
  );
  const [compatibility, setCompatibility] = useState("none");
  return (
    <FormDialog
      title={t("Schema")}
      submit={t("Save")}
      isWide
      onClose={props.onClose}
      onSubmit={async () => {
        await callBroker(withQuery(props.path, { compatibility }), {
          method: "POST",
          json: JSON.parse(text),
        });
        props.onSaved();
      }}
    >
      <AreaField
        label={t("A map of fields to types, or JSON Schema")}
        value={text}
        rows={16}
        onInput={setText}
      />
      <SelectField
        label={t("Compatibility")}
        value={compatibility}
        options={[
          ["none", t("Not checked")],
          ["backward", t("New readers read old messages")],
        ]}
        onChange={setCompatibility}
      />
    </FormDialog>
  );
}
