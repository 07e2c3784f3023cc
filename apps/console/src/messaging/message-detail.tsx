// One message: payload, key, headers.
import { formatMoment, formatNumber, formatTime } from "../format/format.ts";
import { CopyButton } from "../view/copy.tsx";
import { FactRow, Facts, Section } from "../view/controls.tsx";
import { JsonBlock } from "../view/json.tsx";
import { href } from "../router/router.ts";
import { t } from "../words/words.ts";
import type { Message } from "./messages.ts";
import { eventsPath } from "./paths.ts";

/** The chosen message in the pane. */
export function MessageDetail({ message, mark = "" }: { message: Message; mark?: string }) {
  return (
    <Section
      title={formatNumber(message.offset)}
      note={`${t("partition {n}", { n: message.partition })}, ${formatTime(message.timestamp, true)}`}
      action={<CopyButton text={message.payload} label={t("Copy the payload")} />}
    >
      <JsonBlock text={message.payload} mark={mark} />
      <div class="space" />
      <Facts>
        <FactRow term="message-id" isMono>
          {message.message_id}
        </FactRow>
        <FactRow term={t("time")}>{formatMoment(message.timestamp)}</FactRow>
        <FactRow term={t("key")} isMono>
          {message.key === null ? (
            "–"
          ) : (
            <a class="link" href={href(eventsPath(message.key))} title={t("History of this key")}>
              {message.key}
            </a>
          )}
        </FactRow>
        <FactRow term={t("priority")} isMono>
          {message.priority}
        </FactRow>
        {Object.entries(message.headers).map(([name, value]) => (
          <FactRow key={name} term={name} isMono>
            {value}
          </FactRow>
        ))}
      </Facts>
    </Section>
  );
}
