// The broker's suggestion for the dead letters of a cause: tried on some, then applied to all.
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatJson, formatNumber } from "../format/format.ts";
import { Action } from "../view/controls.tsx";
import { Diff } from "../view/diff.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { JsonBlock } from "../view/json.tsx";
import { useLoad } from "../view/load.ts";
import { LoadProblem } from "../view/problem.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { callTenant } from "./broker.ts";
import { requeue, tryChange, type Cause, type Letter, type LetterChange } from "./letters.ts";

type Triage = Answer<"pulse", "GET /topics/{topic}/dlq/triage">;
type Suggested = Triage["suggestions"][number];

const TRIED = 3;
const PREFIX = "/api/v1";

/** Properties of `Suggestion`. */
interface SuggestionProps {
  cause: Cause;
  letters: readonly Letter[];
  onApplied: () => void;
}

/** The suggestion for a cause; nothing if the broker has none. */
export function Suggestion(props: SuggestionProps) {
  const { topic, tenant, reason } = props.cause;
  const loaded = useLoad(`triage ${tenant ?? ""} ${topic}`, () =>
    callTenant<Triage>(tenant, `/topics/${segment(topic)}/dlq/triage`),
  );
  const triage = loaded.data.value;
  if (triage === undefined) {
    return (
      <section class="suggestion" aria-label={t("Suggestion")}>
        {loaded.failure.value === undefined ? (
          <p class="hint">{t("Some letters are being tried…")}</p>
        ) : (
          <LoadProblem of={loaded} />
        )}
      </section>
    );
  }
  const suggested = triage.suggestions.find(({ cluster }) => cluster === reason);
  return suggested === undefined ? null : <Suggested {...props} suggested={suggested} />;
}

type Open = "try" | "apply" | undefined;

function Suggested(props: SuggestionProps & { suggested: Suggested }) {
  const { cause, letters, suggested, onApplied } = props;
  const { action, request } = suggested;
  const [open, setOpen] = useState<Open>(undefined);
  const change: LetterChange = { operations: suggested.patch, conversions: suggested.convert };
  const isRequeue = action === "requeue" || action === "requeue_changed";
  const close = (): void => setOpen(undefined);
  return (
    <section class="suggestion" aria-label={t("Suggestion")}>
      <Advice suggested={suggested} />
      <div class="row">
        {isRequeue && (
          <Action
            onClick={() => setOpen("try")}
            blocked={letters.length === 0 ? t("There are no letters") : undefined}
          >
            {t("Try…")}
          </Action>
        )}
        {request !== undefined && (
          <Action kind={action === "discard" ? "bad" : "primary"} onClick={() => setOpen("apply")}>
            {t("Apply…")}
          </Action>
        )}
      </div>
      {open === "try" && (
        <TrialDialog cause={cause} letters={letters} change={change} onClose={close} />
      )}
      {open === "apply" && request !== undefined && (
        <FormDialog
          title={describeAction(action)}
          submit={t("Apply")}
          isDestructive={action === "discard"}
          isWide
          onClose={close}
          onSubmit={async () => {
            say(await apply(cause, action, change, request));
            onApplied();
          }}
        >
          <p class="lead">{suggested.cause}</p>
          <p class="mono">
            {request.method} {request.path}
          </p>
          <JsonBlock text={JSON.stringify(request.body, null, 2)} label={t("The request")} />
        </FormDialog>
      )}
    </section>
  );
}

function Advice({ suggested }: { suggested: Suggested }) {
  const { action, confidence, evidence } = suggested;
  return (
    <div>
      <b>{describeAction(action)}</b>{" "}
      <span class={confidence >= 0.9 ? "tag tag-ok" : "tag"}>
        {t("{n} % sure", { n: Math.round(confidence * 100) })}
      </span>
      <p>{suggested.cause}</p>
      <small>
        {t("Tried on {n}: {pass} pass, {fail} fail.", {
          n: formatNumber(evidence.tried),
          pass: formatNumber(evidence.pass),
          fail: formatNumber(evidence.fail),
        })}
      </small>
    </div>
  );
}

// All letters of a cause take several requests; anything else is the suggested request as it is.
async function apply(
  { topic, tenant, reason }: Cause,
  action: Suggested["action"],
  change: LetterChange,
  request: NonNullable<Suggested["request"]>,
): Promise<string> {
  if (action === "requeue" || action === "requeue_changed") {
    const { succeeded, failed, items } = await requeue({ topic, tenant, cause: reason }, change);
    if (failed > 0) {
      const first = items.find(({ error }) => error !== null)?.error?.detail ?? "";
      return t("{n} were requeued; {failed} stay: {text}", {
        n: formatNumber(succeeded),
        failed: formatNumber(failed),
        text: first,
      });
    }
    return t("{n} messages were requeued to {name}.", { n: formatNumber(succeeded), name: topic });
  }
  await callTenant(tenant, request.path.slice(PREFIX.length), {
    method: request.method,
    json: request.body,
  });
  return t("Done.");
}

function TrialDialog(props: {
  cause: Cause;
  letters: readonly Letter[];
  change: LetterChange;
  onClose: () => void;
}) {
  const { topic, tenant } = props.cause;
  const some = props.letters.slice(0, TRIED);
  const ids = some.map(({ message_id: id }) => id);
  const loaded = useLoad(`trial ${ids.join(" ")}`, () =>
    tryChange({ topic, tenant, ids }, props.change),
  );
  return (
    <FormDialog
      title={t("Before and after")}
      submit={t("Close")}
      isWide
      onClose={props.onClose}
      onSubmit={() => Promise.resolve()}
    >
      {loaded.failure.value !== undefined && <LoadProblem of={loaded} />}
      {some.map(({ message_id: id, original_payload: before }) => {
        const found = loaded.data.value?.items.find((item) => item.message_id === id);
        if (found === undefined) return null;
        return (
          <div key={id} class="trial">
            <small class="mono">{id}</small>
            {found.error === null ? (
              <Diff
                before={formatJson(before)}
                after={formatJson(found.payload ?? before)}
                label={t("Difference of {name}", { name: id })}
              />
            ) : (
              <p class="bad">{found.error.detail}</p>
            )}
          </div>
        );
      })}
    </FormDialog>
  );
}

function describeAction(action: Suggested["action"]): string {
  switch (action) {
    case "requeue":
      return t("Requeue them as they are");
    case "requeue_changed":
      return t("Requeue them changed");
    case "raise_ttl":
      return t("Let messages live longer");
    case "fix_transform":
      return t("Mend the transform");
    case "fix_consumer":
      return t("Mend the consumer");
    case "change_schema":
      return t("Change the schema");
    case "discard":
      return t("Discard them");
    default:
      return action satisfies never;
  }
}
