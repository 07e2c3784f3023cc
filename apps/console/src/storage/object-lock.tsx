// Retention and legal hold of an object or a version.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { send } from "../api/api.ts";
import { onlyIf, type Versioned } from "../api/versioned.ts";
import { formatMoment } from "../format/format.ts";
import { api } from "../session/session.ts";
import { Action, FactRow, Facts, Section, SelectField, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import type { FindDenial } from "./denials.ts";
import { KnownValueConflict, readValue, useKnownValue } from "./known-value.tsx";

const DAY_MS = 86_400_000;

/** A retention. */
type Retention = NonNullable<Answer<"vault", "GET /buckets/{bucket}/object">["retention"]>;

/** The retention as its dialog reads it; without one both are null. */
type StoredRetention = Answer<"vault", "GET /buckets/{bucket}/object/retention">;

/** Properties of the section. */
interface ObjectLockProps {
  /** Path of a part of the object's settings. */
  pathOf: (part: string) => string;
  /** The version that is shown. */
  version: string;
  retention: Retention | null;
  isHeld: boolean;
  deny: FindDenial;
  /** Called after a change, and if the object is no longer the one that is shown. */
  onChanged: () => Promise<void>;
}

export function ObjectLock(props: ObjectLockProps) {
  const { pathOf, version, retention, isHeld, deny, onChanged } = props;
  const [edited, setEdited] = useState<Versioned<StoredRetention> | undefined>(undefined);
  const editRetention = (): void => {
    void attempt(async () => {
      const read = await readValue<StoredRetention>(pathOf("retention"));
      if (read.document?.version !== version) await onChanged();
      setEdited(read);
    });
  };
  const toggleHold = (): void => {
    void attempt(async () => {
      const path = pathOf("legal-hold");
      const { document, etag } = await readValue<{ held: boolean; version: string }>(path);
      const isAsShown = document?.version === version && document.held === isHeld;
      if (isAsShown) {
        const json = { held: !isHeld };
        await send(api("vault", path), { method: "PUT", json, headers: onlyIf(etag) });
      } else say(t("It was changed meanwhile. The page shows it as it is now."));
      await onChanged();
    });
  };
  return (
    <Section
      title={t("Lock")}
      action={
        <Action kind="quiet" onClick={editRetention} blocked={deny("retention")}>
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
          <Action kind="quiet" onClick={toggleHold} blocked={deny("legal_hold")}>
            {isHeld ? t("Release") : t("Hold")}
          </Action>
        </FactRow>
      </Facts>
      {edited !== undefined && (
        <RetentionDialog
          read={edited}
          path={pathOf("retention")}
          onClose={() => setEdited(undefined)}
          onSaved={onChanged}
        />
      )}
    </Section>
  );
}

function RetentionDialog(props: {
  read: Versioned<StoredRetention>;
  path: string;
  onClose: () => void;
  onSaved: () => Promise<void>;
}) {
  const known = useKnownValue(props.path, props.read);
  const stored = known.stored?.until ?? undefined;
  const storedMode = known.stored?.mode ?? "";
  const [mode, setMode] = useState<string>(storedMode === "" ? "GOVERNANCE" : storedMode);
  const [date, setDate] = useState(
    toDate(stored ?? new Date(Date.now() + 30 * DAY_MS).toISOString()),
  );
  const [doesBypass, setBypass] = useState(false);
  const isEnded = mode === "";
  // The same day is the same moment: midnight would shorten a retention that ends later.
  const until = stored !== undefined && date === toDate(stored) ? stored : `${date}T00:00:00.000Z`;
  return (
    <FormDialog
      title={t("Retention")}
      submit={isEnded ? t("End the retention") : t("Save")}
      isDestructive={isEnded || mode === "COMPLIANCE"}
      onClose={props.onClose}
      onSubmit={async () => {
        const outcome = await known.write(
          isEnded ? { method: "DELETE" } : { method: "PUT", json: { mode, until } },
          doesBypass ? "&bypass_governance=true" : "",
        );
        await props.onSaved();
        return outcome;
      }}
    >
      <SelectField
        label={t("Mode")}
        value={mode}
        options={[
          ["GOVERNANCE", t("Governance: some users may end it")],
          ["COMPLIANCE", t("Compliance: no one may end it")],
          ...(storedMode === "" && !isEnded ? [] : ([["", t("No retention")]] as const)),
        ]}
        onChange={setMode}
      />
      {!isEnded && (
        <TextField
          label={t("Until (date, UTC)")}
          name="until"
          type="date"
          value={date}
          isMono
          required
          onInput={setDate}
        />
      )}
      {mode === "COMPLIANCE" && (
        <p class="lead">
          {t("Until then the version cannot be deleted, not even by root. This cannot be undone.")}
        </p>
      )}
      {storedMode === "GOVERNANCE" && (
        <label class="check-line">
          <input
            type="checkbox"
            checked={doesBypass}
            onChange={(event) => setBypass(event.currentTarget.checked)}
          />
          {t("Shorten or end it (requires s3:BypassGovernanceRetention)")}
        </label>
      )}
      <KnownValueConflict
        of={known}
        stored={describe(storedMode, stored)}
        edited={describe(mode, until)}
      />
    </FormDialog>
  );
}

/** The day of a moment in UTC. */
function toDate(moment: string): string {
  return moment.slice(0, 10);
}

function describe(mode: string, until: string | undefined): string {
  if (mode === "" || until === undefined) return t("No retention");
  return `${mode}\n${until}`;
}
