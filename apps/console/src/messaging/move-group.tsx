// Moves a group to another offset of a topic: what would change, in numbers, and then the change.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { formatNumber } from "../format/format.ts";
import { SelectField, TextField } from "../view/controls.tsx";
import { FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { callTenant } from "./broker.ts";

const HOUR_MS = 3_600_000;
const SHOWN_MAX = 50;

/** A change of one partition. */
type Change = Answer<"pulse", "POST /groups/{group}">["changes"][number];

type Mode = "start" | "end" | "offset" | "time";

export function MoveGroup(props: {
  group: string;
  tenant: string | undefined;
  topics: readonly string[];
  onClose: () => void;
  onMoved: () => Promise<void>;
}) {
  const { group, tenant, topics } = props;
  const [topic, setTopic] = useState(topics[0] ?? "");
  const [mode, setMode] = useState<Mode>("offset");
  const [value, setValue] = useState("0");
  const [preview, setPreview] = useState<readonly Change[] | undefined>(undefined);
  const move = async (isTrial: boolean): Promise<Change[]> => {
    const to =
      mode === "offset" ? { offset: Number(value) } : mode === "time" ? { time: value } : mode;
    const json = { topic, to, dry_run: isTrial };
    const path = `/groups/${segment(group)}`;
    const answer = await callTenant<Answer<"pulse", "POST /groups/{group}">>(tenant, path, {
      method: "POST",
      json,
    });
    return answer.changes;
  };
  const change = (set: () => void): void => {
    set();
    setPreview(undefined);
  };
  return (
    <FormDialog
      title={t("Move {name} to another offset…", { name: group })}
      submit={preview === undefined ? t("Preview") : describeMove(preview)}
      isDestructive={preview !== undefined}
      onClose={props.onClose}
      onSubmit={async () => {
        if (preview === undefined) {
          setPreview(await move(true));
          return STAY_OPEN;
        }
        const changes = await move(false);
        await props.onMoved();
        return say(
          t("{name} was moved: {again} again, {skipped} skipped.", {
            name: group,
            again: formatNumber(sum(changes, "replayed")),
            skipped: formatNumber(sum(changes, "skipped")),
          }),
        );
      }}
    >
      <SelectField
        label={t("Topic")}
        value={topic}
        options={topics.map((name) => [name, name] as const)}
        onChange={(name) => change(() => setTopic(name))}
      />
      <SelectField
        label={t("To")}
        value={mode}
        options={[
          ["offset", t("an offset of each partition")],
          ["time", t("a time")],
          ["start", t("the start: read everything again")],
          ["end", t("the end: skip everything")],
        ]}
        onChange={(next) =>
          change(() => {
            setMode(next as Mode);
            setValue(next === "time" ? new Date(Date.now() - HOUR_MS).toISOString() : "0");
          })
        }
      />
      {(mode === "offset" || mode === "time") && (
        <TextField
          label={mode === "time" ? t("Time (RFC 3339)") : t("Offset")}
          value={value}
          isMono
          onInput={(next) => change(() => setValue(next))}
        />
      )}
      {preview !== undefined && <Preview changes={preview} />}
    </FormDialog>
  );
}

function Preview({ changes }: { changes: readonly Change[] }) {
  const [again, skipped] = [sum(changes, "replayed"), sum(changes, "skipped")];
  return (
    <div role="status">
      <p class="lead">
        {again === 0 && skipped === 0
          ? t("Nothing would change.")
          : t("{again} messages are delivered again, {skipped} are never delivered.", {
              again: formatNumber(again),
              skipped: formatNumber(skipped),
            })}
      </p>
      <table class="table flat" aria-label={t("Partitions")}>
        <thead>
          <tr>
            <th>{t("Partition")}</th>
            <th class="num">{t("Now")}</th>
            <th class="num">{t("Then")}</th>
            <th class="num">{t("Again")}</th>
            <th class="num">{t("Skipped")}</th>
          </tr>
        </thead>
        <tbody>
          {changes.slice(0, SHOWN_MAX).map(({ partition, from, to, replayed, skipped: lost }) => (
            <tr key={partition}>
              <td class="mono">{partition}</td>
              <td class="num">{from === null ? "–" : formatNumber(from)}</td>
              <td class="num">{formatNumber(to)}</td>
              <td class="num">{formatNumber(replayed)}</td>
              <td class="num">{formatNumber(lost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {changes.length > SHOWN_MAX && (
        <p class="hint">{t("{n} more partitions", { n: changes.length - SHOWN_MAX })}</p>
      )}
    </div>
  );
}

function describeMove(changes: readonly Change[]): string {
  const again = sum(changes, "replayed");
  if (again > 0) return t("Deliver {n} again", { n: formatNumber(again) });
  const skipped = sum(changes, "skipped");
  return skipped > 0 ? t("Skip {n}", { n: formatNumber(skipped) }) : t("Move");
}

function sum(changes: readonly Change[], name: "replayed" | "skipped"): number {
  return changes.reduce((total, change) => total + change[name], 0);
}
