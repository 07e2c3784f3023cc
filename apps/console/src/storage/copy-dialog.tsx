// Copies or moves an object, also to another bucket.
import { useState } from "preact/hooks";
import { callService } from "../session/session.ts";
import { SelectField, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { bucketPath, deleteObjects, listBuckets } from "./objects.ts";

export function CopyDialog(props: {
  bucket: string;
  objectKey: string;
  version: string | undefined;
  onClose: () => void;
  /** Called with true if the object is no longer where it was. */
  onDone: (isMoved: boolean) => void;
}) {
  const { bucket, objectKey: source } = props;
  const buckets = useLoad("buckets", listBuckets).data.value ?? [];
  const [target, setTarget] = useState(bucket);
  const [key, setKey] = useState(source);
  const [mode, setMode] = useState("copy");
  const isMove = mode === "move";
  const isSame = target === bucket && key === source;
  return (
    <FormDialog
      title={t("Copy or move")}
      submit={isMove ? t("Move") : t("Copy")}
      isDestructive={isMove}
      isDisabled={key === "" || (isSame && (isMove || props.version === undefined))}
      onClose={props.onClose}
      onSubmit={async () => {
        const { version } = props;
        const json = {
          source_bucket: bucket,
          source_key: source,
          ...(version === undefined ? {} : { source_version: version }),
          key,
        };
        await callService("vault", bucketPath(target, "/copy"), { method: "POST", json });
        if (isMove) {
          // The copy is complete: a refused deletion leaves two objects, and says so.
          const [error] = await deleteObjects(bucket, [{ key: source }]);
          if (error !== undefined) {
            throw new Error(t("It was copied, but stays here: {text}", { text: error.message }));
          }
        }
        say(
          isMove
            ? t("Moved to {name}.", { name: target })
            : t("Copied to {name}.", { name: target }),
        );
        props.onDone(isMove);
      }}
    >
      <SelectField
        label={t("Action")}
        value={mode}
        options={[
          ["copy", t("Copy")],
          ["move", t("Move: copy, then delete it here")],
        ]}
        onChange={setMode}
      />
      <SelectField
        label={t("Bucket")}
        value={target}
        options={[...new Set([bucket, ...buckets.map(({ name }) => name)])].map(
          (name) => [name, name] as const,
        )}
        onChange={setTarget}
      />
      <TextField label={t("Key")} value={key} onInput={setKey} isMono required />
      <p class="hint">
        {t("With its metadata and tags. An object of that name is replaced, or gets a version.")}
      </p>
    </FormDialog>
  );
}
