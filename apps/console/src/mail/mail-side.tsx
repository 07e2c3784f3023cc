// Beside a mail: would it arrive, what happened, where it came from, what is attached.
import type { Answer } from "../contract/answer.ts";
import { segment } from "../api/api.ts";
import { formatBytes, formatDate, formatNumber } from "../format/format.ts";
import { href } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { FactRow, Facts, Section } from "../view/controls.tsx";
import { useLoad, type Loaded } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { ProblemText } from "../view/problem-text.tsx";
import { StateMark, type StateKind } from "../view/state.tsx";
import { t } from "../words/words.ts";
import { wordFinding } from "./findings.ts";
import type { MailContent } from "./mail-view.tsx";
import type { SentMessage } from "./message.ts";
import { visible } from "./names.ts";
import { messagePath, templatePath } from "./paths.ts";

const ATTACHMENTS_SHOWN = 50;

type Check = Answer<"notify", "GET /messages/{id}/checks">["checks"][number];

const KINDS: Readonly<Record<Check["status"], StateKind>> = {
  ok: "ok",
  warning: "warn",
  problem: "bad",
  unknown: "off",
};

function wordOf(status: Check["status"]): string {
  switch (status) {
    case "ok":
      return t("fine");
    case "warning":
      return t("warning");
    case "problem":
      return t("problem");
    default:
      return t("unknown");
  }
}

function titleOf({ id, title }: Check): string {
  const titles: Readonly<Record<string, string>> = {
    size: t("Size"),
    subject: t("Subject"),
    text: t("Plain text part"),
    images: t("Images"),
    links: t("Links"),
    active_content: t("Active content"),
    variables: t("Variables"),
  };
  return titles[id] ?? title;
}

// Details have names of settings and fields in backticks.
function withCode(text: string) {
  return text
    .split(/`([^`]*)`/)
    .map((piece, index) => (index % 2 === 1 ? <code key={index}>{piece}</code> : piece));
}

/** The pane of a mail. */
export function MailSide(props: {
  id: string;
  mail: MailContent | undefined;
  message: Loaded<SentMessage>;
}) {
  const { id, mail } = props;
  const message = props.message.data.value;
  return (
    <>
      {message?.channel === "email" && <Checks id={id} />}
      <Section title={t("What happened")}>
        <Loading of={props.message}>{({ events }) => <Events events={events} />}</Loading>
      </Section>
      <Section title={t("Message")}>
        <Facts>
          <FactRow term="id" isMono>
            <a href={href(messagePath(id))}>{id}</a>
          </FactRow>
          <FactRow term={t("Template")} isMono>
            {message?.template === undefined || message.template === null ? (
              "–"
            ) : (
              <a href={href(templatePath(message.template, ""))}>{message.template}</a>
            )}
          </FactRow>
          {message?.resent_from !== undefined && message.resent_from !== null && (
            <FactRow term={t("Copy of")} isMono>
              <a href={href(messagePath(message.resent_from))}>{message.resent_from}</a>
            </FactRow>
          )}
          <FactRow term={t("Trace")} isMono>
            {message?.trace_id ?? "–"}
          </FactRow>
        </Facts>
      </Section>
      {mail !== undefined && mail.attachments.length > 0 && (
        <Attachments attachments={mail.attachments} />
      )}
    </>
  );
}

function Checks({ id }: { id: string }) {
  const loaded = useLoad(`checks ${id}`, async () => {
    const path = `/messages/${segment(id)}/checks`;
    return (await callService<Answer<"notify", "GET /messages/{id}/checks">>("notify", path))
      .checks;
  });
  const checks = loaded.data.value ?? [];
  const fine = checks.filter(({ status }) => status === "ok").length;
  return (
    <Section
      title={t("Would it arrive?")}
      note={checks.length === 0 ? undefined : t("{n} of {all}", { n: fine, all: checks.length })}
    >
      {loaded.failure.value?.status === 409 ? (
        <ProblemText failure={loaded.failure.value} />
      ) : (
        <Loading of={loaded}>
          {(list) => (
            <ul class="mail-checks">
              {list.map((check) => (
                <li key={check.id}>
                  <StateMark kind={KINDS[check.status]} />
                  <b>
                    {titleOf(check)}
                    <span class="hidden">: {wordOf(check.status)}</span>
                  </b>
                  <small>{withCode(visible(wordFinding(check)))}</small>
                </li>
              ))}
            </ul>
          )}
        </Loading>
      )}
    </Section>
  );
}

function Attachments({ attachments }: Pick<MailContent, "attachments">) {
  const rest = attachments.length - ATTACHMENTS_SHOWN;
  return (
    <Section title={t("Attachments")} note={formatNumber(attachments.length)}>
      {attachments.slice(0, ATTACHMENTS_SHOWN).map((file, index) => (
        <p key={`${index} ${file.filename}`} class="mono wrap">
          <bdi>{visible(file.filename ?? "") || "–"}</bdi>{" "}
          <span class="i3">
            {file.content_type} {formatBytes(file.size_bytes)}
          </span>
        </p>
      ))}
      {rest > 0 && <p class="lead">{t("and {n} more", { n: rest })}</p>}
    </Section>
  );
}

/** Events of a message, oldest first. */
export function Events({ events }: { events: NonNullable<SentMessage["events"]> }) {
  return (
    <div class="lines">
      {events.map((event, index) => (
        <div key={`${index} ${event.at}`} class="change">
          <span class="mono i3">{formatDate(event.at)}</span>
          <span title={event.type}>{event.type}</span>
          <span class="i2" title={event.detail}>
            {event.detail ?? ""}
          </span>
        </div>
      ))}
    </div>
  );
}
