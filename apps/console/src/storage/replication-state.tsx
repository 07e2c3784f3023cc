// Counts of a bucket's replication rules: versions that were sent, that wait, and that were refused.
import type { Answer } from "../contract/answer.ts";
import { formatAgo, formatBytes, formatMoment, formatNumber } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { Section } from "../view/controls.tsx";
import { toFailure, useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { t } from "../words/words.ts";
import { bucketPath, type Bucket } from "./objects.ts";

type Rule = Answer<"vault", "GET /buckets/{bucket}/config/replication/status">["rules"][number];

const REFRESH_MS = 5_000;

/** The state of each rule; nothing without replication. */
export function ReplicationState({ bucket: { name, settings } }: { bucket: Bucket }) {
  const loaded = useLoad(
    `replication status ${name} ${settings.join()}`,
    (signal) => readRules(name, signal),
    REFRESH_MS,
  );
  if (loaded.data.value?.length === 0) return null;
  return (
    <Section title={t("State of the rules")}>
      <Loading of={loaded}>
        {(rules) => (
          <ul class="plain-list">
            {rules.map((rule) => (
              <li key={rule.id}>
                <RuleState rule={rule} />
              </li>
            ))}
          </ul>
        )}
      </Loading>
    </Section>
  );
}

async function readRules(bucket: string, signal: AbortSignal): Promise<readonly Rule[]> {
  const path = bucketPath(bucket, "/config/replication/status");
  try {
    return (await callService<{ rules: Rule[] }>("vault", path, { signal })).rules;
  } catch (error) {
    if (toFailure(error).status === 404) return [];
    throw error;
  }
}

function RuleState({ rule }: { rule: Rule }) {
  const [kind, word] = nameState(rule);
  const { pending, failed, completed, completed_bytes: bytes, lag_seconds: lag } = rule;
  return (
    <>
      <b class="mono wrap">{rule.id}</b> → <span class="mono wrap">{rule.destination}</span>
      <br />
      <State kind={kind}>{word}</State>{" "}
      <span class="i2">
        {t("{n} waiting, {failed} refused", {
          n: formatNumber(pending),
          failed: formatNumber(failed),
        })}
        {pending > 0 && ` · ${t("the oldest for {n} s", { n: formatNumber(Math.round(lag)) })}`}
        {" · "}
        {t("{n} sent ({size}) since {date}", {
          n: formatNumber(completed),
          size: formatBytes(bytes),
          date: formatMoment(rule.counted_since),
        })}
      </span>
      {rule.suspended !== null && <p class="bad wrap">{rule.suspended}</p>}
      {rule.failures.map((failure) => (
        <p key={`${failure.key} ${failure.version_id}`} class="i2 wrap">
          <span class="mono">{failure.key}</span>: {failure.reason} · {formatAgo(failure.failed_at)}
        </p>
      ))}
    </>
  );
}

function nameState({ enabled, suspended, paused_until: until, failed }: Rule): [StateKind, string] {
  if (!enabled) return ["off", t("Disabled")];
  if (suspended !== null) return ["bad", t("suspended")];
  if (until !== null)
    return ["warn", t("no answer, next trial {time}", { time: formatMoment(until) })];
  return failed > 0 ? ["warn", t("Active")] : ["ok", t("Active")];
}
