// Sending a message again, to its recipients or to others.
import type { Answer } from "../contract/answer.ts";
import { useMemo, useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { navigate } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { Action, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { SEND, type SentMessage } from "./message.ts";
import { messagePath } from "./paths.ts";

/** The button and its dialog. */
export function ResendAction({ message }: { message: SentMessage | undefined }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Action onClick={() => setOpen(true)} needs={SEND} blocked={findReason(message)}>
        {t("Send again")}
      </Action>
      {isOpen && message !== undefined && (
        <ResendDialog message={message} onClose={() => setOpen(false)} />
      )}
    </>
  );
}

function findReason(message: SentMessage | undefined): string | undefined {
  if (message === undefined) return t("Loading …");
  if (message.sensitive) return t("Its content was erased: it is sensitive.");
  return message.channel === "push" ? t("Push messages cannot be sent again.") : undefined;
}

function ResendDialog({ message, onClose }: { message: SentMessage; onClose: () => void }) {
  const [to, setTo] = useState("");
  // One key for all attempts with the same recipients: a repeated click sends one copy.
  const key = useMemo(() => crypto.getRandomValues(new Uint32Array(4)).join("-"), [to]);
  const recipients = message.recipients.map(({ address }) => address);
  const isMail = message.channel === "email";
  const others = to
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
  return (
    <FormDialog
      title={t("Send again")}
      submit={t("Send")}
      onClose={onClose}
      onSubmit={async () => {
        const { message_id: id, status } = await callService<
          Answer<"notify", "POST /messages/{id}/resend">
        >("notify", `/messages/${segment(message.message_id)}/resend`, {
          method: "POST",
          json: others.length === 0 ? {} : { to: others },
          headers: { "Idempotency-Key": key },
        });
        say(t("Sent again: {status}", { status }));
        navigate(messagePath(id));
      }}
    >
      <p>
        {t("The same content leaves once more, as a new message, to {names}.", {
          names: (others.length === 0 ? recipients : others).join(", "),
        })}
      </p>
      {isMail && (
        <TextField
          label={t("Other recipients")}
          value={to}
          onInput={setTo}
          hint={t("Empty: the same as before. Several are separated by commas.")}
        />
      )}
    </FormDialog>
  );
}
