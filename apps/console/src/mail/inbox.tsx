// The development inbox: what programs sent, as its readers would see it.
import type { Answer } from "../contract/answer.ts";
import { useEffect, useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatDate } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService, hasFeature } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FilterField } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { runUnlessUndone } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { MailSide } from "./mail-side.tsx";
import { MailView } from "./mail-view.tsx";
import { MANAGE, type SentMessage } from "./message.ts";
import { visible } from "./names.ts";
import { ResendAction } from "./resend.tsx";

const PAGE = 100;
const EVERY_MS = 3_000;
const SEARCH_MS = 250;

export function InboxPage() {
  useCrumbs([{ label: t("Mail") }, { label: t("Inbox") }]);
  const [isEmptying, setEmptying] = useState(false);
  const search = queryValue("filter");
  const q = useDelayed(search);
  const cursor = queryValue("cursor");
  const loaded = useLoad(
    `inbox ${q} ${cursor}`,
    () =>
      callService<Answer<"notify", "GET /inbox">>(
        "notify",
        withQuery("/inbox", { limit: PAGE, q, cursor }),
      ),
    // Older pages do not change under their reader.
    cursor === "" ? EVERY_MS : undefined,
  );
  const mails = loaded.data.value?.messages ?? [];
  const selected = queryValue("sel") || (mails[0]?.message_id ?? "");
  if (!hasFeature("notify", "inbox")) {
    return (
      <>
        <h1 class="hidden">{t("Inbox")}</h1>
        <Empty title={t("There is no inbox")}>
          <p>{t("Mail is sent to the configured relay. Its deliveries are in Messages.")}</p>
        </Empty>
      </>
    );
  }
  return (
    <div class="inbox">
      <h1 class="hidden">{t("Inbox")}</h1>
      <nav class="causes" aria-label={t("Inbox")}>
        <p class="mail-note">
          <b>{t("No relay is set: mail stays here.")}</b>{" "}
          {t("Nothing leaves this machine until {name} is configured.", { name: "smtp.host" })}
        </p>
        <div class="bar">
          <FilterField
            label={t("Recipient or subject")}
            icon="search"
            value={search}
            onInput={(value) =>
              setQuery({ filter: value, cursor: undefined, sel: undefined }, { replace: true })
            }
          />
          <Action onClick={() => setEmptying(true)} needs={MANAGE} kind="quiet" icon="trash">
            {t("Empty…")}
          </Action>
        </div>
        <Loading of={loaded}>
          {({ messages, next_cursor: next }) => (
            <>
              {messages.map((mail) => (
                <button
                  key={mail.message_id}
                  type="button"
                  data-row={mail.message_id}
                  class={mail.message_id === selected ? "mail-item sel" : "mail-item"}
                  aria-current={mail.message_id === selected ? "true" : undefined}
                  onClick={() => setQuery({ sel: mail.message_id })}
                >
                  <span class="cut i2">{mail.to.join(", ")}</span>
                  <span class="mono i3">{formatDate(mail.received_at)}</span>
                  <b class="cut">{visible(mail.subject || mail.channel)}</b>
                  <small class="cut">{mail.template ?? "–"}</small>
                </button>
              ))}
              <NextPage cursor={next} />
            </>
          )}
        </Loading>
      </nav>
      {selected === "" ? (
        loaded.data.value !== undefined && <NothingYet isSearch={q !== ""} />
      ) : (
        <InboxMailView key={selected} id={selected} onDeleted={() => void loaded.reload()} />
      )}
      {isEmptying && (
        <ConfirmDialog
          title={t("Empty the inbox")}
          name="inbox"
          submit={t("Delete all")}
          onClose={() => setEmptying(false)}
          onSubmit={async () => {
            await callService("notify", "/inbox", { method: "DELETE" });
            setQuery({ sel: undefined, cursor: undefined, filter: undefined });
            await loaded.reload();
          }}
        >
          <p>{t("All mails of the inbox will be gone, also those that no filter shows.")}</p>
        </ConfirmDialog>
      )}
    </div>
  );
}

function NothingYet({ isSearch }: { isSearch: boolean }) {
  if (isSearch) return <Empty title={t("No mail matches")} />;
  return (
    <Empty title={t("No mail yet")}>
      <p>
        {t(
          "Without a relay, mails that programs send are kept here instead of leaving this machine.",
        )}
      </p>
    </Empty>
  );
}

// A request per key would overtake the one before it.
function useDelayed(value: string): string {
  const [delayed, setDelayed] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), SEARCH_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return delayed;
}

function InboxMailView({ id, onDeleted }: { id: string; onDeleted: () => void }) {
  const path = `/inbox/${segment(id)}`;
  const loaded = useLoad(id, () =>
    callService<Answer<"notify", "GET /inbox/{id}">>("notify", path),
  );
  const message = useLoad(`message ${id}`, () =>
    callService<SentMessage>("notify", `/messages/${segment(id)}`),
  );
  const remove = (): void =>
    runUnlessUndone({
      key: `mail ${id}`,
      text: t("Deleting the mail"),
      run: async () => {
        await callService("notify", path, { method: "DELETE" });
        // Meanwhile the user may have opened another one.
        if (queryValue("sel") === id) setQuery({ sel: undefined }, { replace: true });
        onDeleted();
      },
    });
  useCommands([
    { label: t("Delete the mail"), key: "e", icon: "trash", needs: MANAGE, run: remove },
  ]);
  return (
    <Loading of={loaded}>
      {(mail) => (
        <Split pane={<MailSide id={id} mail={mail} message={message} />}>
          <MailView
            id={id}
            base={path}
            mail={{ ...mail, headers: mail.headers ?? [], attachments: mail.attachments ?? [] }}
            line={{
              subject: mail.subject || mail.channel,
              from: mail.from,
              to: mail.to,
              at: mail.received_at,
              bytes: mail.size_bytes,
            }}
            hasTemplate={(message.data.value?.template ?? null) !== null}
            actions={
              <>
                <ResendAction message={message.data.value} />
                <Action onClick={remove} needs={MANAGE} icon="trash" shortcut="e">
                  {t("Delete")}
                </Action>
              </>
            }
          />
        </Split>
      )}
    </Loading>
  );
}
