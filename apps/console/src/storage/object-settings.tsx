// Tags and locks of an object or a version.
import { useState } from "preact/hooks";
import { send, withQuery } from "../api/api.ts";
import { onlyIf, readVersioned } from "../api/versioned.ts";
import { formatMoment } from "../format/format.ts";
import { api, callService } from "../session/session.ts";
import { Action, FactRow, Facts, Section, SelectField, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { bucketPath, objectPath } from "./objects.ts";
import { TagDialog } from "./tag-dialog.tsx";

/** Limit of S3. */
const TAGS_MAX = 10;
const DAY_MS = 86_400_000;

/** Members of the description that are used here. */
interface Described {
  /** Null if the session may not read them. */
  tags: Record<string, string> | null;
  retention: { mode: "GOVERNANCE" | "COMPLIANCE"; until: string } | null;
  legal_hold: boolean;
}

/** Tags as they were read for their dialog. */
interface KnownTags {
  tags: { key: string; value: string }[];
  etag: string | undefined;
}

/** The sections. */
export function ObjectSettings(props: {
  bucket: string;
  objectKey: string;
  version: string | undefined;
  hasLock: boolean;
}) {
  const { bucket, objectKey: key, version, hasLock } = props;
  const [open, setOpen] = useState<"retention" | undefined>(undefined);
  const [edited, setEdited] = useState<KnownTags | undefined>(undefined);
  const loaded = useLoad(`info ${key} ${version ?? ""}`, (signal) =>
    callService<Described>("vault", `${objectPath(bucket, key, version)}&info=true`, { signal }),
  );
  const pathOf = (part: string): string =>
    withQuery(bucketPath(bucket, `/object/${part}`), { key, version });
  // Those of now with their version, not those that the page has shown for a while.
  const editTags = (): void => {
    void attempt(async () => {
      const path = api("vault", pathOf("tags"));
      const { document, etag } = await readVersioned<Pick<KnownTags, "tags">>(path);
      setEdited({ tags: document?.tags ?? [], etag });
    });
  };
  const hold = (held: boolean): void => {
    void attempt(async () => {
      await callService("vault", pathOf("legal-hold"), { method: "PUT", json: { held } });
      await loaded.reload();
    });
  };
  return (
    <Loading of={loaded}>
      {({ tags, retention, legal_hold: isHeld }) => (
        <>
          <Section
            title={t("Tags")}
            action={
              <Action
                kind="quiet"
                onClick={editTags}
                blocked={tags === null ? t("No policy allows reading its tags") : undefined}
              >
                {t("Edit tags…")}
              </Action>
            }
          >
            <p class="tags">
              {Object.entries(tags ?? {}).map(([name, value]) => (
                <span key={name} class="tag mono wrap">
                  {`${name}=${value}`}
                </span>
              ))}
              {tags !== null && Object.keys(tags).length === 0 && (
                <span class="i3">{t("none")}</span>
              )}
            </p>
          </Section>
          {hasLock && (
            <Section
              title={t("Lock")}
              action={
                <Action kind="quiet" onClick={() => setOpen("retention")}>
                  {t("Change the retention…")}
                </Action>
              }
            >
              <Facts>
                <FactRow term={t("Locked until")}>
                  {retention === null
                    ? t("not locked")
                    : `${formatMoment(retention.until)} (${retention.mode})`}
                </FactRow>
                <FactRow term={t("Legal hold")}>
                  {isHeld ? t("held") : t("not held")}{" "}
                  <Action kind="quiet" onClick={() => hold(!isHeld)}>
                    {isHeld ? t("Release") : t("Hold")}
                  </Action>
                </FactRow>
              </Facts>
            </Section>
          )}
          {edited !== undefined && (
            <TagDialog
              title={t("Tags of {name}", { name: key.slice(-60) })}
              tags={edited.tags}
              tagsMax={TAGS_MAX}
              onClose={() => setEdited(undefined)}
              onSubmit={async (next) => {
                await send(api("vault", pathOf("tags")), {
                  method: "PUT",
                  json: { tags: next },
                  headers: onlyIf(edited.etag),
                });
                await loaded.reload();
              }}
            />
          )}
          {open === "retention" && (
            <RetentionDialog
              retention={retention}
              path={pathOf("retention")}
              onClose={() => setOpen(undefined)}
              onSaved={() => void loaded.reload()}
            />
          )}
        </>
      )}
    </Loading>
  );
}

function RetentionDialog(props: {
  retention: Described["retention"];
  path: string;
  onClose: () => void;
  onSaved: () => void;
}) {
  const { retention } = props;
  const [mode, setMode] = useState<string>(retention?.mode ?? "GOVERNANCE");
  const [until, setUntil] = useState(
    (retention?.until ?? new Date(Date.now() + 30 * DAY_MS).toISOString()).slice(0, 10),
  );
  const [doesBypass, setBypass] = useState(false);
  const isEnded = mode === "";
  return (
    <FormDialog
      title={t("Retention")}
      submit={isEnded ? t("End the retention") : t("Save")}
      isDestructive={isEnded || mode === "COMPLIANCE"}
      onClose={props.onClose}
      onSubmit={async () => {
        const path = doesBypass ? `${props.path}&bypass_governance=true` : props.path;
        if (isEnded) await callService("vault", path, { method: "DELETE" });
        else {
          const json = { mode, until: `${until}T00:00:00Z` };
          await callService("vault", path, { method: "PUT", json });
        }
        props.onSaved();
      }}
    >
      <SelectField
        label={t("Mode")}
        value={mode}
        options={[
          ["GOVERNANCE", t("Governance: some users may end it")],
          ["COMPLIANCE", t("Compliance: no one may end it")],
          ...(retention === null ? [] : ([["", t("No retention")]] as const)),
        ]}
        onChange={setMode}
      />
      {!isEnded && (
        <TextField label={t("Until (date, UTC)")} value={until} isMono onInput={setUntil} />
      )}
      {mode === "COMPLIANCE" && (
        <p class="lead">
          {t("Until then the version cannot be deleted, not even by root. This cannot be undone.")}
        </p>
      )}
      {retention?.mode === "GOVERNANCE" && (
        <label class="check-line">
          <input
            type="checkbox"
            checked={doesBypass}
            onChange={(event) => setBypass(event.currentTarget.checked)}
          />
          {t("Shorten or end it (requires s3:BypassGovernanceRetention)")}
        </label>
      )}
    </FormDialog>
  );
}
