// A link to an object that works without a sign-in until it expires.
import { useState } from "preact/hooks";
import { formatMoment } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { SelectField } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { t } from "../words/words.ts";
import { bucketPath } from "./objects.ts";

const HOUR_S = 3_600;

export function ShareDialog(props: {
  bucket: string;
  objectKey: string;
  version: string | undefined;
  onClose: () => void;
}) {
  const { bucket, objectKey: key, version } = props;
  const [seconds, setSeconds] = useState(String(HOUR_S));
  const [link, setLink] = useState<{ url: string; expires_at: string } | undefined>(undefined);
  return (
    <FormDialog
      title={t("Share link")}
      submit={link === undefined ? t("Create the link") : t("Create another")}
      onClose={props.onClose}
      onSubmit={async () => {
        const json = { key, version, expires_seconds: Number(seconds) };
        setLink(await callService("vault", bucketPath(bucket, "/share"), { method: "POST", json }));
        return STAY_OPEN;
      }}
    >
      <p class="lead wrap">
        {t("Whoever has the link can download {name} until it expires, with your rights.", {
          name: key,
        })}
      </p>
      <SelectField
        label={t("Valid for")}
        value={seconds}
        options={[
          [String(HOUR_S), t("1 hour")],
          [String(12 * HOUR_S), t("12 hours")],
          [String(24 * HOUR_S), t("1 day")],
          [String(168 * HOUR_S), t("1 week")],
        ]}
        onChange={setSeconds}
      />
      {link !== undefined && (
        <>
          <div class="cmd">
            <code class="wrap">{link.url}</code>
            <CopyButton text={link.url} label={t("Copy the link")} />
          </div>
          <p class="hint">{t("Valid until {time}.", { time: formatMoment(link.expires_at) })}</p>
        </>
      )}
    </FormDialog>
  );
}
