// The pages of mail.
import "./mail.css";
import { matchPath, path } from "../router/router.ts";
import { useTrace } from "../stage/stage.ts";
import { t } from "../words/words.ts";
import { InboxPage } from "./inbox.tsx";
import { DmarcPage } from "./dmarc.tsx";
import { InboundPage } from "./inbound.tsx";
import { MessagePage, MessagesPage } from "./messages.tsx";
import { SuppressionPage } from "./suppression.tsx";
import { TemplatePage } from "./template-editor.tsx";
import { TemplatesPage } from "./templates.tsx";

/** The page of the current path. */
export default function MailPages() {
  useTrace({ label: t("Mail"), service: "notify", figure: "requests", errors: "errors" });
  const template = matchPath("/mail/templates/:name", path.value);
  if (template !== undefined) return <TemplatePage name={template["name"] ?? ""} />;
  const message = matchPath("/mail/messages/:id", path.value)?.["id"];
  if (message !== undefined) return <MessagePage key={message} id={message} />;
  switch (path.value) {
    case "/mail/inbound":
      return <InboundPage />;
    case "/mail/dmarc":
      return <DmarcPage />;
    case "/mail/messages":
      return <MessagesPage />;
    case "/mail/templates":
      return <TemplatesPage />;
    case "/mail/suppression":
      return <SuppressionPage />;
    default:
      return <InboxPage />;
  }
}
