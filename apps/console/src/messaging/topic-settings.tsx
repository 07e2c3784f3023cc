// Settings of a topic: retention, clean-up, where its dead letters go.
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { formatBytes, formatDuration, formatNumber } from "../format/format.ts";
import { Action, FactRow, Facts, Section, SelectField, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { Split } from "../view/pane.tsx";
import { t } from "../words/words.ts";
import { callBroker } from "./broker.ts";
import type { TopicDetail } from "./messages.ts";

const HOUR_MS = 3_600_000;
const MEGABYTE = 1e6;

interface PartProps {
  topic: TopicDetail;
  onSaved: () => Promise<void>;
}

/** Limits after which messages are deleted. */
export function describeRetention({ config }: TopicDetail): string {
  if (config === undefined) return "";
  const parts = [];
  if (config.retention_ms >= 0) parts.push(formatDuration(config.retention_ms));
  if (config.retention_bytes >= 0) parts.push(formatBytes(config.retention_bytes));
  return parts.length === 0 ? t("kept forever") : parts.join(` ${t("or")} `);
}

export function SettingsTab(props: PartProps) {
  const { topic } = props;
  const { config } = topic;
  const [open, setOpen] = useState<"retention" | "letters" | undefined>(undefined);
  const close = (): void => setOpen(undefined);
  return (
    <Split>
      <div class="narrow">
        <Section
          title={t("Retention")}
          action={
            <Action kind="quiet" onClick={() => setOpen("retention")}>
              {t("Change")}
            </Action>
          }
        >
          <Facts>
            <FactRow term={t("Kept")}>{describeRetention(topic)}</FactRow>
            <FactRow term={t("Clean-up")} isMono>
              {config.cleanup_policy}
            </FactRow>
            <FactRow term={t("Segment")} isMono>
              {formatBytes(config.segment_bytes)}
            </FactRow>
            <FactRow term={t("Object storage")}>
              {config.offload ? t("closed segments are moved there") : t("off")}
            </FactRow>
            <FactRow term={t("Filters of keys")}>
              {config.key_index ? t("in closed segments") : t("off")}
            </FactRow>
            <FactRow term={t("Deletions kept")}>
              {config === undefined ? "–" : formatDuration(config.delete_retention_ms)}
            </FactRow>
          </Facts>
        </Section>
        <Section
          title={t("Dead letters")}
          action={
            <Action kind="quiet" onClick={() => setOpen("letters")}>
              {t("Change the topic of dead letters…")}
            </Action>
          }
        >
          <Facts>
            <FactRow term={t("Topic")} isMono>
              {topic.dlq_topic}
            </FactRow>
          </Facts>
        </Section>
        <Section title={t("Queue")}>
          <Facts>
            <FactRow term={t("Waiting")} isMono>
              {formatNumber(topic.queue_depth)}
            </FactRow>
            <FactRow term={t("Limit")} isMono>
              {topic.queue_depth_max === null
                ? t("unlimited")
                : formatNumber(topic.queue_depth_max)}
            </FactRow>
          </Facts>
        </Section>
      </div>
      {open === "retention" && <RetentionDialog {...props} onClose={close} />}
      {open === "letters" && <LettersDialog {...props} onClose={close} />}
    </Split>
  );
}

function RetentionDialog(props: PartProps & { onClose: () => void }) {
  const { name, config } = props.topic;
  const read = (value: number | undefined, unit: number): string =>
    value === undefined || value < 0 ? "" : String(value / unit);
  const [hours, setHours] = useState(read(config.retention_ms, HOUR_MS));
  const [megabytes, setMegabytes] = useState(read(config.retention_bytes, MEGABYTE));
  const [policy, setPolicy] = useState<string>(config.cleanup_policy);
  const [segmentSize, setSegmentSize] = useState(read(config.segment_bytes, MEGABYTE));
  const [doesOffload, setOffload] = useState(config.offload ? "on" : "off");
  const [hasKeyIndex, setKeyIndex] = useState(config.key_index ? "on" : "off");
  const [etag] = useState(props.topic.config_etag);
  const doesDelete = policy.includes("delete");
  return (
    <FormDialog
      title={t("Retention of {name}", { name })}
      submit={t("Save")}
      isDestructive={doesDelete && (hours !== "" || megabytes !== "")}
      onClose={props.onClose}
      onSubmit={async () => {
        await callBroker("/topics/retention", {
          method: "POST",
          headers: { "if-match": etag ?? "" },
          json: {
            topic: name,
            retention_ms: hours === "" ? -1 : Math.round(Number(hours) * HOUR_MS),
            retention_bytes: megabytes === "" ? -1 : Math.round(Number(megabytes) * MEGABYTE),
            cleanup_policy: policy,
            offload: doesOffload === "on",
            key_index: hasKeyIndex === "on",
            ...(segmentSize === ""
              ? {}
              : { segment_bytes: Math.round(Number(segmentSize) * MEGABYTE) }),
          },
        });
        await props.onSaved();
      }}
    >
      <SelectField
        label={t("Clean-up")}
        value={policy}
        options={[
          ["delete", t("Delete what is too old or too much")],
          ["compact", t("Compact: keep the latest message of each key")],
          ["compact,delete", t("Both")],
        ]}
        onChange={setPolicy}
      />
      <TextField label={t("Hours")} value={hours} onInput={setHours} hint={t("Empty: forever")} />
      <TextField
        label={t("Megabytes")}
        value={megabytes}
        onInput={setMegabytes}
        hint={t("Empty: unlimited")}
      />
      <TextField label={t("Megabytes of a segment")} value={segmentSize} onInput={setSegmentSize} />
      <SelectField
        label={t("Object storage")}
        value={doesOffload}
        options={[
          ["off", t("Everything stays on this disk")],
          ["on", t("Closed segments are moved to object storage")],
        ]}
        onChange={setOffload}
      />
      <SelectField
        label={t("Filters of keys")}
        value={hasKeyIndex}
        options={[
          ["off", t("The history of a key reads all messages")],
          ["on", t("The history of a key reads few messages of closed segments")],
        ]}
        onChange={setKeyIndex}
      />
      <p class="hint">
        {t("Messages beyond the limits are deleted with their segment, without a way back.")}
      </p>
      {policy !== "delete" && (
        <p class="hint">
          {t("Older messages of the same key are deleted; messages without a key are refused.")}
        </p>
      )}
    </FormDialog>
  );
}

function LettersDialog({ topic, onSaved, onClose }: PartProps & { onClose: () => void }) {
  const [name, setName] = useState(topic.dlq_topic);
  const [etag] = useState(topic.config_etag);
  return (
    <FormDialog
      title={t("Dead letters of {name}", { name: topic.name })}
      submit={t("Save")}
      isDisabled={name === "" || name === topic.dlq_topic}
      onClose={onClose}
      onSubmit={async () => {
        const path = `/topics/${segment(topic.name)}/dlq`;
        const headers = { "if-match": etag ?? "" };
        await callBroker(path, { method: "POST", json: { dlq_topic: name }, headers });
        await onSaved();
      }}
    >
      <TextField label={t("Topic")} value={name} onInput={setName} isMono required />
      <p class="hint">{t("Letters that are in the topic so far stay there and are not listed.")}</p>
    </FormDialog>
  );
}
